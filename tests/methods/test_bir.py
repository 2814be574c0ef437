"""Brain-inspired replay against the equations written out: a prior per class, gates, and balanced replay."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Independent, MixtureSameFamily, Normal
from torch.distributions.categorical import Categorical

from relive._util.fidelity import AS_RUN, FIDELITIES, Fidelity
from relive._util.seeds import stream
from relive.core.scenarios import scenario_of
from relive.methods import classes
from relive.networks import ConditionalClassifier, Sizes, latent, mixture_latent
from relive.networks.conditional import evenly
from tests import plain

LATENT, BATCH = 5, 8


def decode(theta: plain.Theta, z: Tensor, gate: Tensor) -> Tensor:
    """Return the pixels' logits, with a gate (n, 2 × hidden) on the two hidden layers."""
    h = z
    for i, layer in enumerate(("layer1", "layer2")):
        h = plain.positive(plain.dense(theta, f"feedback.{layer}", h)) * gate[:, 12 * i : 12 * (i + 1)]
    return plain.dense(theta, "feedback.output", h)


def generative_row(theta: plain.Theta, x: Tensor, epsilon: Tensor, odds: dict[int, float], gates: Tensor) -> Tensor:
    """Return one row's reconstruction and latent term, given the probabilities of its classes."""
    mu, logvar = plain.dense(theta, "feedback.latent", plain.hidden(theta, x[None])).chunk(2, 1)
    z = mu + (logvar / 2).exp() * epsilon.double()
    gate = sum((p * gates[c].double() for c, p in odds.items()), torch.zeros(24, dtype=torch.double))
    recon = F.binary_cross_entropy_with_logits(decode(theta, z, gate[None])[0], x.double(), reduction="sum")
    prior = MixtureSameFamily(
        Categorical(torch.tensor(list(odds.values()), dtype=torch.double)),
        Independent(Normal(theta["means"][list(odds)], (theta["logvars"][list(odds)] / 2).exp()), 1),
    )
    posterior = Independent(Normal(mu, (logvar / 2).exp()), 1)
    latent_term: Tensor = posterior.log_prob(z) - prior.log_prob(z)  # type: ignore[no-untyped-call]
    return recon + latent_term[0]


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
@pytest.mark.parametrize("fidelity", FIDELITIES.values(), ids=FIDELITIES)
def test_loss_and_gradient(fidelity: Fidelity, scenario: str) -> None:
    """Six classes, two in each of three tasks; class c belongs to task c // 2, at position c % 2."""
    tasks = plain.split_tasks()
    targets: Literal["mean", "sum"] = "mean" if fidelity is AS_RUN else "sum"
    layout = plain.Layout.of(scenario, tasks)
    learner = plain.learner_of("bir", scenario, tasks, fidelity, gate=0.5)
    gates = learner.net.state_dict()["gates"].clone()
    scale = 1 / 16 if fidelity is AS_RUN else 1
    for k, task in enumerate(tasks):
        seen = k + 1
        teacher = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        for step in plain.record(learner, tasks[:seen], 2):
            rng = torch.Generator()
            rng.set_state(step.noise)
            number, noise = torch.empty(0), torch.empty(0, LATENT)
            if k:
                number = (torch.arange(BATCH) + torch.randint(2 * k, (), generator=rng)) % (2 * k)
                noise = torch.randn(BATCH, LATENT, generator=rng)
            epsilon = torch.randn(len(step.batch.x), LATENT, generator=rng)
            theta, x = plain.double(step.theta), step.current.x
            labels = plain.labels_of(task, x)
            loss = layout.current_loss(plain.logits(theta, x), k, labels, seen)
            for i in range(len(x)):
                odds = {2 * k + int(labels[i]): 1.0}
                loss = loss + scale * generative_row(theta, x[i], epsilon[i], odds, gates) / len(x)
            if k:
                z = teacher["means"][number] + (teacher["logvars"][number] / 2).exp() * noise.double()
                pictures = decode(teacher, z, gates[number].double()).sigmoid()
                torch.testing.assert_close(step.replayed.double(), pictures, rtol=1e-4, atol=1e-6)
                replayed = torch.zeros((), dtype=torch.double)
                for i, c in enumerate(number.tolist()):
                    row = step.replayed[i]
                    said, owner = plain.logits(teacher, row[None]), c // 2
                    known = layout.columns(owner, k)
                    soft = (said[0, known] / 2).softmax(0).tolist()
                    # the classes of the teacher's units: all of them, or the two of the row's task
                    stands_for = range(2 * k) if scenario == "class" else (2 * owner, 2 * owner + 1)
                    own = plain.logits(theta, row[None])
                    replayed = replayed + layout.replay_rows(own, said, owner, seen, targets)[0]
                    odds = dict(zip(stands_for, soft, strict=True))
                    replayed = replayed + scale * generative_row(theta, row, epsilon[len(x) + i], odds, gates)
                loss = loss / seen + (1 - 1 / seen) * replayed / BATCH
            plain.check(step, theta, loss)


