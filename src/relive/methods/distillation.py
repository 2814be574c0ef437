"""How replayed inputs get their targets from a frozen copy of the main model, in each scenario."""

from __future__ import annotations

import torch
from torch import Tensor

from relive.core.batch import Batch
from relive.core.losses import hard_targets, soft_targets
from relive.core.method import Problem
from relive.networks import Classifier

TEMPERATURE = 2.0


@torch.no_grad()
def label(
    teacher: Classifier,
    x: Tensor,
    source: Tensor | None,
    group: Tensor,
    seen: int,
    problem: Problem,
    soft: bool,
) -> Batch:
    """Return rows whose targets are what the teacher says of the inputs.

    Parameters
    ----------
    teacher
        The model as the task before left it.
    x, source
        (m, inputs), and (n,) which of them each row is about (None: one row each).
    group
        (n,) index into the scenario's groups of earlier tasks: whose head the row is for.
    seen
        Tasks so far, the current one included. The teacher answers with the units known before it, the student
        with those known now: in Class-IL the new classes get probability 0.
    soft
        Whether targets are probabilities at temperature T, or the most likely unit.
    """
    scenario = problem.scenario
    heads = [members[-1] for members in scenario.groups(seen - 1)]
    known = torch.stack([scenario.active(task, seen - 1) for task in heads])[group]  # (n, units)
    active = torch.stack([scenario.active(task, seen) for task in heads])[group]
    logits = teacher(x)
    if source is not None:
        logits = logits[source]
    n = len(group)
    if soft:
        target = soft_targets(logits, known, TEMPERATURE)
        temperature = torch.full((n,), TEMPERATURE)
        mean = problem.fidelity.distillation_loss == "mean"
        scale = TEMPERATURE**2 / (active.sum(1) if mean else torch.ones(n))
    else:
        target = hard_targets(logits, known)
        temperature = scale = torch.ones(n)
    task = torch.tensor(heads)[group] if source is None else torch.full((len(x),), seen - 1)
    return Batch(x, target, active, torch.full((n,), 1 / n), temperature, scale, task, source)
