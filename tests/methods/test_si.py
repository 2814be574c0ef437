"""Synaptic Intelligence recomputed from the recorded path of the parameters."""

from __future__ import annotations

import pytest
import torch

from relive.methods.si import SI
from tests import plain

SCENARIOS = ["task", "domain", "class"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_importances_and_penalty(scenario: str) -> None:
    c, xi, tasks = 50.0, 0.05, plain.split_tasks()
    layout = plain.Layout.of(scenario, tasks)
    learner = plain.learner_of("si", scenario, tasks, c=c, xi=xi)
    Omega = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in learner.net.named_parameters()}
    shares: list[float] = []
    for k, task in enumerate(tasks):
        anchor = plain.parameters(learner.net)
        omega = {name: torch.zeros_like(t) for name, t in Omega.items()}
        for step in plain.record(learner, tasks[: k + 1], 6):
            theta = plain.double(step.theta)
            loss = layout.current_loss(
                plain.logits(theta, step.batch.x), k, plain.labels_of(task, step.batch.x), seen=k + 1
            )
            penalty = c * plain.pull(theta, Omega, anchor)
            plain.check(step, theta, loss, penalty)  # so step.gradient is the gradient of the total loss
            shares.append((penalty / loss).item())
            assert step.gradient is not None
            assert step.after is not None
            for name in omega:
                moved = step.after[name].double() - step.theta[name].double()
                omega[name] += moved * -step.gradient[name].double()
        for name, p in learner.net.named_parameters():
            delta = p.detach().double() - anchor[name].double()
            Omega[name] += omega[name] / (delta**2 + xi)
        assert isinstance(learner.method, SI)
        for mine, theirs in zip(Omega.values(), learner.method.Omega_, strict=True):
            torch.testing.assert_close(theirs.double(), mine, rtol=1e-3, atol=1e-7)
    assert max(shares) > 0.01, "the penalty is too small for this test to see it"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_strength_is_fine_tuning_bit_for_bit(scenario: str) -> None:
    tasks = plain.split_tasks()
    learners = [plain.learner_of("si", scenario, tasks, c=0), plain.learner_of("none", scenario, tasks)]
    for k in (1, 2):
        for learner in learners:
            learner.learn(tasks[:k], 5)
    ours, none = (plain.parameters(learner.net) for learner in learners)
    assert all(torch.equal(ours[name], none[name]) for name in none)


def test_a_parameter_that_never_moves_is_unimportant() -> None:
    """Task-IL: the heads of future tasks get no gradient."""
    tasks = plain.split_tasks()
    learner = plain.learner_of("si", "task", tasks)
    learner.learn(tasks[:1], 4)
    assert isinstance(learner.method, SI)
    head = dict(zip(dict(learner.net.named_parameters()), learner.method.Omega_, strict=True))["head.weight"]
    assert head[:2].abs().sum() > 0
    assert not head[2:].any()


def test_memory_does_not_grow() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("si", "class", tasks)
    for k in (1, 2, 3):
        learner.learn(tasks[:k], 1)
        assert learner.method.stored_numbers(tasks) == sum(p.numel() for p in learner.net.parameters())


def test_state_keeps_the_order_of_many_tensors() -> None:
    many = [torch.full((1,), float(i)) for i in range(12)]
    si, again = SI(), SI()
    si.Omega_ = many
    again.load_state(dict(sorted(si.state().items())))
    assert again.Omega_ == many
