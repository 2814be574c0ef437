"""Task-IL, Domain-IL, Class-IL: which output units exist, which are active, and which one is correct.

Other code asks the scenario and never checks its name. Torch is imported only when tensors are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from relive._util.errors import unknown
from relive.networks.blocks import full_width

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Scenario(ABC):
    """What a continual learner is told about tasks, and what it must infer.

    Parameters
    ----------
    classes
        For each task, in order, the ids of its classes. A label within a task is a position in that tuple.
    device
        Where its tensors are.
    gone
        Ids of forgotten classes, which are no longer predicted.
    """

    name: str
    title: str
    needs_task: ClassVar[bool] = False  # whether the task must be given at test time
    shares_units: ClassVar[bool] = False  # whether all tasks share the same units

    def __init__(
        self, classes: Sequence[Sequence[int]], device: torch.device | str = "cpu", gone: Collection[int] = ()
    ) -> None:
        self.classes = [tuple(ids) for ids in classes]
        self.device = device
        self._units: dict[int, Tensor] = {}
        self.gone = frozenset(gone)
        self._active: dict[tuple[int, int], Tensor] = {}

    def to(self, device: torch.device) -> Self:
        """Return the same scenario with its tensors on a device."""
        return type(self)(self.classes, device, self.gone)

    def only(self, tasks: Sequence[int]) -> Self:
        """Return the scenario restricted to these tasks, in this order."""
        return type(self)([self.classes[task] for task in tasks], self.device, self.gone)

    @property
    @abstractmethod
    def n_units(self) -> int:
        """How many output units are in use once all tasks have been seen."""

    @property
    def width(self) -> int:
        """How many output units the network has: complete blocks; those beyond ``n_units`` are never active."""
        return full_width(self.n_units)

    @abstractmethod
    def unit_numbers(self, task: int) -> Sequence[int]:
        """Return the output unit of each of the task's classes."""

    @abstractmethod
    def _active_tasks(self, task: int, seen: int) -> Sequence[int]:
        """Return the tasks whose units share one softmax for a row of ``task``."""

    @abstractmethod
    def groups(self, n_tasks: int) -> list[list[int]]:
        """Split tasks 0..n-1 into groups whose rows are drawn together: one per head, or all in one."""

    def active_numbers(self, task: int, seen: int) -> list[int]:
        """Return the units that compete for a row of ``task`` once ``seen`` tasks have been seen, in order."""
        units = {unit for k in self._active_tasks(task, seen) for unit in self.unit_numbers(k)}
        return sorted(units - self._forgotten_numbers(task, seen))

    def _forgotten_numbers(self, task: int, seen: int) -> set[int]:
        tasks = self._active_tasks(task, seen) if self.gone else ()
        pairs = (pair for k in tasks for pair in zip(self.unit_numbers(k), self.classes[k], strict=True))
        return {unit for unit, identity in pairs if identity in self.gone}

    def units(self, task: int) -> Tensor:
        """Return ``unit_numbers`` as a (classes,) tensor of indices; it is cached, do not change it."""
        if task not in self._units:
            import torch

            self._units[task] = torch.tensor(self.unit_numbers(task), dtype=torch.long, device=self.device)
        return self._units[task]

    def active(self, task: int, seen: int) -> Tensor:
        """Return ``active_numbers`` as (width,) bool; it is cached, do not change it."""
        if (task, seen) not in self._active:
            import torch

            mask = torch.zeros(self.width, dtype=torch.bool, device=self.device)
            mask[self.active_numbers(task, seen)] = True
            self._active[task, seen] = mask
        return self._active[task, seen]

    def forgotten(self, task: int, seen: int) -> Tensor:
        """Return the units of forgotten classes that once competed for rows of ``task``: (width,) bool."""
        import torch

        mask = torch.zeros(self.width, dtype=torch.bool, device=self.device)
        mask[list(self._forgotten_numbers(task, seen))] = True
        return mask


class TaskIL(Scenario):
    """Task-incremental: the task is always given, so every task has its own output units.

    >>> scenario = TaskIL([(0, 1), (2, 3)])
    >>> scenario.active(task=1, seen=2).nonzero().flatten().tolist()
    [2, 3]
    """

    name = "task"
    title = "Task-IL"
    needs_task = True

    @property
    def n_units(self) -> int:
        return sum(len(ids) for ids in self.classes)

    def unit_numbers(self, task: int) -> Sequence[int]:
        first = sum(len(ids) for ids in self.classes[:task])
        return range(first, first + len(self.classes[task]))

    def _active_tasks(self, task: int, seen: int) -> Sequence[int]:
        return [task]

    def groups(self, n_tasks: int) -> list[list[int]]:
        return [[task] for task in range(n_tasks)]


class DomainIL(Scenario):
    """Domain-incremental: the task is not given, and all tasks share the same units.

    >>> scenario = DomainIL([(0, 1), (2, 3)])
    >>> scenario.units(task=1).tolist(), scenario.active(task=0, seen=1).nonzero().flatten().tolist()
    ([0, 1], [0, 1])
    """

    name = "domain"
    title = "Domain-IL"
    shares_units = True

    @property
    def n_units(self) -> int:
        return max(len(ids) for ids in self.classes)

    def unit_numbers(self, task: int) -> Sequence[int]:
        return range(len(self.classes[task]))

    def _active_tasks(self, task: int, seen: int) -> Sequence[int]:
        return range(seen)

    def groups(self, n_tasks: int) -> list[list[int]]:
        return [list(range(n_tasks))]


class ClassIL(Scenario):
    """Class-incremental: the task is not given and must be inferred; every class has its own unit.

    >>> scenario = ClassIL([(0, 1), (2, 3), (4, 5)])
    >>> scenario.active(task=0, seen=2).nonzero().flatten().tolist()
    [0, 1, 2, 3]
    """

    name = "class"
    title = "Class-IL"

    def __init__(
        self, classes: Sequence[Sequence[int]], device: torch.device | str = "cpu", gone: Collection[int] = ()
    ) -> None:
        super().__init__(classes, device, gone)
        self._unit: dict[int, int] = {}
        for ids in self.classes:
            for identity in ids:
                self._unit.setdefault(identity, len(self._unit))

    @property
    def n_units(self) -> int:
        return len(self._unit)

    def unit_numbers(self, task: int) -> Sequence[int]:
        return [self._unit[i] for i in self.classes[task]]

    def _active_tasks(self, task: int, seen: int) -> Sequence[int]:
        return range(seen)

    def groups(self, n_tasks: int) -> list[list[int]]:
        return [list(range(n_tasks))]


SCENARIOS: dict[str, type[Scenario]] = {scenario.name: scenario for scenario in (TaskIL, DomainIL, ClassIL)}


def scenario_of(name: str, classes: Sequence[Sequence[int]], gone: Collection[int] = ()) -> Scenario:
    """Return the scenario with that name for tasks with these classes, some of them forgotten."""
    if name not in SCENARIOS:
        raise unknown("scenario", name, SCENARIOS)
    return SCENARIOS[name](classes, gone=gone)
