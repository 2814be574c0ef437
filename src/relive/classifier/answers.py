"""A learner's predictions as classes instead of output units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive.core.learner import Learner
from relive.networks.head import masked

Array = npt.NDArray[Any]


@torch.no_grad()
def class_probabilities(learner: Learner, x: Tensor, task: int) -> tuple[Array, Tensor]:
    """Return the possible classes for inputs of a task, and their probabilities, (n, classes)."""
    scenario = learner.scenario
    active = scenario.active(task, learner.seen)
    class_of = {
        int(unit): c
        for k, classes in enumerate(scenario.classes[: learner.seen])
        for unit, c in zip(scenario.units(k), classes, strict=True)
    }
    units = active.nonzero().flatten()
    probabilities = masked(learner.logits(x, task), active).cpu().double().softmax(1)[:, units.cpu()]
    return np.array([class_of[int(unit)] for unit in units]), probabilities


@torch.no_grad()
def without_forgotten(learner: Learner, x: Tensor) -> Tensor:
    """Return the inputs that are not assigned to a forgotten class, (m, inputs); in Task-IL, all of them."""
    scenario, task = learner.scenario, learner.seen - 1
    if not scenario.gone or scenario.needs_task:
        return x
    gone = scenario.forgotten(task, learner.seen)
    best = masked(learner.logits(x, task), gone | scenario.active(task, learner.seen)).argmax(1)
    return x[~gone[best]]


def most_likely_classes(learner: Learner, x: Tensor, task: int) -> Array:
    """Return the most likely class of every input, (n,)."""
    classes, probabilities = class_probabilities(learner, x, task)
    answers: Array = classes[probabilities.argmax(1).numpy()]
    return answers
