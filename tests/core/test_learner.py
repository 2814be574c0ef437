"""The training loop: how rows are drawn, how Adam's state carries over, and that a learner can be saved and resumed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.core.sources import Part, Rows
from relive.data.protocols import tasks_of
from relive.methods import METHODS
from relive.methods.none import FineTuning
from relive.networks import Classifier
from tests import plain

METHOD_NAMES = list(METHODS)
sizes = st.integers(1, 12)


@given(st.integers(1, 40), sizes, st.integers(0, 99))
def test_an_epoch_has_no_repeats_and_drops_the_rest(n: int, size: int, seed: int) -> None:
    draw = Rows([n], size, stream(seed, "batches"))
    size = min(size, n)
    for _ in range(3):
        epoch = torch.cat([draw()[0] for _ in range(n // size)]).tolist()
        assert len(epoch) == n // size * size  # the last incomplete batch is dropped
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(range(n))


def test_every_epoch_is_shuffled_anew() -> None:
    draw = Rows([100], 10, stream(0, "batches"))
    epochs = [torch.cat([draw()[0] for _ in range(10)]).tolist() for _ in range(3)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(100))
    assert list(range(100)) not in epochs
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


def test_the_rows_that_were_dropped_come_in_other_epochs() -> None:
    draw = Rows([7], 5, stream(0, "batches"))
    assert {int(i) for _ in range(20) for i in draw()[0]} == set(range(7))


@given(st.lists(sizes, min_size=1, max_size=5), sizes, st.integers(0, 99))
def test_pooled_tasks_know_whose_row_it_is(lengths: list[int], size: int, seed: int) -> None:
    draw, total = Rows(lengths, size, stream(seed, "batches")), sum(lengths)
    size = min(size, total)
    epoch: list[list[int]] = [[] for _ in lengths]
    for _ in range(total // size):
        drawn = draw()
        assert len(drawn) == len(lengths)
        assert sum(map(len, drawn)) == size
        for own, some in zip(epoch, drawn, strict=True):
            own += some.tolist()
    for own, length in zip(epoch, lengths, strict=True):
        assert len(set(own)) == len(own)
        assert all(0 <= i < length for i in own)
    if total % size == 0:
        assert [sorted(own) for own in epoch] == [list(range(length)) for length in lengths]


@pytest.mark.parametrize(("method", "scenario"), plain.CELLS)
def test_weights(method: str, scenario: str) -> None:
    """Current rows weigh 1/N of the loss if there is replay, all of it otherwise; the weights sum to 1."""
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, scenario, tasks)
    replays = method in ("lwf", "dgr", "dgr-distill", "rtf", "bir", "pseudo-rehearsal", "er", "icarl")
    for seen in (1, 2, 3):
        for step in plain.record(learner, tasks[:seen], 2):
            n = len(step.current)
            assert step.current.weight.sum().item() == pytest.approx(1)
            assert step.batch.weight.sum().item() == pytest.approx(1)
            assert step.batch.weight[:n].sum().item() == pytest.approx(1 / seen if replays else 1)
            for group in (step.batch.weight[:n], step.batch.weight[n:]):
                assert group.tolist() == pytest.approx([group.mean().item()] * len(group), nan_ok=True)


@pytest.mark.parametrize("method", ["none", "ewc", "rtf"])
def test_adam_is_never_reset(method: str) -> None:
    tasks, rate = plain.split_tasks(), 0.01
    learner = plain.learner_of(method, "class", tasks, learning_rate=rate)
    start = plain.parameters(learner.net)
    gradients: dict[str, list[Tensor]] = {name: [] for name in start}
    for seen in (1, 2, 3):
        for step in plain.record(learner, tasks[:seen], 4):
            assert step.gradient is not None
            for name in start:
                gradients[name].append(step.gradient[name])
    for name, p in plain.parameters(learner.net).items():
        expected = plain.adam(gradients[name], start[name], rate)
        torch.testing.assert_close(p.double(), expected, rtol=1e-4, atol=1e-6, msg=name)


def snapshot(learner: Learner) -> dict[str, Tensor]:
    return copy.deepcopy(learner.state())


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.parametrize(("method", "scenario"), plain.CELLS)
def test_going_on_from_a_state_gives_the_same_bits(method: str, scenario: str) -> None:
    tasks = plain.split_tasks()
    whole = plain.learner_of(method, scenario, tasks)
    states = []
    for seen in (1, 2, 3):
        whole.learn(tasks[:seen], 5)
        states.append(snapshot(whole))
    for start in (1, 2):
        other = plain.learner_of(method, scenario, tasks)
        other.load_state(states[start - 1])
        assert other.seen == start
        assert_same(other.state(), states[start - 1])
        for seen in range(start + 1, 4):
            other.learn(tasks[:seen], 5)
        assert_same(other.state(), states[-1])
        x = tasks[0].test.inputs(slice(None))
        assert torch.equal(other.predict(x, 0), whole.predict(x, 0))


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_the_same_learner_can_go_back(method: str) -> None:
    """To the start as well, where Adam had no state yet."""
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, "task", tasks)
    states = [snapshot(learner)]
    for seen in (1, 2):
        learner.learn(tasks[:seen], 4)
        states.append(snapshot(learner))
    for start in (1, 0):
        learner.load_state(copy.deepcopy(states[start]))
        for seen in range(start + 1, 3):
            learner.learn(tasks[:seen], 4)
        assert_same(learner.state(), states[-1])


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_state_stays_as_it_was_when_the_learner_goes_on(method: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, "task", tasks)
    learner.learn(tasks[:1], 2)
    state = learner.state()
    as_it_was = copy.deepcopy(state)
    learner.learn(tasks[:2], 2)
    assert_same(state, as_it_was)


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_learner_leaves_the_state_that_it_loaded_alone(method: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, "task", tasks)
    learner.learn(tasks[:1], 2)
    state = snapshot(learner)
    as_it_was = copy.deepcopy(state)
    other = plain.learner_of(method, "task", tasks)
    other.load_state(state)
    other.learn(tasks[:2], 2)
    assert_same(state, as_it_was)


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_copy_goes_on_by_itself(method: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, "task", tasks)
    for k in (1, 2):
        learner.learn(tasks[:k], 3)
    before, other = snapshot(learner), copy.deepcopy(learner)
    assert_same(other.state(), before)
    other.learn(tasks, 3)
    assert_same(learner.state(), before)
    learner.learn(tasks, 3)
    assert_same(learner.state(), other.state())


@pytest.mark.parametrize("method", [*sorted({name for name, _ in plain.CELLS}), "analytic"])
def test_the_seed_decides(method: str) -> None:
    tasks = plain.split_tasks()
    ends = []
    for seed in (1, 1, 2):
        learner = plain.learner_of(method, "task", tasks, seed=seed)
        learner.learn(tasks[:1], 3)
        learner.learn(tasks[:2], 3)
        ends.append(learner.state())
    assert_same(ends[0], ends[1])
    assert any(not torch.equal(ends[0][name], ends[2][name]) for name in ends[0] if name.startswith("net."))


def test_batches_and_noise_have_a_stream_each() -> None:
    """So that a method that draws noise gets the same batches as one that draws none."""
    tasks = plain.split_tasks()
    learner, other = (plain.learner_of(method, "class", tasks) for method in ("none", "rtf"))
    assert not torch.equal(learner.batch_rng.get_state(), learner.noise_rng.get_state())
    for seen in (1, 2):
        steps = (plain.record(who, tasks[:seen], 4) for who in (learner, other))
        for ours, theirs in zip(*steps, strict=True):
            assert torch.equal(ours.current.x, theirs.current.x)


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_prediction_is_the_best_active_unit(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("none", scenario, tasks)
    for seen in (1, 2, 3):
        learner.learn(tasks[:seen], 2)
        theta = plain.double(plain.parameters(learner.net))
        for k in range(seen):
            x, columns = tasks[k].test.inputs(slice(None)), layout.columns(k, seen)
            expected = torch.tensor(columns)[plain.logits(theta, x)[:, columns].argmax(1)]
            assert torch.equal(learner.predict(x, k), expected)


def test_on_step_counts_from_1_and_tells_the_loss() -> None:
    tasks = plain.split_tasks()
    told: list[tuple[int, float]] = []
    plain.learner_of("none", "class", tasks).learn(tasks[:1], 3, lambda i, loss: told.append((i, loss)))
    assert [i for i, _ in told] == [1, 2, 3]
    assert all(0 < loss < 10 for _, loss in told)


def test_fine_tuning_learns_its_task_and_forgets_the_one_before() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", "class", tasks)

    def right(k: int) -> float:
        units = learner.scenario.units(k)[tasks[k].test.labels]
        return float((learner.predict(tasks[k].test.inputs(slice(None)), k) == units).float().mean())

    learner.learn(tasks[:1], 60)
    assert right(0) == 1
    learner.learn(tasks[:2], 60)
    assert right(1) == 1
    assert right(0) == 0


def test_a_task_smaller_than_a_batch() -> None:
    tasks = plain.split_tasks()
    steps = plain.record(plain.learner_of("none", "class", tasks, batch_size=1000), tasks[:1], 2)
    assert [len(step.batch) for step in steps] == [18, 18]


def test_tasks_that_do_not_follow_on_are_refused() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("rtf", "class", tasks)
    with pytest.raises(InputError, match="learn got 2 tasks after 0 learned ones"):
        learner.learn(tasks[:2], 1)
    learner.learn(tasks[:1], 1)
    with pytest.raises(InputError, match="learn got 1 tasks after 1 learned ones"):
        learner.learn(tasks[1:2], 1)
    assert learner.seen == 1


@pytest.mark.parametrize(
    ("n_classes", "per_task", "method", "scenario"),
    [
        *((20, per_task, *cell) for per_task in (2, 5) for cell in plain.CELLS),
        *(  # except the one with a network for each class, which has no shared output layer
            pytest.param(140, 28, *cell, marks=pytest.mark.slow)
            for cell in plain.CELLS
            if cell[0] != "generative-classifier"
        ),
    ],
)
def test_growing_is_as_if_everything_had_been_known_from_the_start(
    method: str, scenario: str, n_classes: int, per_task: int
) -> None:
    """The output layer outgrows its first sixteen units, once by four blocks: bit-identical after every task."""
    tasks = tasks_of("split", plain.tiny_dataset(n_classes=n_classes), n_classes // per_task, seed=0)
    whole, growing = (plain.learner_of(method, scenario, some) for some in (tasks, tasks[:1]))
    for seen in range(1, len(tasks) + 1):
        if seen > 1:
            growing.grow(scenario_of(scenario, [task.classes for task in tasks[:seen]]))
        for learner in (whole, growing):
            learner.learn(tasks[:seen], 4)
        ours, theirs = growing.state(), whole.state()
        parts = method == "generative-classifier"  # its networks for later classes do not exist yet
        assert ours.keys() <= theirs.keys() if parts else ours.keys() == theirs.keys()
        for name, tensor in ours.items():
            there = theirs[name][: len(tensor)] if tensor.dim() else theirs[name]
            if name.startswith("method.anchor"):  # with zero importance, the anchor does not matter
                held = ours[name.replace("anchor", "fisher")] > 0
                tensor, there = tensor[held], there[held]
            assert torch.equal(tensor, there), (seen, name)
        x = tasks[0].test.inputs(slice(None))
        assert torch.equal(growing.predict(x, 0), whole.predict(x, 0))


def test_a_learner_can_be_told_to_stop() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("si", "class", tasks)
    told: list[int] = []

    def on_step(iteration: int, loss: float) -> bool:
        told.append(iteration)
        return iteration == 3

    learner.learn(tasks[:1], 10, on_step)
    assert told == [1, 2, 3]
    assert learner.method.state(), "the task is finished nevertheless"


class Wrong(FineTuning):
    """Returns an invalid value from a hook."""


@pytest.mark.parametrize(
    ("hook", "value", "message"),
    [
        (
            "replay",
            (torch.zeros(2, 3), [0, 1]),
            r"Wrong.replay returned tuple .*: it must return a relive.core.batch.B",
        ),
        ("loss", 3.0, r"Wrong.loss returned float 3.0: it must return a tensor of one number"),
        ("loss", torch.zeros(2), r"Wrong.loss returned Tensor .*: it must return a tensor of one number"),
        ("state", {"n": 3}, r"Wrong.state returned dict {'n': 3}: it must return tensors by name: torch.tensor\(3\)"),
        ("state", None, r"Wrong.state returned NoneType None: it must return a dictionary of tensors by name"),
    ],
)
def test_what_a_hook_returns_is_checked_and_the_hook_named(hook: str, value: object, message: str) -> None:
    tasks = plain.split_tasks()
    learner = Learner(Wrong(), scenario_of("class", [task.classes for task in tasks]), tasks[0].n_inputs, hidden=12)

    def returns(*arguments: object) -> object:
        return value

    returns.__qualname__ = f"Wrong.{hook}"
    setattr(learner.method, hook, returns)
    with pytest.raises(InputError, match=message):
        learner.learn(tasks[:1], 1)


class Decaying(FineTuning):
    """Adds the gradient of a regulariser in place, as a first version often does."""

    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        for parameter, g in zip(theta, gradient, strict=True):
            g.add_(parameter, alpha=1e6)

    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        theta[0].mul_(1.0)


def test_hooks_change_gradients_and_parameters_in_place() -> None:
    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    learners = [Learner(method, scenario, tasks[0].n_inputs, hidden=12) for method in (FineTuning(), Decaying())]
    for learner in learners:
        learner.learn(tasks[:1], 3)
    free, held = (sum(float(t.detach().norm()) for t in learner.optimizer.parameters) for learner in learners)
    assert held < free, "the weights decay"


class Forgetful(FineTuning):
    """Keeps samples, but not in its state."""

    def __init__(self) -> None:
        self.kept: list[tuple[Tensor, int]] = []
        self.fixed = torch.ones(3)

    def before_task(self, net: Classifier, known: int) -> None:
        self.only_for_this_task = torch.zeros(2)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        self.kept.append((learned[0].examples.pixels[:2], seen))


class Remembering(Forgetful):
    """Returns them in its state."""

    def state(self) -> dict[str, Tensor]:
        return {str(seen): x for x, seen in self.kept}


def test_a_method_that_keeps_tensors_out_of_its_state_is_warned_of() -> None:
    """Tensors that are reset for each task, or never change, are not memory."""
    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    with pytest.warns(UserWarning, match=r"Forgetful changed kept while learning, but its state\(\) returns not"):
        Learner(Forgetful(), scenario, tasks[0].n_inputs, hidden=12).learn(tasks[:1], 1)
    Learner(Remembering(), scenario, tasks[0].n_inputs, hidden=12).learn(tasks[:1], 1)  # pytest raises any warning
