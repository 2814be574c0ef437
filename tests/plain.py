"""The paper's equations again, plain and slow, and a record of the learner's steps to check against them.

Nothing here calls the code under test: networks are explicit matrix products, an output layer's active units are
columns of the logits, every head has a separate loss, and gradients come from autograd in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from relive._util.fidelity import AS_RUN, Fidelity
from relive.core.batch import Batch
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.data.datasets.dataset import Dataset
from relive.data.protocols import tasks_of
from relive.data.tasks import Task
from relive.methods import METHODS, method_class
from relive.networks import Classifier

Theta = dict[str, Tensor]
TEMPERATURE = 2
ALL_CELLS = [(method, scenario) for method, kind in METHODS.items() for scenario in kind.scenarios]
CELLS = [cell for cell in ALL_CELLS if method_class(cell[0]).takes_steps]
CLOSED_FORMS = [cell for cell in ALL_CELLS if cell not in CELLS]


# ---- data and learners ------------------------------------------------------------------------------------------


def tiny_dataset(n_classes: int = 6, per_class: int = 9, side: int = 4, seed: int = 0) -> Dataset:
    """Noisy copies of one pattern per class."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(40, 216, (n_classes, side, side))

    def draw(n: int) -> tuple[Any, Any]:
        labels = rng.permutation(np.repeat(np.arange(n_classes, dtype=np.uint8), n))
        return (patterns[labels] + rng.integers(-40, 41, (len(labels), side, side))).astype(np.uint8), labels

    return Dataset("tiny", *draw(per_class), *draw(4), top=255)


def learner_of(
    method: str,
    scenario: str,
    tasks: Sequence[Task],
    fidelity: Fidelity = AS_RUN,
    *,
    seed: int = 0,
    batch_size: int = 8,
    learning_rate: float = 0.01,
    **settings: float,
) -> Learner:
    """Return a small learner for these tasks."""
    return Learner(
        method_class(method)(**settings),
        scenario_of(scenario, [task.classes for task in tasks]),
        tasks[0].n_inputs,
        hidden=12,
        latent=5,
        learning_rate=learning_rate,
        batch_size=batch_size,
        seed=seed,
        fidelity=fidelity,
    )


def split_tasks(n_tasks: int = 3) -> list[Task]:
    return tasks_of("split", tiny_dataset(), n_tasks, seed=0)


def labels_of(task: Task, x: Tensor) -> Tensor:
    """Return the labels of training rows, by looking the pictures up one by one."""
    known = task.train.inputs(slice(None))
    found = [[i for i in range(len(known)) if torch.equal(known[i], row)] for row in x]
    assert all(len(matches) == 1 for matches in found), "a row that is not one of the task's pictures"
    return torch.stack([task.train.labels[matches[0]] for matches in found])


def owner(tasks: Sequence[Task], row: Tensor) -> tuple[int, int]:
    """Return the task and the label of a sample, by searching all of them."""
    found = [
        (k, int(label))
        for k, task in enumerate(tasks)
        for x, label in zip(task.train.inputs(slice(None)), task.train.labels, strict=True)
        if torch.equal(x, row)
    ]
    assert len(found) == 1
    return found[0]


# ---- what a learner did -----------------------------------------------------------------------------------------


@dataclass
class Step:
    """One training step: parameters before and after it, its rows, the noise it will draw, its loss and gradient."""

    theta: Theta
    noise: Tensor
    current: Batch
    batch: Batch
    loss: float = math.nan
    gradient: Theta | None = None
    after: Theta | None = None

    @property
    def replayed(self) -> Tensor:
        return self.batch.x[len(self.current.x) :]


def parameters(net: torch.nn.Module) -> Theta:
    return {name: p.detach().clone() for name, p in net.named_parameters()}


