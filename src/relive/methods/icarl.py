r"""iCaRL: exemplars chosen by herding, distillation, and nearest-mean-of-exemplars classification.

The network learns a binary output for every unit: y comes from labels for the current task's classes, and from the
old network for all others; φ are its features, normalised to unit length. An input is assigned to the class with the
nearest exemplar mean in feature space; exemplars are chosen one by one to keep their mean close to the class's:

.. math::
    L = -\sum_u \big(y_u \log \sigma_u + (1 - y_u) \log(1 - \sigma_u)\big)
    \qquad \hat c = \arg\min_c \lVert \varphi(x) - \mu_c \rVert
    \qquad p_k = \arg\min_x \big\lVert \mu - \tfrac1k (\varphi(x) + \textstyle\sum_{j<k} \varphi(p_j)) \big\rVert

Rebuffi et al. (2017), "iCaRL: incremental classifier and representation learning", CVPR. Deviations: exemplars are a
separate batch next to the current one, with the weight that replay has in the other methods, where the paper draws
from both together. It was designed for Class-IL. In Task-IL only the classes of the task compete. In Domain-IL there is
a mean for every class of every task, and a unit's distance is that of the nearest class that shares it; there, current
rows are learned from labels only, exemplars from the old network's outputs. During a task, its classes have no
exemplars yet, and the network's own outputs are used.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from relive.core.batch import Batch
from relive.core.method import Method
from relive.core.sources import Part
from relive.methods import classes
from relive.methods.buffer import Buffer, where
from relive.methods.catalogue import METHODS
from relive.networks import Classifier
from relive.networks.head import OFF

CHUNK = 1000  # samples per forward pass


class ICaRL(Method):
    """Nearest mean of exemplars, on features stabilised by distillation."""

    facts: ClassVar = METHODS["icarl"]

    def __init__(self, budget: float = 200) -> None:
        self.budget = budget
        self.buffer_ = Buffer(int(budget))
        self.learning_ = False

    def before_task(self, net: Classifier, known: int) -> None:
        self.teacher_ = copy.deepcopy(net).requires_grad_(False)
        self.learning_ = True
        scenario = self.problem.scenario
        nothing = torch.zeros(scenario.width, dtype=torch.bool, device=self.problem.device)
        self.old_ = torch.stack([nothing, *(scenario.active(task, known) for task in range(known))]).any(0)
        self.own_ = torch.stack([nothing] * len(scenario.classes))  # (tasks, units)
        for task, own in enumerate(self.own_):
            own[scenario.units(task)] = True

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        self.n_current_ = len(current)
        return self.buffer_.draw(self.problem.batch_size, seen, self.problem.scenario, rng)

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        current = torch.arange(len(batch), device=batch.x.device).unsqueeze(1) < self.n_current_
        labelled = ~self.old_ | (self.own_[batch.task] & current)  # (n, units)
        target = torch.where(labelled, batch.target, self.teacher_(batch.x).sigmoid())
        units = binary_cross_entropy_with_logits(net(batch.x), target, reduction="none")
        return batch.weight @ (units * batch.active).sum(1)

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        if self.learning_ or not len(self.buffer_):
            return super().logits(net, x, task)
        kept, n_classes = self.buffer_, classes.count(self.problem.scenario)
        member = torch.zeros(len(kept), n_classes, device=x.device)
        member[torch.arange(len(kept), device=x.device), kept.number] = 1.0
        means = normalize(member.T @ features(net, kept.x))  # (classes, features); of unit length, as in the paper
        distance = torch.cdist(features(net, x), means)  # (n, classes)
        answers = torch.zeros(n_classes, self.problem.scenario.width, dtype=torch.bool, device=x.device)
        answers[kept.number, kept.unit] = True
        return torch.where(answers, -distance.unsqueeze(2), OFF).amax(1)

    @torch.no_grad()
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        self.learning_ = False
        ranks, scenario = [], self.problem.scenario
        room = -(-self.buffer_.size // classes.count(scenario, seen))  # per class, rounded up
        for part in learned:
            examples, n = part.examples, len(part.examples)
            chunks = [examples.inputs(slice(start, start + CHUNK)) for start in range(0, n, CHUNK)]
            phi = torch.cat([features(net, x) for x in chunks])
            rank = torch.full((n,), float(n), device=phi.device)
            for label in range(len(scenario.classes[part.task])):
                mine = where(examples.labels == label)
                best = herded(phi[mine], min(room, len(mine)))
                rank[mine[best]] = torch.arange(float(len(best)), device=phi.device)
            ranks.append(rank)
        self.buffer_.add(learned, ranks, scenario)

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        self.buffer_.drop(classes.numbers_of(self.problem.scenario, gone))

    def state(self) -> dict[str, Tensor]:
        return self.buffer_.state()

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        self.buffer_.check(state, self.problem.sizes.inputs, self.problem.scenario)

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.buffer_ = self.buffer_.restored(state)
        self.learning_ = False


def features(net: Classifier, x: Tensor) -> Tensor:
    """Return features of unit length, (n, features)."""
    return normalize(net.encoder(x))


def herded(phi: Tensor, n: int) -> Tensor:
    """Return n of the rows, in the order that brings their mean closest to that of all: (n,).

    >>> herded(torch.tensor([[0.0], [4.0], [5.0], [11.0]]), 3).tolist()
    [2, 1, 3]
    """
    mean, total = phi.mean(0), torch.zeros_like(phi[:1].sum(0))
    left, square, chosen = phi.new_zeros(len(phi)), phi.square().sum(1), []
    for k in range(1, n + 1):
        # |k μ − Σ − φ|² = |φ|² − 2 φ · (k μ − Σ) + constant
        best = (square - 2 * phi @ (k * mean - total) + left).argmin()
        left[best] = torch.inf
        total = total + phi[best]
        chosen.append(best)
    return torch.stack(chosen) if chosen else torch.empty(0, dtype=torch.long, device=phi.device)
