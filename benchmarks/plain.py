"""The ten methods again, as one would write them in plain PyTorch: the baseline that ``relive`` is measured against.

The same algorithms: with the same parameters, rows and noise they give the same losses (``tests/test_benchmarks.py``).
Everything is done the usual way: a ``DataLoader`` over a ``TensorDataset``; a forward pass for the current batch and
one for every replayed head (LwF: one for all heads, which share inputs); penalties through autograd, EWC's with one
term per task; ``torch.optim.Adam``, not fused; the Fisher information one sample at a time; a generator with its
own optimizer. For Task-IL and Domain-IL, as the 2018 code ran them.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from relive.core.scenarios import Scenario
from relive.data.tasks import Task
from relive.methods import METHODS

TEMPERATURE = 2.0
GENERATIVE = ("dgr", "dgr-distill", "rtf")

Part = tuple[int, Tensor, Tensor]  # task, inputs, labels within the task
Replayed = tuple[int, Tensor, Tensor]  # head, inputs, the teacher's logits for the head's units


class Encoder(nn.Module):
    """Two hidden layers with ReLU; XdG multiplies each layer's products with a gate."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.layer1 = nn.Linear(inputs, hidden)
        self.layer2 = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the second layer's activations."""
        if gates is None:
            return F.relu(self.layer2(F.relu(self.layer1(x))))
        h = F.relu(gates[0] * F.linear(x, self.layer1.weight) + self.layer1.bias)
        return F.relu(gates[1] * F.linear(h, self.layer2.weight) + self.layer2.bias)


