"""Split, permuted, rotated and blurred: how a data set becomes a sequence of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relive._util.errors import InputError, ReliveError
from relive._util.fidelity import AS_RUN, Fidelity
from relive._util.registry import is_address, load_object
from relive._util.seeds import stream
from relive.data.catalogue import PROTOCOLS
from relive.data.datasets.dataset import Dataset
from relive.data.standardise import standardised
from relive.data.tasks import Examples, Task, Transform
from relive.data.transforms import Permutation, Rotation


def split(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN) -> list[Task]:
    """Divide the classes of a data set over tasks, each class in one task."""
    n_classes = data.n_classes

    def subset(inputs: Tensor, labels: Tensor, classes: Tensor) -> Examples:
        position = torch.full((n_classes,), -1)  # of each class within the task
        position[classes] = torch.arange(len(classes))
        rows = (position[labels] >= 0).nonzero().squeeze(1)
        return Examples(inputs.index_select(0, rows), position[labels[rows]], data.top)

    train, test = _parts(data)
    return [
        Task(
            subset(*train, classes),
            subset(*test, classes),
            tuple(classes.tolist()),
            tuple(data.class_names[c] for c in classes.tolist()),
            data.shape,
        )
        for classes in class_order(n_classes, seed, fidelity).reshape(n_tasks, -1)
    ]


def class_order(n_classes: int, seed: int, fidelity: Fidelity) -> Tensor:
    """Return the classes in the order in which they are divided over tasks, (n_classes,)."""
    if seed == 0 or fidelity.class_order == "in_order":
        return torch.arange(n_classes)
    if fidelity.class_order == "shuffled_by_numpy":  # the 2018 code draws a label for each class, not the inverse
        if seed >= 2**32:
            raise InputError(f"seed = {seed}: class_order=shuffled_by_numpy needs one below 2³² = {2**32}")
        return torch.from_numpy(np.random.RandomState(seed).permutation(n_classes).argsort())
    return torch.randperm(n_classes, generator=stream(seed, "class order"))


def permuted(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN, pad: int = 2) -> list[Task]:
    """Give every task all classes, with its own permutation of the inputs; images are zero-padded first."""
    if data.is_pictures:
        edges = [(0, 0), (pad, pad), (pad, pad), *((0, 0) for _ in data.shape[2:])]
        data = replace(data, train_inputs=np.pad(data.train_inputs, edges), test_inputs=np.pad(data.test_inputs, edges))
    rng = stream(seed, "permutations")
    keep_first = fidelity.permutations == "first_unpermuted" or seed == 0
    orders = [
        None if k == 0 and keep_first else Permutation(torch.randperm(math.prod(data.shape), generator=rng))
        for k in range(n_tasks)
    ]
    return transformed(data, orders, [f"permutation {k + 1}" for k in range(n_tasks)])


def rotated(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN) -> list[Task]:
    """Give every task all classes, with the images rotated by its own angle, the first by 0.

    The angles are drawn between 0 and 180 degrees, as Lopez-Paz & Ranzato (2017) did.
    """
    rng = stream(seed, "angles")
    angles = [0.0, *(180 * torch.rand(1, generator=rng, dtype=torch.float64).item() for _ in range(n_tasks - 1))]
    turns = [None if k == 0 else Rotation(angle, data.shape) for k, angle in enumerate(angles)]
    return transformed(data, turns, [f"turned by {angle:.0f}°" for angle in angles])


def transformed(data: Dataset, transforms: Sequence[Transform | None], names: Sequence[str]) -> list[Task]:
    """Return one task per transform, each with all classes of the data set, which they share.

    Parameters
    ----------
    data
        The data set.
    transforms
        The transform of each task's inputs, or None.
    names
        The name of each task.
    """
    n = data.n_classes
    train, test = _parts(data)
    return [
        Task(
            Examples(*train, data.top, transform),
            Examples(*test, data.top, transform),
            tuple(range(k * n, (k + 1) * n)),
            tuple(f"{called} ({name})" for called in data.class_names),
            data.shape,
        )
        for k, (transform, name) in enumerate(zip(transforms, names, strict=True))
    ]


def _parts(data: Dataset) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return inputs (n, inputs) and labels (n,), for training and for testing."""
    return (
        (torch.from_numpy(data.train_inputs).flatten(1), torch.from_numpy(data.train_labels).long()),
        (torch.from_numpy(data.test_inputs).flatten(1), torch.from_numpy(data.test_labels).long()),
    )


def _check_split(data: Dataset, n_tasks: int) -> None:
    n_classes = data.n_classes
    if n_tasks < 1 or n_classes % n_tasks:
        fit = [str(n) for n in range(1, n_classes + 1) if n_classes % n == 0]
        raise InputError(
            f"tasks = {n_tasks}: {data.name} has {n_classes} classes, and a split needs tasks of equal size; "
            f"choose one of {', '.join(fit)}"
        )


def _check_any(data: Dataset, n_tasks: int) -> None:
    if n_tasks < 1:
        raise InputError(f"tasks = {n_tasks}: there must be at least 1")


