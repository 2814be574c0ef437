"""Standardisation of features of any range, with the mean and standard deviation of the first task.

Statistics of all tasks would leak information about future classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from relive._util.errors import InputError
from relive.data.tasks import Examples, Task

LIMIT = 10.0  # deviations; beyond, features are compressed logarithmically: a later task may lie far from the first


def standardised(tasks: Sequence[Task], name: str) -> list[Task]:
    """Return the tasks with features standardised by the first task's training data, before any transform.

    Parameters
    ----------
    tasks
        The tasks made by a protocol. Those that share a tensor still do.
    name
        The data set's, for messages.
    """
    first = tasks[0].train.pixels.double()
    mean, deviation = first.mean(0), first.std(0, correction=0)
    if not deviation.isfinite().all():
        raise InputError(f"{name} has values up to {first.abs().max():g}: too large to standardise")
    scale = torch.where(deviation <= 1e-9 * mean.abs(), 1.0, deviation)  # a constant feature keeps its unit
    done: dict[int, Tensor] = {}

    def scaled(examples: Examples) -> Examples:
        if id(examples.pixels) not in done:
            done[id(examples.pixels)] = _scaled(examples.pixels, mean, scale, name)
        return replace(examples, pixels=done[id(examples.pixels)])

    return [replace(task, train=scaled(task.train), test=scaled(task.test)) for task in tasks]


def _scaled(pixels: Tensor, mean: Tensor, scale: Tensor, name: str) -> Tensor:
    x = (pixels.double() - mean) / scale  # (n, inputs)
    if not x.isfinite().all():
        feature = int((~x.isfinite()).any(0).nonzero()[0])
        raise InputError(
            f"feature {feature + 1} of {name} has values up to {pixels[:, feature].abs().max():g}, too far from those "
            "of the first task: leave these samples out, or scale the feature yourself"
        )
    beyond = LIMIT * (x.abs() / LIMIT).clamp(min=1).log()
    return (x.clamp(-LIMIT, LIMIT) + x.sign() * beyond).float()