def test_with_one_standard_normal_prior_the_latent_term_is_that_of_rtf_on_average() -> None:
    rng = stream(0, "test")
    mu, logvar = torch.randn(2, 3, 4, generator=rng, dtype=torch.double)
    z = mu + (logvar / 2).exp() * torch.randn(200_000, 3, 4, generator=rng, dtype=torch.double)
    one, zero = torch.ones(3, 1, dtype=torch.double), torch.zeros(1, 4, dtype=torch.double)
    drawn = torch.stack([mixture_latent(some, mu, logvar, one, zero, zero) for some in z[:2000]])
    error = 4 * drawn.std(0) / math.sqrt(len(drawn))
    assert ((drawn.mean(0) - latent(mu, logvar)).abs() < error).all()


def test_replay_is_even_over_the_classes_and_answered_by_their_tasks() -> None:
    tasks = plain.split_tasks()
    for scenario, tasks_of_rows in (("task", {0: 12, 1: 12}), ("domain", {0: 12, 1: 12}), ("class", {0: 12, 1: 12})):
        learner = plain.learner_of("bir", scenario, tasks)
        for seen in (1, 2):
            learner.learn(tasks[:seen], 1)
        steps = plain.record(learner, tasks, 3)
        owners = torch.cat([step.batch.task[len(step.current) :] for step in steps])
        assert {k: int((owners == k).sum()) for k in (0, 1)} == tasks_of_rows
    for n, kinds in ((8, 3), (2, 5), (128, 10)):
        counts = evenly(n, kinds, stream(1, "test")).bincount(minlength=kinds)
        assert counts.max() - counts.min() <= 1


def test_gates_switch_off_a_share_of_each_layer_other_units_for_each_class() -> None:
    net = ConditionalClassifier(Sizes(16, 40, 5, 16), 6, 0.75, stream(0, "network"))
    gates = net.gates.reshape(16, 2, 40)  # for six classes and ten to come
    assert gates.sum(2).tolist() == [[10.0, 10.0]] * 16
    assert len({tuple(g.flatten().tolist()) for g in gates}) == 16
    assert ConditionalClassifier(Sizes(16, 40, 5, 16), 6, 0.0, stream(0, "network")).gates.numel() == 0


def test_units_stand_for_the_classes_of_a_row_s_task() -> None:
    tasks = [(7, 8), (9, 7, 4)]
    domain = scenario_of("domain", tasks)
    assert classes.count(domain) == 4
    assert classes.numbers(domain, 1).tolist() == [2, 0, 3]
    table = classes.of_units(domain, 2)
    assert table[:, :3].tolist() == [[0, 1, 3], [2, 0, 3]]  # task 0 has no third class: it is the other task's
    assert classes.of_units(scenario_of("class", tasks), 2)[0, :4].tolist() == [0, 1, 2, 3]
    assert classes.of_units(scenario_of("task", tasks), 2)[1, 2:5].tolist() == [2, 0, 3]


def test_what_a_model_generates_is_of_the_classes_that_it_has_learned() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("bir", "class", tasks)
    net = learner.net
    assert isinstance(net, ConditionalClassifier)
    for seen in (1, 2):
        learner.learn(tasks[:seen], 1)
        assert int(net.met) == 2 * seen
        x, n = net.generate(40, stream(0, "test")), 2 * seen
        expected = net.generate_classes(evenly(40, n, rng := stream(0, "test")), rng)
        assert torch.equal(x, expected)
