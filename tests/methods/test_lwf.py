"""Learning without Forgetting against a distillation loss per head."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from relive._util.fidelity import AS_RUN
from relive.core.learner import Learner
from tests import plain


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
@pytest.mark.parametrize("targets", ["mean", "sum"])
def test_loss_and_gradient(scenario: str, targets: Literal["mean", "sum"]) -> None:
    tasks = plain.split_tasks()
    fidelity = AS_RUN.choose({"distillation_loss": targets})
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("lwf", scenario, tasks, fidelity)
    for k, task in enumerate(tasks):
        seen = k + 1
        teacher = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        for step in plain.record(learner, tasks[:seen], 3):
            x = step.current.x
            assert len(x) == 8
            assert torch.equal(step.batch.x, x)
            theta = plain.double(step.theta)
            out = plain.logits(theta, x)
            loss = layout.current_loss(out, k, plain.labels_of(task, x), seen)
            if k:
                said = plain.logits(teacher, x)
                heads = [layout.replay_rows(out, said, head, seen, targets).mean() for head in layout.heads(seen)]
                loss = loss / seen + (1 - 1 / seen) * torch.stack(heads).mean()
            plain.check(step, theta, loss)


def test_the_teacher_does_not_learn() -> None:
    """At the first step of a task the student equals the teacher; later it differs, and the targets stay."""
    tasks = plain.split_tasks()
    learner = plain.learner_of("lwf", "domain", tasks)
    learner.learn(tasks[:1], 5)
    said = {row.numpy().tobytes(): p for row, p in zip(*soft(learner, tasks[1].train.inputs(slice(None))), strict=True)}
    for step in plain.record(learner, tasks[:2], 5):
        for row, target in zip(step.current.x, step.batch.target[len(step.current) :], strict=True):
            torch.testing.assert_close(target[:2], said[row.numpy().tobytes()])


def soft(learner: Learner, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    theta = {name: t.double() for name, t in plain.parameters(learner.net).items()}
    return x, (plain.logits(theta, x)[:, :2] / 2).softmax(1).float()


def test_keeps_nothing_besides_the_network() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("lwf", "class", tasks)
    learner.learn(tasks[:1], 1)
    assert learner.method.stored_numbers(tasks) == 0
