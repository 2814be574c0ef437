"""Where rows come from: begin, step and end by hand, joint tasks, and streams in which tasks blend."""

from __future__ import annotations

import pytest
import torch

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.core.scenarios import scenario_of
from relive.core.sources import Blend, Together
from relive.data.protocols import blended
from tests import plain

METHODS = ["none", "ewc", "si", "lwf", "rtf", "offline"]


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
@pytest.mark.parametrize("method", METHODS)
def test_learning_is_begin_step_and_end_around_a_source(method: str, scenario: str) -> None:
    tasks = plain.split_tasks()
    one, other = (plain.learner_of(method, scenario, tasks) for _ in range(2))
    for seen in (1, 2, 3):
        one.learn(tasks[:seen], 4)
        source = Together(other.scenario, tasks[:seen], other.problem.batch_size, other.batch_rng)
        other.begin(seen)
        rows = other.method.source(source)
        with other.training():
            for _ in range(4):
                other.step(rows())
        other.end(source.learned())
    states = one.state(), other.state()
    assert states[0].keys() == states[1].keys()
    assert [name for name in states[0] if not torch.equal(states[0][name], states[1][name])] == []


@pytest.mark.parametrize("n_tasks", [1, 2, 5])
def test_one_task_grows_while_the_one_before_shrinks(n_tasks: int) -> None:
    steps = 40
    whole = torch.cat([torch.cat(blended(k, n_tasks, steps, every=7)) for k in range(n_tasks)])  # (steps, tasks)
    assert whole.shape == (steps * n_tasks, n_tasks)
    torch.testing.assert_close(whole.sum(1), torch.ones(len(whole)))
    assert ((whole > 0).sum(1) <= 2).all(), "no more than two at a time"
    for k in range(n_tasks):
        middle = k * steps + steps // 2
        assert whole[middle - 1 : middle + 1, k].tolist() == pytest.approx([1, 1], abs=1 / steps)
        rises, falls = whole[:middle, k].diff(), whole[middle:, k].diff()
        assert (rises >= 0).all()
        assert (falls <= 0).all()
    assert [len(stretch) for stretch in blended(0, n_tasks, steps, every=15)] == [15, 15, 10]


def test_a_blend_draws_each_task_by_its_share_and_says_what_it_drew() -> None:
    tasks = plain.split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    shares = torch.tensor([[0.75, 0.25, 0.0]] * 200 + [[0.0, 0.0, 1.0]] * 10)
    source = Blend(scenario, tasks, 8, stream(0, "test"), shares)
    batches = [source() for _ in shares]
    owner = torch.cat([batch.task for batch in batches[:200]])
    n = len(owner)
    assert n == 1600
    # a binomial variable: three standard deviations
    assert (owner == 0).sum().item() == pytest.approx(0.75 * n, abs=3 * (0.75 * 0.25 * n) ** 0.5)
    assert not (owner == 2).any()
    assert all((batch.task == 2).all() for batch in batches[200:])
    for batch in batches[::20]:
        assert batch.weight.tolist() == pytest.approx([1 / 8] * 8)
        for k in set(batch.task.tolist()):
            mine = batch.task == k
            label = plain.labels_of(tasks[k], batch.x[mine])
            assert torch.equal(batch.target[mine].argmax(1), scenario.units(k)[label])
    learned = {part.task: part.examples for part in source.learned()}
    assert sorted(learned) == [0, 1, 2]
    for k, examples in learned.items():
        drawn = torch.unique(torch.cat([batch.x[batch.task == k] for batch in batches]), dim=0)
        assert torch.equal(torch.unique(examples.inputs(slice(None)), dim=0), drawn)


def test_shares_of_tasks_that_were_not_given_are_refused() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", "class", tasks)
    with pytest.raises(InputError, match="got 2 tasks and the shares of 3 after 0 seen ones"):
        learner.learn_blend(tasks[:2], torch.ones(4, 3) / 3)
