"""Adam against Kingma & Ba's algorithm in float64 and PyTorch's own, SGD against PyTorch's, and their state."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, Fidelity
from relive._util.seeds import stream
from relive.core.catalogue import optimizer_factory
from relive.core.learner import Learner
from relive.core.optimizers import SGD, Adam, Optimizer
from relive.core.scenarios import scenario_of
from relive.methods.none import FineTuning
from tests import plain

SHAPES = [(40, 30), (40,), (16, 40), (16,), (3, 5)]


def test_against_the_algorithm_and_pytorch_s_own() -> None:
    rng = stream(0, "test")
    start = [torch.randn(shape, generator=rng) for shape in SHAPES]
    gradients = [[torch.randn(shape, generator=rng) * 10 ** (i - 3) for shape in SHAPES] for i in range(6)]
    ours = [p.clone().requires_grad_() for p in start]
    theirs = [p.clone().requires_grad_() for p in start]
    adam, optimizer = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, fused=True)
    for gradient in gradients:
        adam.step(gradient)
        for p, g in zip(theirs, gradient, strict=True):
            p.grad = g.clone()
        optimizer.step()
    for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        assert torch.equal(p, q)
        expected = plain.adam([gradient[i] for gradient in gradients], start[i], 0.01)
        torch.testing.assert_close(p.detach().double(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("epsilon_first", [False, True])
def test_where_epsilon_is_added(epsilon_first: bool) -> None:
    """Gradients as small as ε, so that it matters."""
    rng = stream(1, "test")
    gradients = [1e-8 * torch.randn(50, generator=rng) for _ in range(30)]
    theta = torch.zeros(50)
    choice = "before_correction" if epsilon_first else "after_correction"
    adam = Adam([theta], 0.01, AS_RUN.choose({"adam_epsilon": choice}))
    for gradient in gradients:
        adam.step([gradient])
    right, wrong = (
        plain.adam(gradients, torch.zeros(50), 0.01, epsilon_first=e) for e in (epsilon_first, not epsilon_first)
    )
    torch.testing.assert_close(theta.double(), right, rtol=1e-4, atol=1e-7)
    assert (theta.double() - wrong).abs().max() > 0.01


@pytest.mark.parametrize("epsilon", ["after_correction", "before_correction"])
def test_without_the_fused_kernel_the_public_optimizer_does_the_same(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = stream(2, "test")
    start = [torch.randn(shape, generator=rng) for shape in SHAPES]
    fidelity = AS_RUN.choose({"adam_epsilon": epsilon})
    fused, public = (Adam([p.clone().requires_grad_() for p in start], 0.01, fidelity) for _ in range(2))
    for i in range(6):
        gradient = [torch.randn(shape, generator=rng) * 10 ** (i - 6) for shape in SHAPES]
        fused.step(gradient)
        with monkeypatch.context() as patch:
            patch.delattr(torch, "_fused_adam_")
            public.step(gradient)
    assert fused.state().keys() == public.state().keys()
    ours, theirs = ((*adam.parameters, *adam.state().values()) for adam in (fused, public))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
    assert all(p.grad is None for p in public.parameters)


def test_sgd_with_momentum_is_pytorch_s() -> None:
    rng = stream(3, "test")
    start = [torch.randn(shape, generator=rng) for shape in SHAPES]
    ours, theirs = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    sgd, optimizer = SGD(ours, 0.1), torch.optim.SGD(theirs, lr=0.1, momentum=0.9)
    for _ in range(5):
        gradient = [torch.randn(shape, generator=rng) for shape in SHAPES]
        sgd.step(gradient)
        for p, g in zip(theirs, gradient, strict=True):
            p.grad = g.clone()
        optimizer.step()
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [Adam, SGD])
def test_an_optimizer_goes_on_from_its_state_and_with_more_rows(kind: type[Optimizer]) -> None:
    """New rows of a grown parameter start with zero state; the others continue as if they were alone."""
    rng = stream(4, "test")
    gradients = [torch.randn(6, 3, generator=rng) for _ in range(4)]
    small, large = torch.zeros(4, 3), torch.zeros(6, 3)
    alone = kind([small], 0.1)
    for gradient in gradients[:2]:
        alone.step([gradient[:4]])
    grown = kind([large], 0.1)
    grown.load_state(alone.state())
    large[:4] = small
    for gradient in gradients[2:]:
        alone.step([gradient[:4]])
        grown.step([gradient])
    assert torch.equal(large[:4], small)
    assert large[4:].abs().min() > 0


class _NoStep(Optimizer):
    name = "no-step"


class _NoName(SGD):
    name = None  # type: ignore[assignment]


class _TwoArguments(SGD):
    def __init__(self, parameters: list[torch.Tensor], rate: float) -> None:
        super().__init__(parameters, rate)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (_NoStep, "optimizer _NoStep must extend relive.core.optimizers.Optimizer, with a text `name` and a"),
        (_NoName, "optimizer _NoName must extend"),
        (torch.optim.SGD, "optimizer SGD must extend"),
        (_TwoArguments, r"_TwoArguments must be created from \(parameters, rate, fidelity\)"),
    ],
)
def test_a_class_that_is_no_optimizer_is_refused_before_it_is_used(kind: type, message: str) -> None:
    with pytest.raises(InputError, match=message):
        optimizer_factory(kind)


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown optimizer 'sdg'.*sgd"):
        optimizer_factory("sdg")
    with pytest.raises(
        InputError, match=r"optimizer = 3: it must be one of adam, sgd, .*\(parameters, rate, fidelity\)"
    ):
        optimizer_factory(3)  # type: ignore[arg-type]


class Averaging(Optimizer):
    """Keeps an average of the gradients, but does not declare it."""

    name = "averaging"

    def __init__(self, parameters: Sequence[Tensor], rate: float, fidelity: Fidelity = AS_RUN) -> None:
        super().__init__(parameters, rate, fidelity)
        self.average = self._zeros()

    @torch.no_grad()
    def step(self, gradient: Sequence[Tensor]) -> None:
        for p, g, average in zip(self.parameters, gradient, self.average, strict=True):
            average.mul_(0.9).add_(g)
            p.sub_(average, alpha=self.rate)


class Declaring(Averaging):
    """Declares it."""

    name = "declaring"

    def __init__(self, parameters: Sequence[Tensor], rate: float, fidelity: Fidelity = AS_RUN) -> None:
        super().__init__(parameters, rate, fidelity)
        self.slots = {"average": self.average}


def test_an_optimizer_that_does_not_declare_its_state_is_warned_of() -> None:
    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    with pytest.warns(
        UserWarning, match=r"Averaging holds average, but .*: they are lost .*self.slots = {'average': \["
    ):
        Learner(FineTuning(), scenario, tasks[0].n_inputs, hidden=12, optimizer=Averaging).learn(tasks[:1], 1)
    for kind in (Declaring, Adam, SGD):  # pytest raises any warning
        Learner(FineTuning(), scenario, tasks[0].n_inputs, hidden=12, optimizer=kind).learn(tasks[:1], 1)
