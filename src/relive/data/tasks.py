"""One task of a sequence: training data, test data, and its classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Transform = Callable[[Tensor], Tensor]
"""Maps stored rows (n, inputs) to rows of the same size and range; bytes may become floats."""


@dataclass(frozen=True)
class Examples:
    """Labelled rows of one task; bytes are converted to [0, 1] only when they are drawn.

    Attributes
    ----------
    pixels
        (n, inputs) uint8, or float32 unchanged; tasks that differ only in their transform share one tensor.
    labels
        (n,) positions within the task's classes.
    top
        The value that becomes 1.
    transform
        Applied to rows when they are drawn, or None.
    """

    pixels: Tensor
    labels: Tensor
    top: int = 255
    transform: Transform | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def inputs(self, rows: Tensor | slice) -> Tensor:
        """Return those rows as (rows, inputs) float32."""
        x = self.pixels[rows] if isinstance(rows, slice) else self.pixels.index_select(0, rows)
        if self.transform is not None:
            x = self.transform(x)
        return x.float().div_(self.top) if self.pixels.dtype == torch.uint8 else x.float()

    def to(self, device: torch.device) -> Examples:
        """Return the same rows on a device."""
        return replace(self, pixels=self.pixels.to(device), labels=self.labels.to(device))

    def take(self, rows: Tensor) -> Examples:
        """Return only those rows."""
        return replace(self, pixels=self.pixels[rows], labels=self.labels[rows])


@dataclass(frozen=True)
class Task:
    """One task: training data, test data, and its classes.

    Attributes
    ----------
    train, test
        Labelled rows; a label is a position in ``classes``.
    classes
        Ids that are unique over the whole protocol: classes in split, (permutation, class) pairs in permuted.
    names
        The names of these classes.
    shape
        The shape of an input: height and width of a grey image, plus 3 for colour, or the number of features.
    """

    train: Examples
    test: Examples
    classes: tuple[int, ...]
    names: tuple[str, ...]
    shape: tuple[int, ...]

    def to(self, device: torch.device) -> Task:
        """Return the same task with its rows on a device."""
        return replace(self, train=self.train.to(device), test=self.test.to(device))

    @property
    def n_inputs(self) -> int:
        """How many numbers one input has."""
        return math.prod(self.shape)

    @property
    def is_picture(self) -> bool:
        """Whether an input is a picture, grey or in colour."""
        return len(self.shape) == 2 or (len(self.shape) == 3 and self.shape[2] == 3)