def _check_rotated(data: Dataset, n_tasks: int) -> None:
    _check_any(data, n_tasks)
    if not data.is_pictures:
        raise InputError(
            f"{data.name} has inputs of shape {data.shape}, which cannot be rotated as images: choose another "
            "protocol, or give arrays (n, height, width) or (n, height, width, 3)"
        )


def blended(task: int, n_tasks: int, iterations: int, every: int = 500) -> list[Tensor]:
    """Return how tasks share the rows while the next one's share grows and the previous one's shrinks.

    With time counted in tasks, task j has the share max(0, 1 − abs(time − j − ½)): all rows in the middle of its time,
    half of them where one task would end and the next begin. The first task is alone until its middle, the last from
    its middle on. There is no boundary to consolidate at, so methods consolidate at regular intervals.

    Parameters
    ----------
    task
        The current task, from 0.
    n_tasks, iterations
        How many tasks there are, and the number of steps for each.
    every
        Steps between two consolidations.

    Returns
    -------
    list of Tensor
        (steps, n_tasks) shares for each stretch between two consolidations, each row summing to 1.

    >>> blended(0, 2, 4)[0].tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.875, 0.125], [0.625, 0.375]]
    """
    time = task + (torch.arange(iterations) + 0.5) / iterations
    time = time.clamp(0.5, n_tasks - 0.5)
    shares = (1 - (time.unsqueeze(1) - torch.arange(n_tasks) - 0.5).abs()).clamp_min(0)
    return list(torch.split(shares, every))


@dataclass(frozen=True)
class Protocol:
    """How a data set becomes a sequence of tasks.

    Attributes
    ----------
    name
        Its name.
    make
        ``make(data, n_tasks, seed, fidelity)`` returns the tasks; :func:`transformed` helps.
    check
        ``check(data, n_tasks)`` raises an ``InputError`` for invalid combinations, before anything is done.
    blend
        For a stream without task boundaries: ``blend(task, n_tasks, iterations)`` returns, for the time of a task, the
        shares (steps, n_tasks) of all tasks in the rows of each step, one tensor per stretch after which methods
        consolidate; :func:`blended` is one. None if tasks have boundaries.
    title, preset
        For protocols that are in no catalogue: a title, and the defaults of a run (tasks, iters,
        learning_rate, hidden, batch_size, latent), where they differ from split's.
    """

    name: str
    make: Callable[[Dataset, int, int, Fidelity], list[Task]]
    check: Callable[[Dataset, int], None] = _check_any
    blend: Callable[[int, int, int], list[Tensor]] | None = None
    title: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)


SPLIT = Protocol("split", split, _check_split)
PERMUTED = Protocol("permuted", permuted)
ROTATED = Protocol("rotated", rotated, _check_rotated)
BLURRED = Protocol("blurred", split, _check_split, blended)


def protocol_of(name: str) -> Protocol:
    """Return a protocol by name or address: ``my_file.py:PROTOCOL``."""
    protocol = load_object(name if is_address(name) else PROTOCOLS[name].home)
    if not isinstance(protocol, Protocol):
        raise InputError(f"{name} is {protocol!r}: a protocol must be a relive.Protocol")
    return protocol


def tasks_of(protocol: str, data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity = AS_RUN) -> list[Task]:
    """Return the tasks of a protocol by name; features outside [0, 1] are standardised with the first task."""
    chosen = protocol_of(protocol)
    chosen.check(data, n_tasks)
    try:
        tasks = chosen.make(data, n_tasks, seed, fidelity)
    except ReliveError:
        raise
    except Exception as error:
        if not is_address(protocol):
            raise
        raise InputError(f"protocol {protocol} could not make its tasks: {type(error).__name__}: {error}") from error
    if not isinstance(tasks, list) or not all(isinstance(task, Task) for task in tasks):
        raise InputError(f"protocol {chosen.name} made {tasks!r:.100}: it must return a list of relive.Task")
    if len(tasks) != n_tasks:
        raise InputError(
            f"protocol {chosen.name} made {len(tasks)} tasks instead of {n_tasks}: pass --tasks {len(tasks)}, "
            "or have it make n_tasks tasks"
        )
    for k, task in enumerate(tasks):
        _check_task(task, tasks[0].n_inputs, f"protocol {chosen.name}, task {k + 1} of {n_tasks}")
    return standardised(tasks, data.name) if data.likelihood == "gaussian" else tasks


def _check_task(task: Task, n_inputs: int, where: str) -> None:
    """Refuse a task that cannot be learned, or not together with those before it."""
    for name, part in (("train", task.train), ("test", task.test)):
        if not len(part):
            raise InputError(f"{where}: {name} has no rows")
        low, high = int(part.labels.min()), int(part.labels.max())
        if low < 0 or high >= len(task.classes):
            raise InputError(
                f"{where}: {name} has labels from {low} to {high}, but they are positions within the task's "
                f"{len(task.classes)} classes, 0 to {len(task.classes) - 1}"
            )
        width = part.inputs(slice(0, 1)).shape[1]
        if not width == task.n_inputs == n_inputs:
            raise InputError(f"{where}: {name} has {width} numbers per row, but {n_inputs} are expected")
