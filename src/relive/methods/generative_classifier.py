r"""Generative classification: a small VAE for every class; the class whose VAE finds an input most likely wins.

.. math:: \hat c = \arg\max_c \; p(x|c) \, p(c)

p(x|c) is estimated with S importance samples, and p(c) is the same for all classes. Each class is learned by its own
VAE from its own inputs, and no other VAE is involved: there is nothing to forget. What grows is the network, by one VAE
per class.

van de Ven, Li & Tolias (2021), "Class-incremental learning with generative classifiers", CVPR Workshops. Sizes are
theirs for MNIST: two hidden layers of 85 units, 5 latent variables. Deviations: S is 10 by default, as in their code,
where the published number uses 10,000; the rows of a step are divided among the classes of a task, where they trained
one class after the other with as many rows in total; Adam's step count is shared by all VAEs. It was designed for
Class-IL; in Task-IL only the task's classes compete, and in Domain-IL a unit stands for all its classes together.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.method import Method, Problem
from relive.methods import classes
from relive.methods.buffer import where
from relive.methods.catalogue import METHODS
from relive.networks import Classifier, VAEPerClass, trainable
from relive.networks.head import OFF


class GenerativeClassification(Method):
    """Ask one VAE per class how likely an input is."""

    facts: ClassVar = METHODS["generative-classifier"]

    def __init__(self, hidden: float = 85, latent: float = 5, samples: float = 10) -> None:
        self.hidden = hidden
        self.latent = latent
        self.samples = samples

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        self.n_classes_ = classes.count(problem.scenario)
        gone = classes.numbers_of(problem.scenario, problem.scenario.gone)
        return VAEPerClass(problem.sizes, self.n_classes_, int(self.hidden), int(self.latent), rng, gone)

    def before_task(self, net: Classifier, known: int) -> None:
        self.held_ = [p.detach().clone() for p in trainable(net)]
        self.table_ = torch.empty(0, 0)

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if len(self.table_) != seen:
            self.table_ = classes.of_units(self.problem.scenario, seen)
            per_class(net).met.fill_(classes.count(self.problem.scenario, seen))
        return None

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        number = self.table_[batch.task].gather(1, batch.target.argmax(1, keepdim=True)).squeeze(1)
        self.trained_ = [c for c in range(self.n_classes_) if (number == c).any()]
        parts = []
        for c in self.trained_:
            mine = where(number == c)
            parts.append(batch.weight[mine] @ per_class(net).rows(c, batch.x[mine], rng))
        return torch.stack(parts).sum()

    @torch.no_grad()
    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Undo what an optimizer's momentum changed in VAEs that had no rows in this step."""
        per_vae = len(theta) // self.n_classes_
        for i, (p, held) in enumerate(zip(theta, self.held_, strict=True)):
            if i // per_vae in self.trained_:
                held.copy_(p)
            else:
                p.copy_(held)

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        for number in classes.numbers_of(self.problem.scenario, gone):
            for p in per_class(net).vae(number).parameters():
                p.zero_()

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        found = per_class(net).log_likelihood(x, int(self.samples))  # (n, classes learned)
        scenario = self.problem.scenario.to(torch.device("cpu"))
        answers = torch.zeros(found.shape[1], scenario.width, dtype=torch.bool)
        for k in range(len(scenario.classes)):
            known = classes.numbers(scenario, k) < len(answers)
            answers[classes.numbers(scenario, k)[known], scenario.units(k)[known]] = True
        return torch.where(answers.to(x.device), found.unsqueeze(2), OFF).logsumexp(1)


def per_class(net: Classifier) -> VAEPerClass:
    """Return the network, checked to be of the required type."""
    if not isinstance(net, VAEPerClass):
        raise TypeError(f"{type(net).__name__} has no VAE for each class")
    return net
