"""Every method in every scenario that it supports, both fidelities, both protocols: properties that all must have."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, AS_WRITTEN, CHOICES, FIDELITIES, Fidelity
from relive._util.registry import is_address
from relive.core.learner import Learner
from relive.core.method import Method
from relive.core.scenarios import SCENARIOS, scenario_of
from relive.data import protocols
from relive.data.datasets.dataset import Dataset
from relive.data.protocols import BLURRED, blended, tasks_of
from relive.experiments.execute import Checkpoint, Outcome, PartialResult, run
from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec, make_spec
from relive.methods import METHODS, make_method, method_class
from tests import plain
from tests.plain import CELLS, tiny_dataset

TASKS, ITERS, HIDDEN, LATENT = 3, 3, 10, 4
TINY = tiny_dataset()
UNSUPPORTED = [(m, s) for m, kind in METHODS.items() for s in SCENARIOS if s not in kind.scenarios]
ONE_UNSUPPORTED = [("xdg", "domain"), ("xdg", "class")]


class Memory(Checkpoint):
    """Keeps a copy of the state after each task, and can start from one."""

    def __init__(self, start: tuple[dict[str, Tensor], PartialResult] | None = None) -> None:
        self.start = start
        self.kept: list[tuple[dict[str, Tensor], PartialResult]] = []

    def load(self) -> tuple[dict[str, Tensor], PartialResult] | None:
        return copy.deepcopy(self.start)

    def save(self, state: dict[str, Tensor], progress: PartialResult) -> None:
        self.kept.append(copy.deepcopy((state, progress)))


class Losses(Observer):
    def __init__(self) -> None:
        self.steps: list[tuple[int, int, float]] = []

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        self.steps.append((task, iteration, loss))


def spec_of(method: str, scenario: str, protocol: str, fidelity: str, encoder: str = "mlp") -> RunSpec:
    return make_spec(
        protocol,
        scenario,
        method,
        dataset=TINY,
        encoder=encoder,
        seed=1,
        fidelity=FIDELITIES[fidelity],
        tasks=TASKS,
        iters=ITERS,
        hidden=HIDDEN,
        latent=LATENT,
        batch_size=8,
    )


def bits(outcome: Outcome) -> object:
    """Everything that must not differ between two runs of one spec."""
    result = outcome.result
    return result.accuracy_matrix, result.curve, [picture.tobytes() for picture in outcome.samples]


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("protocol", ["split", "permuted"])
@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_a_run(method: str, scenario: str, protocol: str, fidelity: str, tiny: Dataset) -> None:
    spec = spec_of(method, scenario, protocol, fidelity)
    losses, memory = Losses(), Memory()
    outcome = run(spec, data=tiny, observer=losses, checkpoint=memory)
    result = outcome.result

    assert [(task, i) for task, i, _ in losses.steps] == [(k, i) for k in range(TASKS) for i in (1, 2, 3)]
    assert all(math.isfinite(loss) and loss > 0 for _, _, loss in losses.steps)

    matrix = np.array(result.accuracy_matrix)
    assert matrix.shape == (TASKS, TASKS)
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert result.average_accuracy == pytest.approx(matrix[-1].mean())
    if scenario == "class":
        assert not matrix[np.triu_indices(TASKS, 1)].any()  # future classes are never predicted
    looks = [(task, i, len(row)) for task, i, row in result.curve]
    assert looks == [(k, i, k + 1) for k in range(TASKS) for i in (1, 2, 3)]

    inputs = 16 if protocol == "split" else 64
    units = {"split": {"task": 6, "domain": 2, "class": 6}, "permuted": {"task": 18, "domain": 6, "class": 18}}
    encoder = inputs * HIDDEN + HIDDEN + HIDDEN**2 + HIDDEN
    classifier = encoder + (HIDDEN + 1) * units[protocol][scenario]
    feedback = (HIDDEN + 1) * 2 * LATENT + (LATENT + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * inputs
    generator = {"rtf": feedback, "dgr": encoder + feedback, "dgr-distill": encoder + feedback}.get(method, 0)
    n_classes = 6 if protocol == "split" else 18
    if method == "bir":  # with a mean and a variance for each class
        generator = feedback + n_classes * 2 * LATENT
    if method == "generative-classifier":  # VAEs of 85 units and 5 latent variables, and nothing else
        forth = (inputs + 1) * 85 + 86 * 85 + 86 * 10
        classifier, generator = 0, n_classes * (forth + 6 * 85 + 86 * 85 + 86 * inputs)
    assert result.parameters == classifier + generator
    rows = 54 if protocol == "split" else 3 * 54
    numbers = encoder + (HIDDEN + 1) * (32 if units[protocol][scenario] > 16 else 16)  # units come in blocks of sixteen
    stored = {
        "xdg": TASKS * 2 * HIDDEN,
        "ewc": 2 * numbers,
        "online-ewc": numbers,
        "si": numbers,
        "offline": rows * inputs,
        "bir": (32 if n_classes > 16 else 16) * 2 * HIDDEN,  # gates
        "er": min(200, rows) * (inputs + 4) + 1,  # class, task, unit and rank, and how often samples were added
        "agem": min(200, rows) * (inputs + 4) + 1,
        "icarl": min(200, rows) * (inputs + 4),
    }
    assert result.stored_numbers == stored.get(method, 0)
    side = math.isqrt(inputs)
    assert [picture.shape for picture in outcome.samples] == ([(100, side, side)] * TASKS if generator else [])

    # resuming from the state after any task is bit-identical
    assert len(memory.kept) == TASKS - 1
    for kept in memory.kept:
        again = Losses()
        assert bits(run(spec, data=tiny, observer=again, checkpoint=Memory(kept))) == bits(outcome)
        assert again.steps == losses.steps[-len(again.steps) :]


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_a_stream_without_boundaries(
    method: str, scenario: str, tiny: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It consolidates twice per task's length, and resuming from there is bit-identical."""
    every_second = replace(BLURRED, blend=lambda task, n, steps: blended(task, n, steps, every=2))
    monkeypatch.setattr(protocols, "BLURRED", every_second)
    consolidated = []
    after_task = method_class(method).after_task

    def counting(self: Method, net: Any, learned: Any, seen: int) -> None:
        consolidated.append((seen, [part.task for part in learned]))
        after_task(self, net, learned, seen)

    monkeypatch.setattr(method_class(method), "after_task", counting)
    spec = spec_of(method, scenario, "blurred", "as_run")
    losses, memory = Losses(), Memory()
    outcome = run(spec, data=tiny, observer=losses, checkpoint=memory)
    assert [(task, i) for task, i, _ in losses.steps] == [(k, i) for k in range(TASKS) for i in (1, 2, 3)]
    # of three steps of a task, the first two and the last; the third step has rows of the next task too
    assert [seen for seen, _ in consolidated] == [1, 2, 2, 3, 3, 3]
    assert all(0 < len(tasks) <= 2 and max(tasks) < seen for seen, tasks in consolidated)
    for kept in memory.kept:
        again = Losses()
        assert bits(run(spec, data=tiny, observer=again, checkpoint=Memory(kept))) == bits(outcome)
        assert again.steps == losses.steps[-len(again.steps) :]


