"""How replayed inputs get their targets from a frozen copy of the main model, in each scenario."""

from __future__ import annotations

import copy
from abc import ABC

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.losses import hard_targets, soft_targets
from relive.core.method import Method, Problem
from relive.networks import Classifier
from relive.networks.head import masked

TEMPERATURE = 2.0


class Distils(Method, ABC):
    """What distillation methods share: they query the model as it was before this task on some inputs."""

    def before_task(self, net: Classifier, known: int) -> None:
        self.teacher_ = copy.deepcopy(net).requires_grad_(False)
        self.known_ = known


@torch.no_grad()
def label(
    teacher: Classifier,
    x: Tensor,
    source: Tensor | None,
    group: Tensor,
    known: int,
    seen: int,
    problem: Problem,
    soft: bool,
    task: Tensor | None = None,
) -> Batch:
    """Return rows whose targets are the teacher's predictions for the inputs.

    Parameters
    ----------
    teacher
        The model as the previous task left it.
    x, source
        (m, inputs), and (n,) the input of each row (None: one row each).
    group
        (n,) index into the scenario's groups of the tasks that the teacher knows: the head that the row is for.
    known, seen
        How many tasks the teacher knows, and how many the student has seen. Each uses its own units: in
        Class-IL the new classes get probability 0.
    soft
        Whether targets are probabilities at temperature T, or the most likely unit.
    task
        (m,) the task of each input, if that is not the task of the head that its row is for.

    A row whose input the teacher assigns to a class forgotten since gets weight 0.
    """
    scenario = problem.scenario
    heads = [members[-1] for members in scenario.groups(known)]
    of_teacher = torch.stack([scenario.active(task, known) for task in heads])[group]  # (n, units)
    active = torch.stack([scenario.active(task, seen) for task in heads])[group]
    logits = teacher(x)
    if source is not None:
        logits = logits[source]
    n = len(group)
    one = logits.new_ones(n)
    if soft:
        target = soft_targets(logits, of_teacher, TEMPERATURE)
        mean = problem.fidelity.distillation_loss == "mean"
        temperature, scale = TEMPERATURE * one, TEMPERATURE**2 / (active.sum(1) if mean else one)
    else:
        target = hard_targets(logits, of_teacher)
        temperature = scale = one
    if task is None:
        task = torch.tensor(heads, device=x.device)[group]
    weight = logits.new_full((n,), 1 / n)
    if scenario.gone:
        forgotten = torch.stack([scenario.forgotten(task, known) for task in heads])[group]
        best = masked(logits, of_teacher | forgotten).argmax(1, keepdim=True)
        counts = (~forgotten.gather(1, best)).squeeze(1).float()
        weight = counts / counts.sum().clamp_min(1)
    return Batch(x, target, active, weight, temperature, scale, task, source)
