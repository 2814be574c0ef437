"""DGR, DGR+distill and RtF: what is replayed, how it is labelled, and the loss, all written out."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from relive._util.fidelity import AS_RUN, AS_WRITTEN, FIDELITIES, Fidelity
from relive._util.seeds import stream
from relive.core.batch import Batch
from relive.core.learner import Learner
from relive.methods.generative_replay import generative
from relive.networks import Classifier, Sizes
from tests import plain

METHODS = ["dgr", "dgr-distill", "rtf"]
LATENT = 5


def prefix(method: str) -> str:
    """Prefix of the generator's parameters: DGR's generator is a separate network."""
    return "" if method == "rtf" else "vae."


def draws(step: plain.Step, n_replayed: int) -> tuple[Tensor, Tensor]:
    """Return the latent variables that were replayed from, and ε of all rows."""
    rng = torch.Generator()
    rng.set_state(step.noise)
    z = torch.randn(n_replayed, LATENT, generator=rng)
    return z, torch.randn(len(step.batch.x), LATENT, generator=rng)


def cut(rows: Tensor, size: int) -> list[Tensor]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
@pytest.mark.parametrize("fidelity", FIDELITIES.values(), ids=FIDELITIES)
@pytest.mark.parametrize("method", METHODS)
def test_loss_and_gradient(method: str, fidelity: Fidelity, scenario: str) -> None:
    tasks, where = plain.split_tasks(), prefix(method)
    soft: Literal["mean", "sum"] = "mean" if fidelity is AS_RUN else "sum"
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of(method, scenario, tasks, fidelity)
    for k, task in enumerate(tasks):
        seen, heads = k + 1, layout.heads(k + 1)
        share = math.ceil(8 / len(heads)) if k else 0
        teacher = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        for step in plain.record(learner, tasks[:seen], 3):
            z, epsilon = draws(step, share * len(heads))
            theta, x, n = plain.double(step.theta), step.current.x, len(step.current.x)
            out = plain.logits(theta, x)
            loss = layout.current_loss(out, k, plain.labels_of(task, x), seen)
            loss = loss + plain.generative_rows(theta, x, epsilon[:n], fidelity, where).mean()
            if k:
                pictures = plain.decode(teacher, z, where)
                torch.testing.assert_close(step.replayed.double(), pictures, rtol=1e-4, atol=1e-6)
                groups = []
                for head, some, noise in zip(heads, cut(step.replayed, share), cut(epsilon[n:], share), strict=True):
                    rows = layout.replay_rows(
                        plain.logits(theta, some),
                        plain.logits(teacher, some),
                        head,
                        seen,
                        "hard" if method == "dgr" else soft,
                    )
                    rows = rows + plain.generative_rows(theta, some, noise, fidelity, where)
                    groups.append(rows.mean())
                loss = loss / seen + (1 - 1 / seen) * torch.stack(groups).mean()
            plain.check(step, theta, loss)


@pytest.mark.parametrize("method", ["dgr", "dgr-distill"])
def test_one_step_for_both_networks_is_a_step_for_each(method: str) -> None:
    """Two networks, each with its optimizer, given the same rows, end where the joint one ends."""
    tasks, rate = plain.split_tasks(), 0.01
    learner = plain.learner_of(method, "class", tasks, learning_rate=rate)
    start = plain.parameters(learner.net)
    layout = plain.Layout.of("class", tasks)
    steps = [(k, step) for k in range(2) for step in plain.record(learner, tasks[: k + 1], 5)]
    mains = plain.double({name: t for name, t in start.items() if not name.startswith("vae.")})
    vaes = plain.double({name: t for name, t in start.items() if name.startswith("vae.")})
    optimizers = [torch.optim.Adam(list(theta.values()), lr=rate) for theta in (mains, vaes)]
    teacher = {name: t.detach().clone() for name, t in mains.items()}
    for i, (k, step) in enumerate(steps):
        if i and steps[i - 1][0] != k:
            teacher = {name: t.detach().clone() for name, t in mains.items()}
        n, seen = len(step.current.x), k + 1
        replayed = len(step.replayed)
        _, epsilon = draws(step, replayed)
        main_loss = layout.current_loss(
            plain.logits(mains, step.current.x), k, plain.labels_of(tasks[k], step.current.x), seen
        )
        vae_rows = plain.generative_rows(vaes, step.batch.x, epsilon, AS_RUN, "vae.")
        vae_loss = vae_rows[:n].mean()
        if replayed:
            rows = layout.replay_rows(
                plain.logits(mains, step.replayed),
                plain.logits(teacher, step.replayed),
                0,
                seen,
                "hard" if method == "dgr" else "mean",
            )
            main_loss = main_loss / seen + (1 - 1 / seen) * rows.mean()
            vae_loss = vae_loss / seen + (1 - 1 / seen) * vae_rows[n:].mean()
        for optimizer, loss in zip(optimizers, (main_loss, vae_loss), strict=True):
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    end = plain.parameters(learner.net)
    for name, t in (mains | vaes).items():
        torch.testing.assert_close(end[name].double(), t.detach(), rtol=1e-3, atol=2e-5, msg=name)


def replay(learner: Learner, seen: int, seed: int = 0) -> Batch:
    """Return the rows that would be replayed now."""
    learner.method.before_task(learner.net, seen - 1)
    current = Batch(*[torch.empty(0)] * 7)
    rows = learner.method.replay(learner.net, current, seen, stream(seed, "test"))
    assert rows is not None
    return rows


@pytest.mark.parametrize("fidelity", [AS_RUN, AS_WRITTEN], ids=["as_run", "as_written"])
def test_hard_and_soft_targets(fidelity: Fidelity) -> None:
    tasks = plain.split_tasks()
    for method in METHODS:
        learner = plain.learner_of(method, "class", tasks, fidelity)
        learner.learn(tasks[:1], 3)
        rows = replay(learner, seen=2)
        said = plain.logits({n: t.double() for n, t in plain.parameters(learner.net).items()}, rows.x)[:, :2]
        if method == "dgr":
            expected = torch.nn.functional.one_hot(said.argmax(1), 2).double()
            assert set(rows.temperature.tolist()) == set(rows.scale.tolist()) == {1.0}
        else:
            expected = (said / 2).softmax(1)
            # T², shared by the 4 units that the student's softmax runs over as the code did
            assert set(rows.temperature.tolist()) == {2.0}
            assert set(rows.scale.tolist()) == {1.0 if fidelity is AS_RUN else 4.0}
        torch.testing.assert_close(rows.target[:, :2].double(), expected, rtol=1e-4, atol=1e-6)
        assert not rows.target[:, 2:].any()  # zeros for the current and future tasks' classes
        assert rows.active.tolist() == [[True] * 4 + [False] * 12] * 8


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_replayed_in_the_first_task(method: str) -> None:
    tasks = plain.split_tasks()
    steps = plain.record(plain.learner_of(method, "class", tasks), tasks[:1], 2)
    assert all(len(step.replayed) == 0 for step in steps)


@pytest.mark.parametrize(("seen", "rows"), [(2, 8), (3, 8), (4, 9), (6, 10)])
def test_replays_are_divided_over_the_earlier_tasks(seen: int, rows: int) -> None:
    tasks = plain.split_tasks(6)
    learner = plain.learner_of("rtf", "task", tasks)
    batch = replay(learner, seen)
    per_task = rows // (seen - 1)
    assert len(batch) == rows
    assert batch.weight.sum().item() == pytest.approx(1)
    assert batch.active.nonzero()[:, 1].tolist() == [k for k in range(seen - 1) for _ in range(per_task)]


@pytest.mark.parametrize("method", METHODS)
def test_a_generator_of_its_own_replays_exactly_a_batch(method: str) -> None:
    """Nine rows are three for each of three earlier tasks; DGR's generator learns from eight of them."""
    tasks = plain.split_tasks(6)
    learner = plain.learner_of(method, "task", tasks)
    learner.seen = 3
    (step,) = plain.record(learner, tasks[:4], 1)
    _, epsilon = draws(step, 9)
    theta, n = plain.double(step.theta), 9 if method == "rtf" else 8
    rows = plain.generative_rows(theta, step.batch.x, epsilon, AS_RUN, prefix(method))
    answers = (step.batch.weight * step.batch.scale).double() @ plain_rows(theta, step)
    plain.check(step, theta, answers + rows[:8].mean() / 4 + 3 / 4 * rows[8 : 8 + n].mean())


def plain_rows(theta: plain.Theta, step: plain.Step) -> Tensor:
    """Return the cross entropy of every row with its own targets."""
    batch = step.batch
    out = plain.logits(theta, batch.x) / batch.temperature.unsqueeze(1)
    return -(batch.target * out.masked_fill(~batch.active, -1e30).log_softmax(1)).sum(1)


def test_replay_is_drawn_anew_each_time() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("rtf", "class", tasks)
    learner.learn(tasks[:1], 2)
    steps = plain.record(learner, tasks[:2], 2)
    assert not torch.equal(steps[0].replayed, steps[1].replayed)


def test_a_network_without_feedback_is_refused() -> None:
    with pytest.raises(TypeError, match="Classifier cannot generate"):
        generative(Classifier(Sizes(3, 4, 2, 2), stream(0, "network")))