def record(learner: Learner, tasks: Sequence[Task], iterations: int) -> list[Step]:
    """Train the learner on the last of the tasks, and return every step."""
    method, steps = learner.method, list[Step]()
    replay, loss, after_step = method.replay, method.loss, method.after_step

    def replay_seen(net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        steps.append(Step(parameters(net), rng.get_state(), current, current))
        return replay(net, current, seen, rng)

    def loss_seen(net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        steps[-1].batch = batch
        return loss(net, batch, rng)

    def after_step_seen(theta: list[Tensor], gradient: list[Tensor]) -> None:
        names = [name for name, _ in learner.net.named_parameters()]
        steps[-1].gradient = {name: g.clone() for name, g in zip(names, gradient, strict=True)}
        after_step(theta, gradient)

    def on_step(iteration: int, value: float) -> None:
        steps[-1].loss = value
        steps[-1].after = parameters(learner.net)

    with (
        patch.object(method, "replay", replay_seen),
        patch.object(method, "loss", loss_seen),
        patch.object(method, "after_step", after_step_seen),
    ):
        learner.learn(tasks, iterations, on_step)
    return steps


def check(step: Step, theta: Theta, loss: Tensor, penalty: Tensor | float = 0.0, rtol: float = 2e-4) -> None:
    """Assert that the step's loss is the plain ``loss`` at ``theta``, and its gradient that of loss plus penalty."""
    assert step.gradient is not None
    assert math.isclose(step.loss, loss.item(), rel_tol=rtol)
    gradient = torch.autograd.grad(loss + penalty, list(theta.values()), allow_unused=True)
    largest = max(float(g.abs().max()) for g in gradient if g is not None)
    for name, g in zip(theta, gradient, strict=True):
        expected = torch.zeros_like(theta[name]) if g is None else g
        torch.testing.assert_close(step.gradient[name].double(), expected, rtol=rtol, atol=largest * 1e-5, msg=name)


def double(theta: Theta) -> Theta:
    return {name: t.detach().double().requires_grad_() for name, t in theta.items()}


def adam(gradients: Sequence[Tensor], theta: Tensor, rate: float, *, epsilon_first: bool = False) -> Tensor:
    """Kingma & Ba's algorithm 1, in float64; or with ε where PyTorch put it in 2018."""
    m = v = torch.zeros_like(theta, dtype=torch.float64)
    theta = theta.double()
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * g.double()
        v = 0.999 * v + 0.001 * g.double() ** 2
        if epsilon_first:
            theta = theta - rate * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t) * m / (v.sqrt() + 1e-8)
        else:
            theta = theta - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    return theta


# ---- networks ---------------------------------------------------------------------------------------------------


def dense(theta: Theta, layer: str, x: Tensor) -> Tensor:
    return x @ theta[f"{layer}.weight"].T + theta[f"{layer}.bias"]


def positive(h: Tensor) -> Tensor:
    return torch.where(h > 0, h, torch.zeros_like(h))


def hidden(theta: Theta, x: Tensor, prefix: str = "") -> Tensor:
    return positive(
        dense(theta, f"{prefix}encoder.layer2", positive(dense(theta, f"{prefix}encoder.layer1", x.double())))
    )


def logits(theta: Theta, x: Tensor) -> Tensor:
    return dense(theta, "head", hidden(theta, x))


def decode(theta: Theta, z: Tensor, prefix: str = "") -> Tensor:
    """Return the pixels decoded from latent variables."""
    h = z.double()
    for layer in ("layer1", "layer2"):
        h = positive(dense(theta, f"{prefix}feedback.{layer}", h))
    return 1 / (1 + torch.exp(-dense(theta, f"{prefix}feedback.output", h)))


def generative_rows(theta: Theta, x: Tensor, epsilon: Tensor, fidelity: Fidelity, prefix: str = "") -> Tensor:
    """Return the VAE's loss of every row: reconstruction and latent term."""
    x = x.double()
    out = dense(theta, f"{prefix}feedback.latent", hidden(theta, x, prefix))
    n_latent = out.shape[1] // 2
    mu, variance = out[:, :n_latent], out[:, n_latent:].exp()
    pixels = decode(theta, mu + variance.sqrt() * epsilon.double(), prefix)
    recon = F.binary_cross_entropy(pixels, x, reduction="none").sum(1)
    kl = ((mu**2 + variance - 1 - variance.log()) / 2).sum(1)
    return (recon + kl) / x.shape[1] if fidelity.generative_loss == "per_pixel" else recon + kl


# ---- losses -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Which columns of the logits belong to which task, in a scenario; all tasks have equally many classes."""

    scenario: str
    n_tasks: int
    n_classes: int

    @classmethod
    def of(cls, scenario: str, tasks: Sequence[Task]) -> Layout:
        return cls(scenario, len(tasks), len(tasks[0].classes))

    def columns(self, task: int, seen: int) -> list[int]:
        """The active columns for a row of ``task`` after ``seen`` tasks."""
        first, last = {
            "task": (task, task + 1),
            "domain": (0, 1),
            "class": (0, seen),
        }[self.scenario]
        return list(range(first * self.n_classes, last * self.n_classes))

    def answer(self, task: int, labels: Tensor) -> Tensor:
        """Positions of the targets among the active columns."""
        return labels + (task * self.n_classes if self.scenario == "class" else 0)

    def heads(self, seen: int) -> list[int]:
        """The earlier tasks that replay distinguishes: all in Task-IL, otherwise any one represents all."""
        return list(range(seen - 1)) if self.scenario == "task" else [0]

    def current_loss(self, out: Tensor, task: int, labels: Tensor, seen: int) -> Tensor:
        return F.cross_entropy(out[:, self.columns(task, seen)], self.answer(task, labels))

    def replay_rows(
        self, student: Tensor, teacher: Tensor, head: int, seen: int, targets: Literal["hard", "mean", "sum"]
    ) -> Tensor:
        """Return each replayed row's loss through one head, given both models' logits."""
        known, active = self.columns(head, seen - 1), self.columns(head, seen)
        if targets == "hard":
            return F.cross_entropy(student[:, active], teacher[:, known].argmax(1), reduction="none")
        soft = (teacher[:, known] / TEMPERATURE).softmax(1)
        new_classes = torch.zeros(len(soft), len(active) - len(known), dtype=soft.dtype)
        terms = -torch.cat([soft, new_classes], 1) * F.log_softmax(student[:, active] / TEMPERATURE, 1)
        return TEMPERATURE**2 * (terms.mean(1) if targets == "mean" else terms.sum(1))


def fisher(theta: Theta, x: Tensor, answer: Tensor, columns: list[int], labels: str) -> Theta:
    """Return the sum of squared gradients of the log-likelihood, one sample and one label at a time."""
    theta = double(theta)
    total = {name: torch.zeros_like(t) for name, t in theta.items()}
    for row, right in zip(x, answer.tolist(), strict=True):
        log_p = F.log_softmax(logits(theta, row.unsqueeze(0))[0, columns], 0)
        p = log_p.detach().exp()
        chosen: dict[str, list[tuple[int, float]]] = {
            "true": [(right, 1.0)],
            "predicted": [(int(log_p.argmax()), 1.0)],
            "expected": [(c, float(p[c])) for c in range(len(columns))],
        }
        for c, weight in chosen[labels]:
            gradient = torch.autograd.grad(log_p[c], list(theta.values()), retain_graph=True)
            for name, g in zip(theta, gradient, strict=True):
                total[name] += weight * g**2
    return total


def task_fisher(theta: Theta, task: Task, index: int, layout: Layout, fidelity: Fidelity) -> Theta:
    """Return a task's Fisher information over its whole training set."""
    x, n = task.train.inputs(slice(None)), len(task.train)
    answer = layout.answer(index, task.train.labels)
    total = fisher(theta, x, answer, layout.columns(index, index + 1), fidelity.fisher_labels)
    return {name: t / (n - 1 if fidelity.fisher_divisor == "n_minus_1" else n) for name, t in total.items()}


def pull(theta: Theta, strength: Theta, anchor: Theta) -> Tensor:
    """Return Σ strength (θ − anchor)²."""
    return torch.stack([(strength[n].double() * (t - anchor[n].double()) ** 2).sum() for n, t in theta.items()]).sum()
