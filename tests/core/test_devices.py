"""Every tensor is created on the same device: no GPU is needed to check that, only a device other than the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from relive._util.errors import InputError
from relive.core.devices import device_of
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.methods import make_method
from tests import plain

MOVES = {"aten::_to_copy", "aten::copy_"}  # from the CPU, where random numbers are drawn, to the device
NO_LIKELIHOOD = {
    "none",
    "ewc",
    "online-ewc",
    "si",
    "lwf",
    "xdg",
    "er",
    "agem",
    "icarl",
    "offline",
}  # they generate no inputs


class OneDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses every operation on tensors of two devices; PyTorch's ``meta`` device itself allows some."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor) and t.dim()]
        devices = {t.device.type for t in tensors}
        assert len(devices) < 2 or func.name().partition(".")[0] in MOVES, f"{func.name()} on {sorted(devices)}"
        return func(*args, **(kwargs or {}))


def test_two_devices_are_noticed() -> None:
    with OneDevice(), pytest.raises(AssertionError, match=r"aten::mm on \['cpu', 'meta'\]"):  # type: ignore[no-untyped-call]
        torch.ones(2, 2) @ torch.ones(2, 2, device="meta")


@pytest.mark.parametrize(
    ("method", "scenario", "encoder", "likelihood"),
    [
        (*cell, encoder, likelihood)
        for cell in plain.CELLS
        for encoder in ("mlp", "conv")
        for likelihood in ("bernoulli", "gaussian")
        if (cell[0], encoder) != ("xdg", "conv") and not (cell[0] in NO_LIKELIHOOD and likelihood == "gaussian")
    ],
)
def test_every_method_stays_on_its_device(
    method: str, scenario: str, encoder: str, likelihood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps of each of three tasks with their ends, and a segment of a stream."""
    tasks = plain.split_tasks()
    layout = scenario_of(scenario, [task.classes for task in tasks])
    learner = Learner(
        make_method(method),
        layout,
        16,
        shape=(4, 4),
        encoder=encoder,
        hidden=12,
        latent=5,
        batch_size=8,
        device="meta",
        likelihood=likelihood,
    )
    # tensors on this device have no values: those that are read, the loss and whether all is finite, are faked
    monkeypatch.setattr(Tensor, "item", lambda self: 0.0)
    monkeypatch.setattr(Tensor, "__bool__", lambda self: True)
    with OneDevice():  # type: ignore[no-untyped-call]
        for seen in (1, 2):
            learner.learn(tasks[:seen], 2)
        learner.learn_blend(tasks, torch.tensor([[0.0, 0.5, 0.5]] * 2))
        learner.grow(scenario_of(scenario, [*layout.classes, tuple(range(100, 120))]))
    kept = (*learner.net.state_dict().values(), *learner.method.state().values(), *learner.optimizer.state().values())
    assert {t.device.type for t in kept} == {"meta"}


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        device_of("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match=r"device = 'cuda': PyTorch cannot use it here .* 'cpu' always works"):
            device_of("cuda")
    assert device_of("auto").type in ("cpu", "cuda", "mps")
