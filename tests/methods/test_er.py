"""Methods that keep samples: the buffer's contents, experience replay and A-GEM against their equations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.core.scenarios import scenario_of
from relive.core.sources import Part
from relive.data.tasks import Task
from relive.methods.buffer import Buffer, in_turns
from relive.methods.er import AGEM, ER
from tests import plain

SCENARIOS = ["task", "domain", "class"]


def kept_loss(theta: plain.Theta, x: Tensor, tasks: list[Task], layout: plain.Layout, seen: int) -> Tensor:
    """Return the mean loss of real samples, one at a time."""
    losses = []
    for row in x:
        k, label = plain.owner(tasks, row)
        losses.append(layout.current_loss(plain.logits(theta, row[None]), k, torch.tensor([label]), seen))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_experience_replay_s_loss_and_gradient(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("er", scenario, tasks, budget=10)
    for k, task in enumerate(tasks):
        seen = k + 1
        for step in plain.record(learner, tasks[:seen], 3):
            theta, x = plain.double(step.theta), step.current.x
            loss = layout.current_loss(plain.logits(theta, x), k, plain.labels_of(task, x), seen)
            assert len(step.replayed) == (8 if k else 0)
            if k:
                loss = loss / seen + (1 - 1 / seen) * kept_loss(theta, step.replayed, tasks[:k], layout, seen)
            plain.check(step, theta, loss)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_gem_s_step_is_the_nearest_one_that_does_not_raise_the_kept_samples_loss(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("agem", scenario, tasks, budget=8)
    method = learner.method
    assert isinstance(method, AGEM)
    turned = 0
    for k, task in enumerate(tasks):
        seen, kept = k + 1, method.buffer_.x.clone()  # eight samples: each batch of eight has all of them
        for step in plain.record(learner, tasks[:seen], 6):
            theta, x = plain.double(step.theta), step.current.x
            loss = layout.current_loss(plain.logits(theta, x), k, plain.labels_of(task, x), seen)
            assert len(step.batch.x) == len(x)
            values = list(theta.values())
            g = torch.cat([t.flatten() for t in torch.autograd.grad(loss, values, retain_graph=True)])
            if k:
                memory = kept_loss(theta, kept, tasks[:k], layout, seen)
                r = torch.cat([t.flatten() for t in torch.autograd.grad(memory, values)])
                if g @ r < 0:
                    turned += 1
                    g = g - (g @ r) / (r @ r) * r
                    assert abs(g @ r) < 1e-9
            assert step.gradient is not None
            taken = torch.cat([step.gradient[name].double().flatten() for name in theta])
            torch.testing.assert_close(taken, g, rtol=2e-4, atol=float(g.abs().max()) * 1e-5)
    assert turned > 0


def test_room_is_given_in_turns() -> None:
    tasks = plain.split_tasks(2)
    scenario = scenario_of("class", [task.classes for task in tasks])
    rng, buffer = stream(0, "test"), Buffer(8)
    ranks = [torch.rand(len(task.train), generator=rng) for task in tasks]
    for k, task in enumerate(tasks):
        buffer.add([Part(k, task.train)], [ranks[k]], scenario)
        assert len(buffer) == 8
        counts = buffer.number.bincount().tolist()
        assert counts == [[3, 3, 2], [2, 2, 1, 1, 1, 1]][k]
    for number in range(6):  # of each class, the lowest ranks
        k, label = divmod(number, 3)
        own = sorted(ranks[k][tasks[k].train.labels == label].tolist())
        kept = sorted(buffer.rank[buffer.number == number].tolist())
        assert kept == own[: len(kept)]
    for x, number, task, unit in zip(buffer.x, buffer.number, buffer.task, buffer.unit, strict=True):
        k, label = plain.owner(tasks, x)
        assert (int(task), int(number), int(unit)) == (k, 3 * k + label, 3 * k + label)


def test_turns_of_classes_of_any_size() -> None:
    number = torch.tensor([2, 0, 0, 2, 1, 0])
    turns = in_turns(number, torch.arange(6.0))
    assert number[turns].tolist() == [0, 1, 2, 0, 2, 0]
    assert sorted(turns.tolist()) == list(range(6))


def test_a_class_that_comes_in_parts_keeps_a_uniform_sample_of_all_of_it() -> None:
    """Rows of both halves are kept equally often: 800 draws, four standard deviations."""
    task = plain.split_tasks(1)[0]
    scenario = scenario_of("class", [task.classes] * 2)
    halves = [task.train.take(torch.arange(27)), task.train.take(torch.arange(27, 54))]
    rng, first, n = stream(0, "test"), 0, 100
    for _ in range(n):
        buffer = Buffer(8)
        for k, half in enumerate(halves):
            buffer.add([Part(k, half)], [torch.rand(27, generator=rng)], scenario)
        first += int((buffer.task == 0).sum())
    share = 27 / 54
    assert abs(first - 8 * n * share) < 4 * (8 * n * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("method", ["er", "agem"])
def test_what_is_kept_is_counted(method: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of(method, "class", tasks, budget=10)
    learner.learn(tasks[:1], 1)
    learner.learn(tasks[:2], 1)
    assert learner.method.stored_numbers(tasks) == 10 * (16 + 4) + 1


def test_kept_samples_are_other_ones_with_another_seed() -> None:
    tasks, kept = plain.split_tasks(), []
    for seed in (0, 0, 1):
        learner = plain.learner_of("er", "class", tasks, seed=seed, budget=6)
        learner.learn(tasks[:1], 1)
        assert isinstance(learner.method, ER)
        kept.append(learner.method.buffer_.x)
    assert torch.equal(kept[0], kept[1])
    assert not torch.equal(kept[0], kept[2])
