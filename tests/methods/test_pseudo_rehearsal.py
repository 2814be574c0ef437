"""Pseudo-rehearsal against a distillation loss per head, on noise inputs."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch

from relive._util.fidelity import AS_RUN
from relive._util.seeds import stream
from relive.networks.likelihoods import LIKELIHOODS
from tests import plain


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
@pytest.mark.parametrize("targets", ["mean", "sum"])
def test_loss_and_gradient(scenario: str, targets: Literal["mean", "sum"]) -> None:
    tasks = plain.split_tasks()
    fidelity = AS_RUN.choose({"distillation_loss": targets})
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("pseudo-rehearsal", scenario, tasks, fidelity)
    for k, task in enumerate(tasks):
        seen, heads = k + 1, layout.heads(k + 1)
        teacher = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        for step in plain.record(learner, tasks[:seen], 3):
            theta, x = plain.double(step.theta), step.current.x
            loss = layout.current_loss(plain.logits(theta, x), k, plain.labels_of(task, x), seen)
            if k:
                share = math.ceil(8 / len(heads))
                rng = torch.Generator()
                rng.set_state(step.noise)
                noise = torch.randint(2, (share * len(heads), 16), generator=rng).float()
                assert torch.equal(step.replayed, noise)
                rows = [
                    layout.replay_rows(plain.logits(theta, some), plain.logits(teacher, some), head, seen, targets)
                    for head, some in zip(heads, torch.split(noise, share), strict=True)
                ]
                loss = loss / seen + (1 - 1 / seen) * torch.cat(rows).mean()
            plain.check(step, theta, loss)


def test_noise_is_like_the_inputs_in_kind() -> None:
    bits = LIKELIHOODS["bernoulli"].noise((100, 100), stream(0, "test"))
    assert set(bits.flatten().tolist()) == {0.0, 1.0}
    assert bits.mean().item() == pytest.approx(0.5, abs=4 * 0.5 / 100)
    normal = LIKELIHOODS["gaussian"].noise((100, 100), stream(0, "test"))
    assert (normal.mean().item(), normal.std().item()) == pytest.approx((0, 1), abs=0.04)


def test_keeps_nothing_besides_the_network() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("pseudo-rehearsal", "class", tasks)
    learner.learn(tasks[:1], 1)
    assert learner.method.stored_numbers(tasks) == 0
