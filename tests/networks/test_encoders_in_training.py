"""Encoders in training: frozen and unusual parameters, and modules that behave differently in training mode."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from relive._util.errors import InputError
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.methods import make_method
from relive.methods.none import FineTuning
from relive.networks import mlp
from relive.networks.encoders import mode, trainable
from tests import plain
from tests.networks.learners import batch_norm, half_frozen, learner_of, same


@pytest.mark.parametrize("method", ["none", "ewc", "online-ewc", "si", "lwf", "dgr", "rtf", "offline", "xdg"])
def test_frozen_parameters_stay_frozen(method: str) -> None:
    tasks = plain.split_tasks()
    learner = learner_of(method, half_frozen, n_tasks=1, scenario="task")
    before = plain.parameters(learner.net)
    for k in (1, 2, 3):
        if method != "xdg":  # whose gates depend on the number of tasks
            learner.grow(scenario_of("task", [task.classes for task in tasks[:k]]))
        elif k > 1:
            break
        learner.learn(tasks[:k], 3)
    frozen = {"encoder.layer1.weight", "encoder.layer1.bias", "encoder.layer2.bias"}
    frozen |= {f"vae.{name}" for name in frozen} & before.keys()
    for name, p in learner.net.named_parameters():
        assert torch.equal(p[: len(before[name])], before[name]) == (name in frozen), name
    assert learner.n_parameters < sum(p.numel() for p in learner.net.parameters())
    assert len(learner.optimizer.slots["m"]) == len(trainable(learner.net)) == len(before) - len(frozen)
    again = learner_of(method, half_frozen, n_tasks=1 if method == "xdg" else 3, scenario="task")
    again.load_state(learner.state())
    assert same(again.state(), learner.state())


def test_freezing_is_the_same_as_a_gradient_of_zero() -> None:
    class Zeroed(FineTuning):
        def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
            for i in (0, 1, 3):  # those that half_frozen freezes
                gradient[i].zero_()

    scenario, ends = scenario_of("class", [task.classes for task in plain.split_tasks()]), []
    for method, encoder in ((FineTuning(), half_frozen), (Zeroed(), mlp)):
        learner = Learner(method, scenario, 16, encoder=encoder, hidden=12)
        learner.learn(plain.split_tasks()[:1], 5)
        ends.append(plain.parameters(learner.net))
    assert same(*ends)


def test_mode() -> None:
    net = nn.Sequential(nn.Dropout())
    with mode(net, training=False):
        assert not net[0].training
    assert net[0].training


@pytest.mark.parametrize("method", [name for name, _ in plain.CELLS if name != "xdg"][::3])
def test_batch_norm_and_dropout(method: str) -> None:
    """Noise only in training; bit-identical for a seed, whether evaluated, resumed or grown meanwhile."""
    tasks = plain.split_tasks()
    classes = [task.classes for task in tasks]
    whole, other, grown, resumed = (learner_of(method, batch_norm, n) for n in (3, 3, 1, 3))
    x = tasks[0].test.inputs(slice(None))
    for k in (1, 2, 3):
        torch.manual_seed(k)  # has no effect
        whole.learn(tasks[:k], 4)
        torch.manual_seed(99)
        other.learn(tasks[:k], 4, lambda i, loss: bool(whole.predict(x, 0).sum() < 0))  # evaluating changes nothing
        grown.grow(scenario_of("class", classes[:k]))
        grown.learn(tasks[:k], 4)
        state, resumed = resumed.state(), learner_of(method, batch_norm)
        resumed.load_state(state)
        resumed.learn(tasks[:k], 4)
        assert not whole.net.training
    state = whole.state()
    tracked = {name: int(t) for name, t in state.items() if name.endswith("encoder.1.num_batches_tracked")}
    if "net.encoder.1.num_batches_tracked" in tracked:
        assert set(tracked.values()) == {12}
        assert state["net.encoder.1.running_mean"].any()
    else:  # a network for each of six classes
        assert len(tracked) == 6
        assert set(tracked.values()) <= {3, 4}
    assert same(state, other.state())
    assert same(state, resumed.state())
    assert same(state, grown.state())
    assert torch.equal(whole.predict(x, 0), whole.predict(x, 0))


def test_looking_while_learning_is_in_evaluation_mode() -> None:
    tasks, modes = plain.split_tasks(), list[bool]()

    class Spy(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            modes.append(self.training)
            return super().forward(input)

    learner = learner_of("rtf", lambda shape, hidden, rng: Spy(16, hidden))
    x = tasks[0].test.inputs(slice(None))
    learner.learn(tasks[:1], 1)
    modes.clear()
    learner.learn(tasks[:2], 2, lambda i, loss: bool(learner.predict(x, 0).sum() < 0))
    assert modes == [False, True, False] * 2  # teacher, step, evaluation
    with pytest.raises(ZeroDivisionError):
        learner.learn(tasks, 2, lambda i, loss: bool(1 / 0))
    assert not learner.net.training


def test_dropout_differs_from_step_to_step_and_task_to_task() -> None:
    tasks, seen = plain.split_tasks(), list[Tensor]()

    class Kept(nn.Dropout):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            out = super().forward(torch.ones_like(input))
            if self.training:
                seen.append(out)
            return input * out

    learner = learner_of("none", lambda shape, hidden, rng: nn.Sequential(Kept(0.5), nn.Linear(16, hidden)))
    for k in (1, 2):
        learner.learn(tasks[:k], 3)
    assert len({tuple(mask.flatten().tolist()) for mask in seen}) == len(seen) == 6


class Unusual(nn.Module):
    """A scalar parameter, two parameters with one gradient, one whose gradient is expanded, and one unused."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.a, self.b = nn.Parameter(torch.zeros(1, 16)), nn.Parameter(torch.ones(1, 16))
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x * self.scale + (self.a + self.b), (self.a + self.b).sum().expand(len(x), 1)], 1)


@pytest.mark.parametrize("method", ["none", "ewc", "si", "rtf"])
def test_unusual_parameters(method: str) -> None:
    tasks = plain.split_tasks()
    learner = learner_of(method, lambda shape, hidden, rng: Unusual(), 1)
    start = plain.parameters(learner.net)
    for k in (1, 2):
        learner.grow(scenario_of("class", [task.classes for task in tasks[:k]]))
        learner.learn(tasks[:k], 3)
    for name, p in learner.net.encoder.named_parameters():
        assert torch.equal(p, start[f"encoder.{name}"]) == name.startswith("unused"), name


def test_a_gradient_can_be_changed_in_place_without_changing_another() -> None:
    class HoldsA(FineTuning):
        def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
            gradient[1].zero_()  # of a, which shares b's gradient tensor

    scenario = scenario_of("class", [task.classes for task in plain.split_tasks()])
    learner = Learner(HoldsA(), scenario, 16, encoder=lambda shape, hidden, rng: Unusual())
    learner.learn(plain.split_tasks()[:1], 2)
    encoder = learner.net.encoder
    assert isinstance(encoder, Unusual)
    assert not encoder.a.any()
    assert (encoder.b != 1).all()


def test_batch_normalisation_of_one_row_is_refused_in_words() -> None:
    def normalised(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
        return nn.Sequential(nn.Linear(16, hidden), nn.BatchNorm1d(hidden))

    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    learner = Learner(make_method("none"), scenario, 16, hidden=5, batch_size=1, encoder=normalised)
    with pytest.raises(InputError, match="batch normalisation needs at least 2 rows per step, but got 1"):
        learner.learn(tasks[:1], 1)
