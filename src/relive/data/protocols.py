"""Split and permuted: how one data set becomes a sequence of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive.data.sources import Dataset
from relive.errors import InputError, unknown
from relive.fidelity import AS_RUN, Fidelity
from relive.seeds import stream

Images = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Examples:
    """Labelled rows of one task; bytes are turned into [0, 1] only when they are drawn.

    Attributes
    ----------
    pixels
        (n, inputs) uint8, or float32 as they are; permuted tasks share one tensor.
    labels
        (n,) positions within the task's classes.
    top
        The value that becomes 1.
    permutation
        (inputs,) where each input of a row comes from, or None to take rows as they are.
    """

    pixels: Tensor
    labels: Tensor
    top: int = 255
    permutation: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def inputs(self, rows: Tensor | slice) -> Tensor:
        """Return those rows as (rows, inputs) float32."""
        x = self.pixels[rows] if isinstance(rows, slice) else self.pixels.index_select(0, rows)
        if self.permutation is not None:
            x = x.gather(1, self.permutation.expand(len(x), -1))  # faster than an index
        return x.float().div_(self.top) if x.dtype == torch.uint8 else x


@dataclass(frozen=True)
class Task:
    """One task: what to learn from, what to be tested on, and which classes it has.

    Attributes
    ----------
    train, test
        Labelled rows; a label is a position in ``classes``.
    classes
        Ids that are unique over the whole protocol: digits in split, (permutation, digit) pairs in permuted.
    names
        How people call these classes.
    shape
        Height and width of an input when it is shown as a picture.
    """

    train: Examples
    test: Examples
    classes: tuple[int, ...]
    names: tuple[str, ...]
    shape: tuple[int, int]

    @property
    def n_inputs(self) -> int:
        """How many numbers one input has."""
        return self.shape[0] * self.shape[1]


def split(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN) -> list[Task]:
    """Divide the classes of a data set over tasks, each class in one task.

    Raises
    ------
    InputError
        If the number of tasks does not divide the number of classes.
    """
    n_classes = data.n_classes
    _check_split(data, n_tasks)
    order = torch.arange(n_classes)
    if fidelity.class_order == "shuffled_unless_seed_0" and seed != 0:
        order = torch.randperm(n_classes, generator=stream(seed, "class order"))
    height, width = data.train_images.shape[1:]

    def subset(images: Tensor, labels: Tensor, classes: Tensor) -> Examples:
        position = torch.full((n_classes,), -1)  # of each class within the task
        position[classes] = torch.arange(len(classes))
        rows = (position[labels] >= 0).nonzero().squeeze(1)
        return Examples(images.index_select(0, rows), position[labels[rows]], data.top)

    train = torch.from_numpy(data.train_images).flatten(1), torch.from_numpy(data.train_labels).long()
    test = torch.from_numpy(data.test_images).flatten(1), torch.from_numpy(data.test_labels).long()
    return [
        Task(
            subset(*train, classes),
            subset(*test, classes),
            tuple(classes.tolist()),
            tuple(str(c) for c in classes.tolist()),
            (height, width),
        )
        for classes in order.reshape(n_tasks, -1)
    ]


def permuted(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN, pad: int = 2) -> list[Task]:
    """Make every task all classes with the pixels, zero-padded, in another order each time."""
    _check_permuted(data, n_tasks)
    n_classes = data.n_classes
    height, width = (side + 2 * pad for side in data.train_images.shape[1:])

    def padded(images: Images) -> Tensor:
        return torch.nn.functional.pad(torch.from_numpy(images), (pad, pad, pad, pad)).flatten(1)

    train = padded(data.train_images), torch.from_numpy(data.train_labels).long()
    test = padded(data.test_images), torch.from_numpy(data.test_labels).long()
    rng = stream(seed, "permutations")
    keep_first = fidelity.permutations == "first_unpermuted" or seed == 0
    tasks = []
    for k in range(n_tasks):
        unpermuted = k == 0 and keep_first
        permutation = None if unpermuted else torch.randperm(height * width, generator=rng)
        tasks.append(
            Task(
                Examples(*train, data.top, permutation),
                Examples(*test, data.top, permutation),
                tuple(range(k * n_classes, (k + 1) * n_classes)),
                tuple(f"{digit} (permutation {k + 1})" for digit in range(n_classes)),
                (height, width),
            )
        )
    return tasks


def _check_split(data: Dataset, n_tasks: int) -> None:
    n_classes = data.n_classes
    if n_tasks < 1 or n_classes % n_tasks:
        fit = [str(n) for n in range(1, n_classes + 1) if n_classes % n == 0]
        raise InputError(
            f"tasks = {n_tasks}: {data.name} has {n_classes} classes, and a split needs tasks of equal size; "
            f"choose one of {', '.join(fit)}"
        )


def _check_permuted(data: Dataset, n_tasks: int) -> None:
    if n_tasks < 1:
        raise InputError(f"tasks = {n_tasks}: the permuted protocol needs at least 1")


Protocol = Callable[[Dataset, int, int, Fidelity], list[Task]]
PROTOCOLS: dict[str, Protocol] = {"split": split, "permuted": permuted}


def tasks_of(protocol: str, data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN) -> list[Task]:
    """Return the tasks of the protocol of that name."""
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    return PROTOCOLS[protocol](data, n_tasks, seed, fidelity)


def check_tasks(protocol: str, data: Dataset, n_tasks: int) -> None:
    """Refuse what ``tasks_of`` would refuse, without making the tasks."""
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    {"split": _check_split, "permuted": _check_permuted}[protocol](data, n_tasks)
