"""Rows of training: each row has an input, a target, the units that compete for it, and a weight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from relive.core.losses import cross_entropy


@dataclass(frozen=True)
class Batch:
    """The rows of one training step, current and replayed alike.

    Attributes
    ----------
    x
        (m, inputs) the inputs.
    target
        (n, units) a probability for every output unit; one-hot is a hard target.
    active
        (n, units) bool, the units in the row's softmax.
    weight
        (n,) the row's share of the total loss.
    temperature
        (n,) 1 for hard targets, T for distillation.
    scale
        (n,) a factor for the row's classification term only: 1 for hard targets, T² (and, in ``as_run``, one over the
        number of active units) for distillation.
    task
        (m,) the task of each input; only XdG reads it.
    source
        (n,) the input of each row, or None if there is one row per input. LwF has several rows per input, which
        share its forward pass.
    generated
        (n,) the weight of each row in a generator's loss, or None if it is ``weight``.
    """

    x: Tensor
    target: Tensor
    active: Tensor
    weight: Tensor
    temperature: Tensor
    scale: Tensor
    task: Tensor
    source: Tensor | None = None
    generated: Tensor | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def times(self, factor: float) -> Batch:
        """Return the same rows with their weights multiplied by ``factor``."""
        generated = None if self.generated is None else self.generated * factor
        return replace(self, weight=self.weight * factor, generated=generated)

    @property
    def generator_weight(self) -> Tensor:
        """The weight of each row in a generator's loss, (n,)."""
        return self.weight if self.generated is None else self.generated

    def classification_loss(self, logits: Tensor) -> Tensor:
        """Return the weighted classification (or distillation) loss of all rows, given (m, units) logits."""
        if self.source is not None:
            logits = logits[self.source]
        rows = cross_entropy(logits, self.target, self.active, self.temperature)
        return (self.weight * self.scale) @ rows


def hard_rows(x: Tensor, unit: Tensor, active: Tensor, task: Tensor) -> Batch:
    """Return rows with one correct unit each, weights summing to 1; ``active`` is (units,) or (n, units)."""
    n, n_units = len(x), active.shape[-1]
    one = x.new_ones(n)
    target = x.new_zeros(n, n_units).scatter_(1, unit.unsqueeze(1), 1.0)
    return Batch(x, target, active.expand(n, n_units), one / n, one, one, task)


def concat(parts: list[Batch]) -> Batch:
    """Join rows; inputs that several parts share (the same tensor) are stored once."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    shared = all(part.x is first.x for part in parts)
    if not shared and any(part.source is not None for part in parts):
        raise ValueError("rows that share inputs can only be joined with rows of the same inputs")
    every = torch.arange(len(first.x), device=first.x.device)
    return Batch(
        first.x if shared else torch.cat([part.x for part in parts]),
        torch.cat([part.target for part in parts]),
        torch.cat([part.active for part in parts]),
        torch.cat([part.weight for part in parts]),
        torch.cat([part.temperature for part in parts]),
        torch.cat([part.scale for part in parts]),
        first.task if shared else torch.cat([part.task for part in parts]),
        torch.cat([every if part.source is None else part.source for part in parts]) if shared else None,
        None if all(part.generated is None for part in parts) else torch.cat([part.generator_weight for part in parts]),
    )
