r"""Generative replay: relive earlier tasks by generating their inputs. DGR, DGR+distill and RtF.

Inputs come from the generator as the previous task left it, targets from the main model of that time; the loss is

.. math:: \tfrac1N L_\text{current} + (1 - \tfrac1N) L_\text{replay}

The three methods differ in two switches. *Soft targets?* DGR replays the most likely class, DGR+distill and RtF its
probabilities. *One network?* DGR trains a VAE next to the classifier, on the same rows; in RtF the generator is the
main model's own feedback connections: the classifier's hidden layers are the encoder, and a single pass serves both.

Shin et al. (2017), "Continual learning with deep generative replay", NeurIPS; van de Ven & Tolias (2018), "Generative
replay with feedback connections as a general strategy for continual learning". In Task-IL the main model replays
⌈128/(N−1)⌉ rows for each earlier task, which may be a few more than 128, and DGR's generator exactly 128 of them.
Deviation: DGR's two networks take their steps together, on the same rows; they share no parameters, so it is the
same method. In ``as_run`` (the default), the VAE's loss is divided by the number of pixels (``generative_loss``) and
distillation by that of active classes (``distillation_loss``).
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.method import Method, Problem
from relive.methods.catalogue import METHODS
from relive.methods.distillation import label
from relive.networks import (
    Classifier,
    ClassifierWithVAE,
    FeedbackClassifier,
    GenerativeClassifier,
    ReconstructingClassifier,
)
from relive.networks.feedback import latent


class GenerativeReplay(Method):
    """What the three methods share; a subclass sets the two switches."""

    soft: ClassVar[bool]
    one_network: ClassVar[bool]

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        network = FeedbackClassifier if self.one_network else ClassifierWithVAE
        return network(problem.sizes, rng)

    def usual_temperature(self, n_classes: int) -> float:
        return math.sqrt(2)  # replay makes the network overconfident

    def before_task(self, net: Classifier, known: int) -> None:
        self.teacher_ = copy.deepcopy(generative(net)).requires_grad_(False)
        self.known_ = known

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if not self.known_:
            return None
        n_groups = len(self.problem.scenario.groups(self.known_))
        n = math.ceil(self.problem.batch_size / n_groups)  # rows per group
        x = self.teacher_.generate(n * n_groups, rng)
        group = torch.arange(n_groups, device=x.device).repeat_interleave(n)
        rows = label(self.teacher_, x, None, group, self.known_, seen, self.problem, self.soft)
        if self.one_network or len(x) == self.problem.batch_size:
            return rows
        n = self.problem.batch_size  # a separate generator replays no more than that
        generated = (torch.arange(len(x), device=x.device) < n) & (rows.weight > 0)
        return replace(rows, generated=generated / n)

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        net = reconstructing(net)
        answers = net.answer(batch.x, rng)
        rows = net.likelihood.rows(answers.reconstruction, batch.x) + latent(answers.mu, answers.logvar)
        if self.problem.fidelity.generative_loss == "per_pixel":
            rows = rows / batch.x.shape[1]
        return batch.classification_loss(answers.logits) + batch.generator_weight @ rows


def generative(net: Classifier) -> GenerativeClassifier:
    """Return the network, checked to be generative."""
    if not isinstance(net, GenerativeClassifier):
        raise TypeError(f"{type(net).__name__} cannot generate: it has no feedback connections and no generator")
    return net


def reconstructing(net: Classifier) -> ReconstructingClassifier:
    """Return the network, checked to classify and reconstruct in one pass."""
    if not isinstance(net, ReconstructingClassifier):
        raise TypeError(f"{type(net).__name__} does not reconstruct what it classifies")
    return net


class DGR(GenerativeReplay):
    """A separate generator, hard targets."""

    facts: ClassVar = METHODS["dgr"]
    soft = False
    one_network = False


class DGRDistill(GenerativeReplay):
    """A separate generator, soft targets."""

    facts: ClassVar = METHODS["dgr-distill"]
    soft = True
    one_network = False


class RtF(GenerativeReplay):
    """Replay-through-Feedback: the main model's own feedback connections generate; soft targets."""

    facts: ClassVar = METHODS["rtf"]
    soft = True
    one_network = True
