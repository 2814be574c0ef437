"""Joint training: which rows it draws, and how they are weighted."""

from __future__ import annotations

import math

import pytest
import torch

from relive.data.tasks import Task
from tests import plain


def owners(tasks: list[Task], x: torch.Tensor) -> list[int]:
    """Return the task of each row."""
    rows = [{row.numpy().tobytes() for row in task.train.inputs(slice(None))} for task in tasks]
    return [next(k for k in range(len(tasks)) if row.numpy().tobytes() in rows[k]) for row in x]


@pytest.mark.parametrize("scenario", ["domain", "class"])
def test_one_softmax_draws_from_all_tasks_together(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("offline", scenario, tasks, batch_size=9)
    for seen in (1, 2, 3):
        for step in plain.record(learner, tasks[:seen], 3):
            assert len(step.batch.x) == 9
            theta = plain.double(step.theta)
            out, rows = plain.logits(theta, step.batch.x), owners(tasks, step.batch.x)
            losses = []
            for i, k in enumerate(rows):  # 9 rows from all tasks, equally weighted
                labels = plain.labels_of(tasks[k], step.batch.x[i : i + 1])
                losses.append(layout.current_loss(out[i : i + 1], k, labels, seen))
            plain.check(step, theta, torch.stack(losses).mean())
    assert set(rows) == {0, 1, 2}


def test_task_il_draws_an_equal_share_of_every_task() -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of("task", tasks), plain.learner_of("offline", "task", tasks, batch_size=8)
    for seen in (1, 2, 3):
        for step in plain.record(learner, tasks[:seen], 3):
            share = math.ceil(8 / seen)
            assert owners(tasks, step.batch.x) == [k for k in range(seen) for _ in range(share)]
            theta, losses = plain.double(step.theta), []
            for k, x in enumerate(torch.split(step.batch.x, share)):
                losses.append(layout.current_loss(plain.logits(theta, x), k, plain.labels_of(tasks[k], x), seen))
            plain.check(step, theta, torch.stack(losses).mean())


def test_an_epoch_sees_every_row_of_all_tasks_once() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("offline", "class", tasks, batch_size=9)
    plain.record(learner, tasks[:1], 1)
    steps = plain.record(learner, tasks[:2], 4)  # 2 tasks x 18 rows
    seen = [row.numpy().tobytes() for step in steps for row in step.batch.x]
    everything = torch.cat([task.train.inputs(slice(None)) for task in tasks[:2]])
    assert sorted(seen) == sorted(row.numpy().tobytes() for row in everything)


def test_it_goes_on_from_task_to_task() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("offline", "class", tasks)
    after = plain.record(learner, tasks[:1], 2)[-1].after
    before = plain.record(learner, tasks[:2], 1)[0].theta
    assert after is not None
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_it_keeps_every_input() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("offline", "class", tasks)
    assert learner.method.stored_numbers(tasks) == 6 * 9 * 16  # classes x rows x pixels
    assert learner.method.stored_numbers(tasks[:1]) == 2 * 9 * 16
