"""Learning without Forgetting: replay the current inputs, labelled by the model as it was before this task.

Every current input is also used with soft targets from the frozen copy of the model: in Task-IL once for each earlier
head, otherwise once. All of these rows have the same inputs, so they share one forward pass.

Li & Hoiem (2017), "Learning without forgetting", IEEE TPAMI 40. Deviations: the loss is weighted by the number of tasks
so far instead of a hyperparameter, there is no warm-up of the new head, and no weight decay; in ``as_run`` (the
default), distillation is divided by the number of active classes (``distillation_loss``).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from relive.core.batch import Batch
from relive.methods.catalogue import METHODS
from relive.methods.distillation import Distils, label
from relive.networks import Classifier


class LwF(Distils):
    """Distil the previous model on the inputs of the current task."""

    facts: ClassVar = METHODS["lwf"]

    def usual_temperature(self, n_classes: int) -> float:
        return 4.0

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if not self.known_:
            return None
        n_groups, n = len(self.problem.scenario.groups(self.known_)), len(current.x)
        source = torch.arange(n, device=current.x.device).repeat(n_groups)
        group = torch.arange(n_groups, device=current.x.device).repeat_interleave(n)
        asked = self.teacher_, current.x, source, group, self.known_, seen, self.problem
        return label(*asked, soft=True, task=current.task)