def test_only_xdg_needs_the_task() -> None:
    assert UNSUPPORTED == ONE_UNSUPPORTED


OWN_NETWORK = """
from torch import nn

def make(shape, hidden, rng):
    return nn.Sequential(
        nn.Unflatten(1, (1, *shape)), nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(),
        nn.LazyLinear(hidden), nn.ReLU(),
    )
"""


@pytest.fixture(scope="session")
def own_network(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("own") / "my_network.py"
    path.write_text(OWN_NETWORK)
    return f"{path}:make"


@pytest.mark.parametrize("encoder", ["conv", "my_network.py:make"])
@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_every_encoder(method: str, scenario: str, encoder: str, own_network: str, tiny: Dataset) -> None:
    encoder = own_network if is_address(encoder) else encoder
    spec = spec_of(method, scenario, "split", "as_run", encoder=encoder)
    assert list(spec.sources) == [*([own_network] if is_address(encoder) else []), "tiny"]
    memory = Memory()
    if method == "xdg":
        with pytest.raises(InputError, match="XdG does not support the encoder"):
            run(spec, data=tiny, checkpoint=memory)
        return
    whole = run(spec, data=tiny, checkpoint=memory)
    torch.manual_seed(3)  # has no effect
    assert bits(run(spec, data=tiny, checkpoint=Memory(memory.kept[0]))) == bits(whole)
    assert [picture.shape for picture in whole.samples] == [(100, 4, 4)] * (TASKS if len(whole.samples) else 0)


@pytest.mark.parametrize(("method", "scenario"), UNSUPPORTED)
def test_an_unsupported_scenario_says_why(method: str, scenario: str) -> None:
    with pytest.raises(InputError) as caught:
        make_spec("split", scenario, method)
    message = str(caught.value)
    assert METHODS[method].title in message
    assert f"{scenario!r}" in message
    assert METHODS[method].why_not in message
    assert METHODS[method].why_not != ""
    assert message.endswith("It supports: task")


@pytest.mark.parametrize(("method", "scenario"), UNSUPPORTED)
def test_a_learner_refuses_an_unsupported_scenario(method: str, scenario: str, tiny: Dataset) -> None:
    tasks = tasks_of("split", tiny, TASKS, seed=0)
    with pytest.raises(InputError, match="task must be known"):
        Learner(make_method(method), scenario_of(scenario, [task.classes for task in tasks]), tasks[0].n_inputs)


@pytest.mark.parametrize(("method", "scenario"), UNSUPPORTED)
def test_a_run_refuses_an_unsupported_scenario(method: str, scenario: str, tiny: Dataset) -> None:
    """A spec read from a file was not checked by make_spec."""
    values = spec_of(method, "task", "split", "as_run").to_json() | {"scenario": scenario}
    with pytest.raises(InputError, match="task must be known"):
        run(RunSpec.from_json(values), data=tiny)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name: str) -> None:
    method = METHODS[name]
    assert method_class(name).__doc__
    assert method.title
    assert method.reference
    assert len({kind.title for kind in METHODS.values()}) == len(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_settings(name: str) -> None:
    """Every setting is checked by name and range; a wrong name gets the nearest one as a suggestion."""
    for setting, (low, high) in METHODS[name].limits.items():
        wrong = [low - 1, math.nan, math.inf] + ([2 * high] if math.isfinite(high) else [])
        for value in wrong:
            with pytest.raises(InputError, match=f"setting {setting} = .* out of range"):
                make_spec("split", "task", name, settings={setting: value})
        with pytest.raises(InputError, match=f"did you mean '{setting}'"):
            make_spec("split", "task", name, settings={f"{setting}_": 0.5})
    with pytest.raises(InputError, match="unknown setting"):
        make_spec("split", "task", name, settings={"no such thing": 1})


def test_a_setting_called_like_an_argument_of_ours() -> None:
    with pytest.raises(InputError, match="unknown setting"):
        make_spec("split", "task", "si", settings={"name": 1})


@pytest.mark.parametrize("name", METHODS)
def test_the_spec_records_all_settings(name: str) -> None:
    assert set(make_spec("split", "task", name).settings) == set(METHODS[name].defaults)


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_a_method_names_the_fidelity_choices_that_change_it(method: str, scenario: str) -> None:
    """Those it names change the parameters after two tasks, the others change no bit."""
    tasks = plain.split_tasks()

    def end(fidelity: Fidelity) -> dict[str, Tensor]:
        learner = plain.learner_of(method, scenario, tasks, fidelity, **settings)
        for k in (1, 2, 3):
            learner.learn(tasks[:k], 3)
        return learner.state()

    settings: dict[str, Any] = {"proportion": 0.5} if method == "xdg" else {}
    as_run, named = end(AS_RUN), METHODS[method].choices
    for name in CHOICES:
        if name in ("class_order", "permutations"):  # which belong to the protocol
            continue
        other = end(AS_RUN.choose({name: getattr(AS_WRITTEN, name)}))
        changed = any(not torch.equal(as_run[key], other[key]) for key in as_run)
        assert changed == (name in named), name