class Feedback(nn.Module):
    """Latent variables and the decoder to the pixels."""

    def __init__(self, inputs: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.latent = nn.Linear(hidden, 2 * latent)
        self.layer1 = nn.Linear(latent, hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, inputs)

    def decode(self, z: Tensor) -> Tensor:
        """Return the pixels in [0, 1]."""
        return torch.sigmoid(self.output(F.relu(self.layer2(F.relu(self.layer1(z))))))

    def loss(self, h: Tensor, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return reconstruction and latent term, averaged over rows and pixels."""
        mu, logvar = self.latent(h).chunk(2, dim=1)
        z = mu + torch.exp(0.5 * logvar) * torch.randn(mu.shape, generator=rng)
        reconstruction = F.binary_cross_entropy(self.decode(z), x, reduction="none").sum(1)
        latent = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)
        loss: Tensor = (reconstruction + latent).mean() / x.shape[1]
        return loss

    @torch.no_grad()
    def sample(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n generated inputs."""
        return self.decode(torch.randn(n, self.layer1.in_features, generator=rng))


class Classifier(nn.Module):
    """An encoder and an output layer; RtF's also has feedback connections."""

    def __init__(self, inputs: int, hidden: int, latent: int, units: int, feedback: bool) -> None:
        super().__init__()
        self.encoder = Encoder(inputs, hidden)
        self.head = nn.Linear(hidden, units)
        self.feedback = Feedback(inputs, hidden, latent) if feedback else None

    def forward(self, x: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the logits of all output units."""
        logits: Tensor = self.head(self.encoder(x, gates))
        return logits


class VAE(nn.Module):
    """DGR's generator."""

    def __init__(self, inputs: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.encoder = Encoder(inputs, hidden)
        self.feedback = Feedback(inputs, hidden, latent)


class Plain:
    """A learner in plain PyTorch.

    Parameters
    ----------
    method
        Its name; settings have their defaults.
    scenario
        Task-IL or Domain-IL, with the classes of every task.
    inputs, hidden, latent, learning_rate, batch_size
        As in ``relive.core.learner.Learner``.
    rng
        Of latent variables.
    fisher_rows
        How many samples the Fisher information is summed over; all of the task's if not given.
    """

    def __init__(
        self,
        method: str,
        scenario: Scenario,
        inputs: int,
        *,
        hidden: int = 400,
        latent: int = 100,
        learning_rate: float = 0.001,
        batch_size: int = 128,
        rng: torch.Generator | None = None,
        fisher_rows: int | None = None,
    ) -> None:
        self.method = method
        self.settings = METHODS[method].defaults
        self.scenario = scenario
        self.batch_size = batch_size
        self.rng = rng or torch.Generator()
        self.fisher_rows = fisher_rows
        self.net = Classifier(inputs, hidden, latent, scenario.n_units, method == "rtf")
        self.vae = VAE(inputs, hidden, latent) if method in ("dgr", "dgr-distill") else None
        self.adam = torch.optim.Adam(self.net.parameters(), lr=learning_rate, foreach=False, fused=False)
        if self.vae is not None:
            self.vae_adam = torch.optim.Adam(self.vae.parameters(), lr=learning_rate, foreach=False, fused=False)
        self.gates = self._gates(hidden) if method == "xdg" else None
        self.terms: list[tuple[list[Tensor], list[Tensor]]] = []  # EWC: F and θ̂ of every task; SI: Ω and θ̂
        self.seen = 0

    def _gates(self, hidden: int) -> Tensor:
        """Draw which hidden units each task may use: (tasks, layers, hidden)."""
        order = torch.rand(len(self.scenario.classes), 2, hidden, generator=self.rng).argsort(-1)
        return (order >= int(self.settings["proportion"] * hidden)).float()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy the parameters of a ``relive`` network, which may have unused output units."""
        units = self.scenario.n_units
        mine = {name: t[:units] if name.startswith("head.") else t for name, t in state.items()}
        self.net.load_state_dict({name: t for name, t in mine.items() if not name.startswith("vae.")})
        if self.vae is not None:
            vae = {name.removeprefix("vae."): t for name, t in mine.items() if name.startswith("vae.")}
            self.vae.load_state_dict(vae)

    # ---- training ---------------------------------------------------------------------------------------------

    def before_task(self) -> None:
        """Get ready for the next task."""
        self.seen += 1
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)
        self.generator = copy.deepcopy(self.vae or self.net).requires_grad_(False).feedback
        self.start = [p.detach().clone() for p in self.net.parameters()]
        self.omega = [torch.zeros_like(p) for p in self.start]

    def step(self, current: Sequence[Part]) -> float:
        """Take a step on the rows of the current task (Offline: of every task), and return their loss."""
        replayed = self.replay(current)
        loss = self.weigh([self.current_loss(*part) for part in current], self.replay_losses(replayed))
        self.adam.zero_grad()
        (loss + self.penalty()).backward()  # type: ignore[no-untyped-call]
        value = loss.item()
        before = [p.detach().clone() for p in self.net.parameters()] if self.method == "si" else []
        self.adam.step()
        for omega, old, p in zip(self.omega, before, self.net.parameters(), strict=False):
            if p.grad is not None:
                omega -= (p.detach() - old) * p.grad
        if self.vae is not None:
            value += self.train_vae(current, replayed)
        return value

    def train_vae(self, current: Sequence[Part], replayed: Sequence[Replayed]) -> float:
        """Take a step with DGR's generator on the same rows, and return its loss."""
        assert self.vae is not None
        encoder, feedback = self.vae.encoder, self.vae.feedback
        losses = [[feedback.loss(encoder(x), x, self.rng) for _, x, _ in parts] for parts in (current, replayed)]
        loss = self.weigh(*losses)
        self.vae_adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.vae_adam.step()
        return loss.item()

    def weigh(self, current: Sequence[Tensor], replayed: Sequence[Tensor]) -> Tensor:
        """Return 1/N of the current loss and the rest of the replayed one, all heads weighted equally."""
        loss = torch.stack(list(current)).mean()
        if not replayed:
            return loss
        return loss / self.seen + (1 - 1 / self.seen) * torch.stack(list(replayed)).mean()

    def columns(self, task: int) -> slice:
        """Return the task's output units."""
        units = self.scenario.units(task).tolist()
        return slice(units[0], units[-1] + 1)

    def current_loss(self, task: int, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of rows with labels."""
        h = self.net.encoder(x, None if self.gates is None else self.gates[task])
        loss = F.cross_entropy(self.net.head(h)[:, self.columns(task)], y)
        return loss if self.net.feedback is None else loss + self.net.feedback.loss(h, x, self.rng)

    def replay(self, current: Sequence[Part]) -> list[Replayed]:
        """Return the inputs to replay for every earlier head, with the previous model's logits."""
        if self.seen == 1:
            return []
        heads = [group[-1] for group in self.scenario.groups(self.seen - 1)]
        with torch.no_grad():
            if self.method == "lwf":
                logits = self.teacher(current[0][1])
                return [(head, current[0][1], logits[:, self.columns(head)]) for head in heads]
            if self.method in GENERATIVE:
                assert self.generator is not None
                n = math.ceil(self.batch_size / len(heads))
                inputs = [self.generator.sample(n, self.rng) for _ in heads]
                return [
                    (head, x, self.teacher(x)[:, self.columns(head)]) for head, x in zip(heads, inputs, strict=True)
                ]
        return []

    def replay_losses(self, replayed: Sequence[Replayed]) -> list[Tensor]:
        """Return the loss of every head's rows, a forward pass for each; LwF's heads share their inputs."""
        if self.method == "lwf" and replayed:
            h = self.net.encoder(replayed[0][1])
            return [self.replay_loss(head, h, x, teacher) for head, x, teacher in replayed]
        return [self.replay_loss(head, self.net.encoder(x), x, teacher) for head, x, teacher in replayed]

    def replay_loss(self, head: int, h: Tensor, x: Tensor, teacher: Tensor) -> Tensor:
        """Return the loss of replayed rows through their head."""
        logits = self.net.head(h)[:, self.columns(head)]
        if self.method == "dgr":
            loss = F.cross_entropy(logits, teacher.argmax(1))
        else:
            log_p = F.log_softmax(logits / TEMPERATURE, dim=1)
            loss = -(TEMPERATURE**2) * (F.softmax(teacher / TEMPERATURE, dim=1) * log_p).mean()
        return loss if self.net.feedback is None else loss + self.net.feedback.loss(h, x, self.rng)

    # ---- penalties --------------------------------------------------------------------------------------------

    def penalty(self) -> Tensor | float:
        """Return the regularisation term."""
        if not self.terms:
            return 0.0
        quadratics = [
            (strength * (p - anchor) ** 2).sum()
            for strengths, anchors in self.terms
            for strength, anchor, p in zip(strengths, anchors, self.net.parameters(), strict=True)
        ]
        factor = {"ewc": 0.5, "online-ewc": 0.5 * self.settings.get("gamma", 1.0), "si": 1.0}[self.method]
        strength: float = self.settings["c" if self.method == "si" else "lam"]
        total: Tensor = strength * factor * torch.stack(quadratics).sum()
        return total

    def after_task(self, task: Task) -> None:
        """Compute from the finished task what the penalty needs."""
        theta = [p.detach().clone() for p in self.net.parameters()]
        if self.method == "ewc":
            self.terms.append((self.fisher(task), theta))
        elif self.method == "online-ewc":
            F_ = self.fisher(task)
            if self.terms:
                F_ = [self.settings["gamma"] * old + new for old, new in zip(self.terms[0][0], F_, strict=True)]
            self.terms = [(F_, theta)]
        elif self.method == "si":
            gained = [
                omega / ((p - start) ** 2 + self.settings["xi"])
                for omega, p, start in zip(self.omega, theta, self.start, strict=True)
            ]
            if self.terms:
                gained = [old + new for old, new in zip(self.terms[0][0], gained, strict=True)]
            self.terms = [(gained, theta)]

    def fisher(self, task: Task) -> list[Tensor]:
        """Return the Fisher information with predicted labels, one sample after the other."""
        n = len(task.train) if self.fisher_rows is None else min(self.fisher_rows, len(task.train))
        total = one_by_one(self.net, task.train.inputs(slice(0, n)), self.columns(self.seen - 1))
        return [t / (n - 1) for t in total]


def one_by_one(net: nn.Module, x: Tensor, columns: slice) -> list[Tensor]:
    """Return the sum of squared gradients of log p(most likely unit), a forward and a backward pass for each input."""
    total = [torch.zeros_like(p) for p in net.parameters()]
    for (row,) in DataLoader(TensorDataset(x), batch_size=1):
        log_p = F.log_softmax(net(row)[:, columns], dim=1)
        net.zero_grad()
        F.nll_loss(log_p, log_p.argmax(1)).backward()  # type: ignore[no-untyped-call]
        for t, p in zip(total, net.parameters(), strict=True):
            if p.grad is not None:
                t += p.grad.detach() ** 2
    return total


def batches(task: Task, batch_size: int) -> Iterator[list[Tensor]]:
    """Yield batches of a task endlessly, reshuffled after every epoch."""
    data = TensorDataset(task.train.inputs(slice(None)), task.train.labels)
    loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
    return chain.from_iterable(iter(loader) for _ in iter(int, 1))


def _part(task: int, batch: list[Tensor]) -> Part:
    x, y = batch
    return task, x, y


class PlainSubject:
    """A plain learner with its data, measured as a ``Subject`` is."""

    def __init__(self, learner: Plain, tasks: Sequence[Task]) -> None:
        self.learner = learner
        self.tasks = tasks

    def begin(self, task: int) -> Callable[[int], list[float]]:
        """Begin a task, from 1; return a function that does iterations of it and returns the seconds of each."""
        learner, numbers = self.learner, [task - 1]
        learner.before_task()
        if learner.method == "offline":
            numbers = list(range(task)) if len(learner.scenario.groups(task)) == task else numbers
        size = math.ceil(learner.batch_size / len(numbers))
        draws = [(k, batches(self.tasks[k], size)) for k in numbers]

        def block(n: int) -> list[float]:
            seconds = []
            for _ in range(n + 1):
                start = time.perf_counter()
                learner.step([_part(k, next(rows)) for k, rows in draws])
                seconds.append(time.perf_counter() - start)
            return seconds[1:]

        return block
