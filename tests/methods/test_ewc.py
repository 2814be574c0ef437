"""EWC and online EWC against the paper's equations with a Fisher information computed one sample at a time."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from relive._util.fidelity import AS_RUN, AS_WRITTEN, Fidelity
from relive._util.seeds import stream
from relive.methods.ewc import EWC, OnlineEWC
from tests import plain

SCENARIOS = ["task", "domain", "class"]
FIDELITIES = [AS_RUN, AS_WRITTEN]
IDS = ["as_run", "as_written"]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("fidelity", FIDELITIES, ids=IDS)
def test_ewc_has_one_term_per_past_task(scenario: str, fidelity: Fidelity) -> None:
    lam, tasks = 1000.0, plain.split_tasks()
    layout = plain.Layout.of(scenario, tasks)
    learner = plain.learner_of("ewc", scenario, tasks, fidelity, lam=lam)
    terms: list[tuple[plain.Theta, plain.Theta]] = []
    shares: list[float] = []
    for k, task in enumerate(tasks):
        for step in plain.record(learner, tasks[: k + 1], 6):
            theta = plain.double(step.theta)
            loss = layout.current_loss(
                plain.logits(theta, step.batch.x), k, plain.labels_of(task, step.batch.x), seen=k + 1
            )
            penalty = sum((lam / 2 * plain.pull(theta, F, anchor) for F, anchor in terms), torch.tensor(0.0))
            plain.check(step, theta, loss, penalty)
            shares.append((penalty / loss).item())
        anchor = plain.parameters(learner.net)
        terms.append((plain.task_fisher(anchor, task, k, layout, fidelity), anchor))
    assert max(shares) > 0.01, "the penalty is too small for this test to see it"


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("fidelity", FIDELITIES, ids=IDS)
def test_online_ewc_has_one_decaying_term(scenario: str, fidelity: Fidelity) -> None:
    lam, gamma, tasks = 2000.0, 0.6, plain.split_tasks()
    layout = plain.Layout.of(scenario, tasks)
    learner = plain.learner_of("online-ewc", scenario, tasks, fidelity, lam=lam, gamma=gamma)
    shares: list[float] = []
    running: plain.Theta = {}
    anchor: plain.Theta = {}
    for k, task in enumerate(tasks):
        for step in plain.record(learner, tasks[: k + 1], 6):
            theta = plain.double(step.theta)
            loss = layout.current_loss(
                plain.logits(theta, step.batch.x), k, plain.labels_of(task, step.batch.x), seen=k + 1
            )
            factor = gamma / 2 if fidelity is AS_RUN else 1  # the code: ½, and another γ
            penalty = lam * factor * plain.pull(theta, running, anchor) if k else torch.tensor(0.0)
            plain.check(step, theta, loss, penalty)
            shares.append((penalty / loss).item())
        anchor = plain.parameters(learner.net)
        F = plain.task_fisher(anchor, task, k, layout, fidelity)
        running = {name: gamma * running[name] + F[name] for name in F} if k else F
    assert max(shares) > 0.01, "the penalty is too small for this test to see it"


@pytest.mark.parametrize("labels", ["true", "predicted", "expected"])
@pytest.mark.parametrize("divisor", ["n", "n_minus_1"])
def test_fisher_choices_one_by_one(labels: str, divisor: str) -> None:
    fidelity = AS_RUN.choose({"fisher_labels": labels, "fisher_divisor": divisor})
    tasks = plain.split_tasks()
    learner = plain.learner_of("ewc", "class", tasks, fidelity)
    layout = plain.Layout.of("class", tasks)
    total: plain.Theta = {}
    for k in (0, 1):
        learner.learn(tasks[: k + 1], 2)
        F = plain.task_fisher(plain.parameters(learner.net), tasks[k], k, layout, fidelity)
        total = {name: total.get(name, 0) + F[name] for name in F}
        assert isinstance(learner.method, EWC)
        for mine, theirs in zip(total.values(), learner.method.fisher_, strict=True):
            torch.testing.assert_close(theirs.double(), mine, rtol=1e-3, atol=1e-9)


@given(seed=st.integers(0, 999), n_tasks=st.integers(1, 6))
def test_the_sum_of_the_terms_is_one_term(seed: int, n_tasks: int) -> None:
    """The gradient of the stored quadratic, against the sum over the tasks in float64; some parameters with F = 0."""
    rng, lam, learner = stream(seed, "test"), 3.0, plain.learner_of("ewc", "class", plain.split_tasks())
    method = EWC(lam)
    method.problem = learner.method.problem
    terms = []
    for _ in range(n_tasks):
        with torch.no_grad():
            for p in learner.net.parameters():
                p.copy_(torch.randn(p.shape, generator=rng))
        F = [
            torch.rand(p.shape, generator=rng) * (torch.rand(p.shape, generator=rng) < 0.7)
            for p in learner.net.parameters()
        ]
        terms.append((F, [p.detach().clone() for p in learner.net.parameters()]))
        with patch("relive.methods.ewc.fisher", lambda *args, F=F: [f.clone() for f in F]):
            method.after_task(learner.net, [], 1)
    method.before_task(learner.net, n_tasks)
    theta = [torch.randn(p.shape, generator=rng) for p in learner.net.parameters()]
    gradient = [torch.zeros_like(t) for t in theta]
    method.regularise(theta, gradient)
    exact = [t.double().requires_grad_() for t in theta]
    total = sum(
        (lam / 2 * (f * (t - a) ** 2).sum() for F, A in terms for t, f, a in zip(exact, F, A, strict=True)),
        torch.zeros((), dtype=torch.float64),
    )
    for got, expected in zip(gradient, torch.autograd.grad(total, exact), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


def test_one_term_is_as_exact_as_the_sum_where_the_penalty_is_strong() -> None:
    """With λ = 1e7 parameters move so little that rounding the minimum to float32 would be a visible part of it."""
    lam, rng, learner = 1e7, stream(0, "test"), plain.learner_of("ewc", "class", plain.split_tasks())
    method, theta, terms = EWC(lam), list(learner.net.parameters()), []
    method.problem = learner.method.problem
    for k in range(5):
        with torch.no_grad():
            for p in theta:
                p.add_(1e-6 * torch.randn(p.shape, generator=rng))
        F = [1e-3 * torch.rand(p.shape, generator=rng) ** 4 for p in theta]
        terms.append((F, [p.detach().double() for p in theta]))
        with patch("relive.methods.ewc.fisher", lambda *args, F=F: [f.clone() for f in F]):
            method.after_task(learner.net, [], k + 1)
    method.before_task(learner.net, 5)
    now = [p.detach() + 1e-7 * torch.randn(p.shape, generator=rng) for p in theta]
    gradient = [torch.zeros_like(p) for p in now]
    method.regularise(now, gradient)
    exact = [torch.zeros_like(p, dtype=torch.float64) for p in now]
    for F, anchors in terms:
        for total, f, at, anchor in zip(exact, F, now, anchors, strict=True):
            total += lam * f.double() * (at.double() - anchor)
    for got, expected in zip(gradient, exact, strict=True):
        assert (got.double() - expected).norm() < 1e-6 * expected.norm()


@pytest.mark.parametrize("method", ["ewc", "online-ewc"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_strength_is_fine_tuning_bit_for_bit(method: str, scenario: str) -> None:
    tasks = plain.split_tasks()
    learners = [plain.learner_of(method, scenario, tasks, lam=0), plain.learner_of("none", scenario, tasks)]
    for k in (1, 2):
        for learner in learners:
            learner.learn(tasks[:k], 5)
    ours, none = (plain.parameters(learner.net) for learner in learners)
    assert all(torch.equal(ours[name], none[name]) for name in none)


def test_a_strong_penalty_holds_the_parameters() -> None:
    tasks = plain.split_tasks()
    moved = []
    for lam in (0.0, 1e4):
        learner = plain.learner_of("ewc", "domain", tasks, lam=lam, learning_rate=0.001)
        learner.learn(tasks[:1], 20)
        anchor = plain.parameters(learner.net)
        learner.learn(tasks[:2], 20)
        layout = plain.Layout.of("domain", tasks)
        F = plain.task_fisher(anchor, tasks[0], 0, layout, AS_RUN)
        moved.append(plain.pull(plain.parameters(learner.net), F, anchor).item())
    assert moved[1] < moved[0] / 5


def test_memory_does_not_grow() -> None:
    tasks = plain.split_tasks()
    for method, expected in (("ewc", 2), ("online-ewc", 1)):
        learner = plain.learner_of(method, "class", tasks)
        n = sum(p.numel() for p in learner.net.parameters())
        for k in (1, 2, 3):
            learner.learn(tasks[:k], 1)
            assert learner.method.stored_numbers(tasks) // n == expected


def test_state_keeps_the_order_of_many_tensors() -> None:
    """More than ten of a kind, so that "10" would sort before "2"."""
    many = [torch.full((1,), float(i)) for i in range(12)]
    ewc, online = EWC(), OnlineEWC()
    ewc.fisher_, ewc.anchor_ = many, [t.double() - 100 for t in many]
    online.fisher_ = many
    again, online_again = EWC(), OnlineEWC()
    again.load_state(dict(sorted(ewc.state().items())))
    online_again.load_state(dict(sorted(online.state().items())))
    assert (again.fisher_, again.anchor_) == (ewc.fisher_, ewc.anchor_)
    assert online_again.fisher_ == online.fisher_


def test_online_ewc_choice_is_the_only_difference() -> None:
    """From the same first task on, the gradient of the paper's penalty is 2/γ times that of the code's."""
    lam, gamma, tasks = 10.0, 0.4, plain.split_tasks()
    gradients = []
    for choice in ("half_gamma_twice", "no_half_gamma_once"):
        fidelity = AS_RUN.choose({"online_ewc": choice})
        learner = plain.learner_of("online-ewc", "domain", tasks, fidelity, lam=lam, gamma=gamma)
        learner.learn(tasks[:1], 5)
        learner.method.before_task(learner.net, 1)
        with torch.no_grad():
            for p in learner.net.parameters():
                p.add_(0.1)
        theta: list[torch.Tensor] = list(learner.net.parameters())
        gradient = [torch.zeros_like(p) for p in theta]
        learner.method.regularise(theta, gradient)
        gradients.append(gradient)
    for as_run, as_written in zip(*gradients, strict=True):
        torch.testing.assert_close(as_written, as_run * 2 / gamma)
