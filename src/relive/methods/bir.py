r"""Brain-inspired replay: RtF with a network that knows which class it replays.

It adds three things. Every class c has its own prior in latent space, whose mean and variance are learned with the
network; a row's latent term is against the prior of its class, or, for a replayed row, the mixture of its classes:

.. math:: \log q(z|x) - \log \sum_c y_c \, N(z;\, \mu_c, \sigma_c^2), \qquad z \sim q(z|x)

Replay is drawn from these priors, evenly over the classes seen. And for every class some units of the decoder's hidden
layers are switched off, a different random subset for each. Targets are the old network's probabilities, as in RtF.

van de Ven, Siegelmann & Tolias (2020), "Brain-inspired replay for continual learning with artificial neural networks",
Nature Communications 11. Deviations: there, images first pass through frozen convolutions, whose outputs are replayed;
here the inputs are replayed. The default ``gate`` is that of the authors' later code for split MNIST in Domain- and
Class-IL (van de Ven, Tuytelaars & Tolias 2022; 0 in Task-IL there, 0.8 in the code of 2020). A decoder that comes with
an encoder (``conv``) is not gated. In Domain-IL there is a prior for every class of every task, although classes share
output units, and gates belong to the same classes; there, priors belonged to output units and gates to tasks. Rows are
divided among the classes as evenly as possible; there, every row's class was drawn. In ``as_run`` (the default),
generative losses are divided by the number of pixels (``generative_loss``) and distillation by that of active classes
(``distillation_loss``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.method import Problem
from relive.core.sources import Part
from relive.data.tasks import Task
from relive.methods import classes
from relive.methods.catalogue import METHODS
from relive.methods.distillation import label
from relive.methods.generative_replay import GenerativeReplay
from relive.networks import Classifier, ConditionalClassifier
from relive.networks.conditional import evenly


class BIR(GenerativeReplay):
    """Replay-through-Feedback with a prior and gates for every class."""

    facts: ClassVar = METHODS["bir"]
    soft = True
    one_network = True

    def __init__(self, gate: float = 0.1) -> None:
        self.gate = gate

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        gone = classes.numbers_of(problem.scenario, problem.scenario.gone)
        net = ConditionalClassifier(problem.sizes, classes.count(problem.scenario), self.gate, rng, gone)
        self.n_gates_ = net.gates.numel()
        return net

    def before_task(self, net: Classifier, known: int) -> None:
        super().before_task(net, known)
        self.kinds_ = self._kinds(known)
        self.met_ = 0

    def _kinds(self, known: int) -> Tensor:
        """Return the kinds of rows to replay, (kinds, 3): the head, the class, and a task that had it."""
        scenario = self.problem.scenario
        kinds = {
            (group, number): task
            for group, members in enumerate(scenario.groups(known))
            for task in members
            for c, number in zip(scenario.classes[task], classes.numbers(scenario, task).tolist(), strict=True)
            if c not in scenario.gone
        }
        return torch.tensor([(*kind, task) for kind, task in kinds.items()])

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if not self.met_:
            self.met_ = classes.count(self.problem.scenario, seen)
            self.table_ = classes.of_units(self.problem.scenario, seen)
        if not self.known_:
            return None
        drawn = self.kinds_[evenly(self.problem.batch_size, len(self.kinds_), rng)]
        group, number, task = drawn.to(self.problem.device).unbind(1)
        x = conditional(self.teacher_).generate_classes(number, rng)
        return label(self.teacher_, x, None, group, self.known_, seen, self.problem, self.soft, task)

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        net = conditional(net)
        weight = classes.weights(batch, self.table_, self.met_)
        logits, reconstruction, latent = net.answer(batch.x, weight, rng)
        rows = net.likelihood.rows(reconstruction, batch.x) + latent
        if self.problem.fidelity.generative_loss == "per_pixel":
            rows = rows / batch.x.shape[1]
        return batch.classification_loss(logits) + batch.generator_weight @ rows

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        conditional(net).met.fill_(classes.count(self.problem.scenario, seen))

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        numbers = sorted(classes.numbers_of(self.problem.scenario, gone))
        conditional(net).means[numbers] = 0
        conditional(net).logvars[numbers] = 0

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        return self.n_gates_


def conditional(net: Classifier) -> ConditionalClassifier:
    """Return the network, checked to be of the required type."""
    if not isinstance(net, ConditionalClassifier):
        raise TypeError(f"{type(net).__name__} has no priors for its classes")
    return net
