"""What a method's hooks return is checked, with errors that name the hook; and what a state must restore."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from relive._util.errors import InputError
from relive._util.tensorfile import read_tensors, write_tensors
from relive.core.batch import Batch
from relive.core.hooks import STORED
from relive.core.learner import Learner
from relive.core.method import Method, Problem
from relive.core.scenarios import scenario_of
from relive.core.sources import Part
from relive.networks import Classifier
from tests import plain

TASKS = plain.split_tasks()


def learner_with(method: Method) -> Learner:
    return Learner(method, scenario_of("class", [task.classes for task in TASKS]), TASKS[0].n_inputs, hidden=12)


class Regularising(Method):
    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> list[Tensor]:  # type: ignore[override]
        return [g + 1 for g in gradient]


class Observing(Method):
    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> int:  # type: ignore[override]
        return 1


class Preparing(Method):
    def before_task(self, net: Classifier, known: int) -> Classifier:  # type: ignore[override]
        return net


class Extracting(Method):
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> bool:  # type: ignore[override]
        return True


@pytest.mark.parametrize(
    ("method", "hook"),
    [(Regularising, "regularise"), (Observing, "after_step"), (Preparing, "before_task"), (Extracting, "after_task")],
)
def test_a_hook_that_works_in_place_must_not_return_anything(method: type[Method], hook: str) -> None:
    with pytest.raises(InputError, match=rf"{method.__name__}.{hook} returned .*: it must return nothing: .* in place"):
        learner_with(method()).learn(TASKS[:1], 1)


class Narrow(Method):
    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch:
        parts = {name: value[:, :7] if name == "x" else value for name, value in vars(current).items()}
        return Batch(**parts)


class Unlike(Method):
    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch:
        return Batch(**vars(current) | {"active": current.active.float()})


class Short(Method):
    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch:
        return Batch(**vars(current) | {"temperature": current.temperature[:2]})


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Narrow, "x is (18, 7) of torch.float32, but should be (18, 16) of torch.float32"),
        (Unlike, "active is (18, 16) of torch.float32, but should be (18, 16) of torch.bool"),
        (Short, "temperature is (2,) of torch.float32, but should be (18,) of torch.float32"),
    ],
)
def test_replayed_rows_that_do_not_fit_are_refused(method: type[Method], words: str) -> None:
    with pytest.raises(
        InputError, match=re.escape(f"{method.__name__}.replay returned rows that do not fit the curr")
    ) as e:
        learner_with(method()).learn(TASKS[:1], 1)
    assert str(e.value).endswith(words)


def learn_and_predict(learner: Learner) -> None:
    learner.learn(TASKS[:1], 1)
    learner.predict(TASKS[0].test.inputs(slice(None)), 0)


class TooFew(Method):
    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        return super().logits(net, x, task)[:, :2]


class OneForAll(Method):
    """Its logits broadcast, so that no step fails."""

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        return super().logits(net, x, task)[:, :1]


class Numbers(Method):
    takes_steps = False

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        return super().logits(net, x, task).tolist()  # type: ignore[return-value]


@pytest.mark.parametrize("method", [TooFew, OneForAll, Numbers])
def test_logits_that_do_not_fit_are_refused(method: type[Method]) -> None:
    with pytest.raises(InputError, match=rf"{method.__name__}.logits returned .*: it must return a tensor of shape \("):
        learn_and_predict(learner_with(method()))


class Failing(Method):
    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        raise RuntimeError("of its own")


def test_an_error_in_a_hook_itself_stays_as_it_is() -> None:
    with pytest.raises(RuntimeError, match=r"^of its own$"):
        learner_with(Failing()).learn(TASKS[:1], 1)


class Detached(Method):
    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        return super().loss(net, batch, rng).detach()


def test_a_loss_without_a_gradient_is_refused() -> None:
    with pytest.raises(InputError, match=r"Detached.loss returned Tensor .* with a gradient, not detached"):
        learner_with(Detached()).learn(TASKS[:1], 1)


class Unbuilt(Method):
    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        return None  # type: ignore[return-value]


def test_a_method_must_build_a_network() -> None:
    with pytest.raises(InputError, match=r"Unbuilt.build returned NoneType None: it must return a relive.networks.Cl"):
        learner_with(Unbuilt())


class Holding(Method):
    """Remembers one tensor, which it is given."""

    def __init__(self) -> None:
        self.kept = torch.zeros(3)

    def state(self) -> dict[str, Tensor]:
        return {"kept": self.kept}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.kept = state["kept"]


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_a_state_may_have_every_type_that_a_file_has(dtype: torch.dtype, tmp_path: Path) -> None:
    learner, other = learner_with(Holding()), learner_with(Holding())
    learner.method.load_state({"kept": torch.tensor([0, 1, 1]).to(dtype)})
    learner.learn(TASKS[:1], 1)
    write_tensors(tmp_path / "state", "test", 1, {}, learner.state())
    other.restore(read_tensors(tmp_path / "state", "test", 1)[1])
    assert other.method.state()["kept"].dtype == dtype
    assert other.method.state()["kept"].tolist() == [0, 1, 1]


def test_a_type_that_no_file_has_is_refused_and_the_tensor_named() -> None:
    learner = learner_with(Holding())
    learner.method.load_state({"kept": torch.zeros(2, dtype=torch.bfloat16)})
    with pytest.raises(InputError, match=r"Holding.state returned kept of torch.bfloat16, which files do not hold"):
        learner.learn(TASKS[:1], 1)


class Unloaded(Holding):
    def load_state(self, state: dict[str, Tensor]) -> None:
        pass


class Shorter(Holding):
    def load_state(self, state: dict[str, Tensor]) -> None:
        self.kept = state["kept"][:1]


class Doubled(Holding):
    def load_state(self, state: dict[str, Tensor]) -> None:
        self.kept = 2 * state["kept"]


@pytest.mark.parametrize("method", [Unloaded, Shorter, Doubled])
def test_a_state_that_is_not_restored_is_an_error(method: type[Method]) -> None:
    learner = learner_with(Holding())
    learner.method.load_state({"kept": torch.ones(3)})
    with pytest.raises(InputError, match=rf"after {method.__name__}.load_state, state\(\) is not .*: kept is "):
        learner_with(method()).restore(learner.state())


class Anchored(Method):
    """Makes what it needs within a task when the task begins, and so needs no state."""

    def __init__(self) -> None:
        self.anchor: list[Tensor] | None = None

    def before_task(self, net: Classifier, known: int) -> None:
        self.anchor = [p.detach().clone() for p in net.parameters()] if known else None


class Counting(Method):
    """Forgets to return what it counts."""

    def __init__(self) -> None:
        self.counts = torch.zeros(2)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        self.counts = self.counts + 1


def test_only_what_is_really_lost_is_warned_of_after_a_resume() -> None:
    learner, resumed = learner_with(Anchored()), learner_with(Anchored())
    learner.learn(TASKS[:1], 1)
    resumed.restore(learner.state())
    for each in (learner, resumed):
        each.learn(TASKS[:2], 1)  # pytest raises any warning
    learner, resumed = learner_with(Counting()), learner_with(Counting())
    for seen, each in ((1, learner), (2, resumed)):
        with pytest.warns(UserWarning, match=r"Counting changed counts while learning, but its state\(\) returns not"):
            each.learn(TASKS[:seen], 1)
        resumed.restore(learner.state())
