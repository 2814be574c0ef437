"""Context-dependent gating against a network with its gates written out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from relive._util.fidelity import AS_RUN, AS_WRITTEN, Fidelity
from relive._util.seeds import stream
from relive.core.learner import Learner
from relive.core.method import Problem
from relive.core.scenarios import TaskIL
from relive.methods.xdg import XdG
from relive.networks import MLP, Sizes
from tests import plain


def gates(learner: Learner) -> Tensor:
    assert isinstance(learner.method, XdG)
    return learner.method.gates_


def gated_logits(theta: plain.Theta, x: Tensor, gate: Tensor, fidelity: Fidelity) -> Tensor:
    """Return the logits with one task's gates, (layers, hidden)."""
    h = x.double()
    for layer, g in zip(("encoder.layer1", "encoder.layer2"), gate.bool(), strict=True):
        W, b = theta[f"{layer}.weight"], theta[f"{layer}.bias"]
        open_units = plain.positive(h @ W.T + b)
        closed = plain.positive(b) if fidelity is AS_RUN else torch.zeros_like(b)
        h = torch.where(g, open_units, closed.expand_as(open_units))
    return plain.dense(theta, "head", h)


@pytest.mark.parametrize("fidelity", [AS_RUN, AS_WRITTEN], ids=["as_run", "as_written"])
def test_loss_gradient_and_prediction(fidelity: Fidelity) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of("task", tasks), plain.learner_of("xdg", "task", tasks, fidelity, proportion=0.6)
    drawn = gates(learner).clone()
    for k, task in enumerate(tasks):
        for step in plain.record(learner, tasks[: k + 1], 3):
            theta = plain.double(step.theta)
            out = gated_logits(theta, step.batch.x, drawn[k], fidelity)
            plain.check(step, theta, layout.current_loss(out, k, plain.labels_of(task, step.batch.x), seen=k + 1))
    assert torch.equal(gates(learner), drawn)
    theta = plain.double(plain.parameters(learner.net))
    for k, task in enumerate(tasks):
        x, columns = task.test.inputs(slice(None)), layout.columns(k, seen=3)
        best = gated_logits(theta, x, drawn[k], fidelity)[:, columns].argmax(1) + columns[0]
        assert torch.equal(learner.predict(x, k), best)


def test_a_closed_unit_says_its_bias_as_run_and_nothing_as_written() -> None:
    """Only closed units are connected to the head here: as written, the logits are the head's bias alone."""
    tasks = plain.split_tasks()
    for fidelity in (AS_RUN, AS_WRITTEN):
        learner = plain.learner_of("xdg", "task", tasks, fidelity, proportion=0.5)
        closed = gates(learner)[1, 1] == 0
        with torch.no_grad():
            assert isinstance(learner.net.encoder, MLP)
            learner.net.encoder.layers[1].bias.fill_(0.5)
            learner.net.head.weight[:, ~closed] = 0
            x = tasks[1].test.inputs(slice(0, 3))
            out = learner.method.logits(learner.net, x, torch.ones(3, dtype=torch.long))
        emitted = 0.5 * learner.net.head.weight[:, closed].sum(1) if fidelity is AS_RUN else 0
        torch.testing.assert_close(out, (learner.net.head.bias + emitted).expand(3, -1))


@given(
    proportion=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.55, 0.8, 0.95, 0.99]),
    hidden=st.sampled_from([20, 100, 400]),
    n_tasks=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_share_of_gated_units(proportion: float, hidden: int, n_tasks: int, seed: int) -> None:
    method = XdG(proportion)
    scenario = TaskIL([(2 * k, 2 * k + 1) for k in range(n_tasks)])
    method.build(
        Problem(Sizes(3, hidden, 2, 2 * n_tasks), scenario, 8, AS_RUN, torch.device("cpu")), stream(seed, "network")
    )
    assert method.gates_.shape == (n_tasks, 2, hidden)
    assert ((method.gates_ == 0) | (method.gates_ == 1)).all()
    closed = (method.gates_ == 0).sum(2)
    assert (closed == int(proportion * hidden + 1e-9)).all()
    if 0.25 <= proportion <= 0.8 and hidden >= 100:
        drawn = {tuple(gate) for gate in method.gates_.flatten(0, 1).tolist()}
        assert len(drawn) == 2 * n_tasks, "two tasks or two layers share their gates"


@pytest.mark.parametrize("fidelity", [AS_RUN, AS_WRITTEN], ids=["as_run", "as_written"])
def test_no_gates_is_fine_tuning(fidelity: Fidelity) -> None:
    tasks = plain.split_tasks()
    learners = [plain.learner_of("xdg", "task", tasks, fidelity, proportion=0), plain.learner_of("none", "task", tasks)]
    for k in (1, 2):
        for learner in learners:
            learner.learn(tasks[:k], 5)
    ours, none = (plain.parameters(learner.net) for learner in learners)
    for name in none:
        torch.testing.assert_close(ours[name], none[name], rtol=1e-4, atol=1e-5)


def test_a_row_uses_the_gates_of_its_own_task() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("xdg", "task", tasks, proportion=0.5)
    x = tasks[0].test.inputs(slice(0, 3))
    mixed = learner.method.logits(learner.net, x, torch.tensor([2, 0, 1]))
    for row, k in enumerate([2, 0, 1]):
        alone = learner.method.logits(learner.net, x[row : row + 1], torch.tensor([k]))
        torch.testing.assert_close(mixed[row : row + 1], alone)
