"""A VAE for every class: its loss written out, its likelihood by integration, and that no other parameter changes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from relive._util.seeds import stream
from relive.core.learner import Learner
from relive.networks import Sizes, VAEPerClass
from tests import plain

SCENARIOS = ["task", "domain", "class"]
SMALL: dict[str, Any] = {"hidden": 6.0, "latent": 2.0, "samples": 7.0}


def vaes(learner: Learner) -> VAEPerClass:
    assert isinstance(learner.net, VAEPerClass)
    return learner.net


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_loss_and_gradient(scenario: str) -> None:
    """Every row through the VAE of its class, in the order of the noise: class by class."""
    tasks = plain.split_tasks()
    learner = plain.learner_of("generative-classifier", scenario, tasks, **SMALL)
    for k, task in enumerate(tasks):
        for step in plain.record(learner, tasks[: k + 1], 3):
            theta, x = plain.double(step.theta), step.current.x
            labels, rng = plain.labels_of(task, x), torch.Generator()
            rng.set_state(step.noise)
            loss = torch.zeros((), dtype=torch.double)
            for label in sorted(set(labels.tolist())):
                prefix, mine = f"vaes.{2 * k + label}.", x[labels == label].double()
                mu, logvar = plain.dense(theta, f"{prefix}feedback.latent", plain.hidden(theta, mine, prefix)).chunk(
                    2, 1
                )
                z = mu + (logvar / 2).exp() * torch.randn(mu.shape, generator=rng).double()
                recon = F.binary_cross_entropy(plain.decode(theta, z, prefix), mine, reduction="sum")
                kl = torch.distributions.kl_divergence(
                    torch.distributions.Normal(mu, (logvar / 2).exp()), torch.distributions.Normal(0.0, 1.0)
                )
                loss = loss + (recon + kl.sum()) / len(x)
            plain.check(step, theta, loss)


def exact(theta: plain.Theta, prefix: str, x: Tensor) -> Tensor:
    """Return log p(x) of one input with one latent variable, integrated over a fine grid."""
    z = torch.linspace(-8, 8, 4001, dtype=torch.double)
    pixels = plain.decode(theta, z[:, None], prefix)
    log_p = -F.binary_cross_entropy(pixels, x.double().expand_as(pixels), reduction="none").sum(1)
    log_prior = -0.5 * (z.square() + math.log(2 * math.pi))
    return (log_p + log_prior).logsumexp(0) + math.log(16 / 4000)


def test_the_likelihood_is_the_integral_over_the_latent_variable() -> None:
    net = VAEPerClass(Sizes(16, 12, 5, 16), 3, 6, 1, stream(0, "network"))
    net.met.fill_(3)
    theta = {name: t.double() for name, t in plain.parameters(net).items()}
    x = torch.rand(4, 16, generator=stream(0, "x"))
    found = net.log_likelihood(x, samples=4000).detach()
    expected = torch.stack([torch.stack([exact(theta, f"vaes.{c}.", row) for c in range(3)]) for row in x])
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=0.02)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_answer_is_the_class_that_finds_the_input_most_likely(scenario: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("generative-classifier", scenario, tasks, **SMALL)
    for seen in (1, 2, 3):
        learner.learn(tasks[:seen], 40)
        for k in range(seen):
            x = tasks[k].test.inputs(slice(None))
            p = vaes(learner).log_likelihood(x, 7).detach().double()
            assert p.shape[1] == 2 * seen
            said = learner.predict(x, k)
            for row, unit in zip(p, said.tolist(), strict=True):
                if scenario == "domain":  # a unit combines its classes
                    assert unit == int(row[1::2].logsumexp(0) > row[::2].logsumexp(0))
                elif scenario == "task":
                    assert unit == 2 * k + int(row[2 * k : 2 * k + 2].argmax())
                else:
                    assert unit == int(row.argmax())


def test_only_the_vaes_of_the_classes_at_hand_move() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("generative-classifier", "class", tasks, **SMALL)
    before = plain.parameters(learner.net)
    for seen in (1, 2, 3):
        learner.learn(tasks[:seen], 5)
        after = plain.parameters(learner.net)
        moved = {int(name.split(".")[1]) for name in after if not torch.equal(before[name], after[name])}
        assert moved == {2 * seen - 2, 2 * seen - 1}
        before = after


def test_an_answer_depends_on_the_input_alone() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("generative-classifier", "class", tasks, **SMALL)
    learner.learn(tasks[:1], 3)
    x = tasks[0].test.inputs(slice(None))
    together = learner.method.logits(learner.net, x, torch.zeros(len(x)))
    alone = torch.cat([learner.method.logits(learner.net, row[None], torch.zeros(1)) for row in x])
    torch.testing.assert_close(together, alone)


def test_it_generates_as_many_of_each_class_learned() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("generative-classifier", "class", tasks, **SMALL)
    assert len(vaes(learner).generate(7, stream(0, "test"))) == 7
    learner.learn(tasks[:1], 3)
    assert vaes(learner).n_met == 2
    assert vaes(learner).generate(8, stream(0, "test")).shape == (8, 16)
