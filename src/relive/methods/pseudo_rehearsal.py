"""Pseudo-rehearsal: replay random inputs, with the answers that the network gave to them before this task.

Inputs in [0, 1] are random zeros and ones; standardised features are drawn from N(0, 1). No data are stored, and
nothing is learned about inputs: what is preserved is the function that the network computes on noise.

Robins (1995), "Catastrophic forgetting, rehearsal and pseudorehearsal", Connection Science 7. Deviations: new pseudo-
items are drawn for every step, and the answers are soft targets at temperature 2, as in the other replay methods;
in ``as_run`` (the default), distillation is divided by the number of active classes (``distillation_loss``).
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch

from relive.core.batch import Batch
from relive.methods.catalogue import METHODS
from relive.methods.distillation import Distils, label
from relive.networks import Classifier
from relive.networks.likelihoods import LIKELIHOODS


class PseudoRehearsal(Distils):
    """Distil the previous model on random inputs."""

    facts: ClassVar = METHODS["pseudo-rehearsal"]

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if not self.known_:
            return None
        problem = self.problem
        n_groups = len(problem.scenario.groups(self.known_))
        n = math.ceil(problem.batch_size / n_groups)  # rows per group
        x = LIKELIHOODS[problem.sizes.likelihood].noise((n * n_groups, problem.sizes.inputs), rng).to(problem.device)
        group = torch.arange(n_groups, device=x.device).repeat_interleave(n)
        return label(self.teacher_, x, None, group, self.known_, seen, problem, soft=True)
