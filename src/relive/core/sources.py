"""Where a step's rows come from: one task, several together, or a stream in which tasks blend into each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from relive.core.batch import Batch, concat, hard_rows
from relive.core.scenarios import Scenario
from relive.data.tasks import Examples, Task


@dataclass(frozen=True)
class Part:
    """Examples of one task that were learned from."""

    task: int
    examples: Examples


class Rows:
    """Draws batches from one task, or from several together, reshuffled when too few are left for a batch.

    >>> draw = Rows([5], size=2, rng=torch.Generator().manual_seed(0))
    >>> epoch = torch.cat([draw()[0] for _ in range(2)])
    >>> len(set(epoch.tolist()))
    4
    """

    def __init__(self, lengths: Sequence[int], size: int, rng: torch.Generator) -> None:
        self.ends = torch.tensor(lengths).cumsum(0)
        self.total = int(self.ends[-1])
        self.size = size
        self.rng = rng
        self.order = torch.empty(0, dtype=torch.long)
        self.next = 0

    def __call__(self, size: int | None = None) -> list[Tensor]:
        """Return the indices of the drawn rows within each task; ``size`` overrides the batch size."""
        n = min(self.size if size is None else size, self.total)
        if self.next + n > len(self.order):
            self.order = torch.randperm(self.total, generator=self.rng)
            self.next = 0
        drawn = self.order[self.next : self.next + n]
        self.next += n
        if len(self.ends) == 1:
            return [drawn]
        owner = torch.bucketize(drawn, self.ends, right=True)
        starts = [0, *self.ends[:-1].tolist()]
        return [drawn[owner == k] - start for k, start in enumerate(starts)]


class Source(ABC):
    """Provides the current rows of each step, and reports in the end what was learned.

    Parameters
    ----------
    scenario
        Which units compete for a row.
    tasks
        All tasks seen so far, in order.
    size
        Rows per step.
    rng
        The generator for drawing rows.
    """

    def __init__(self, scenario: Scenario, tasks: Sequence[Task], size: int, rng: torch.Generator) -> None:
        self.scenario = scenario
        self.tasks = tasks
        self.size = size
        self.rng = rng

    @abstractmethod
    def __call__(self) -> Batch:
        """Return the rows of the next step, their weights summing to 1."""

    @abstractmethod
    def learned(self) -> list[Part]:
        """Return what was new in these steps, for a method to extract what it needs later."""

    def _rows(self, drawn: Sequence[tuple[int, Tensor]]) -> Batch:
        """Return drawn rows of some tasks as one batch, each row labelled by its own task's units."""
        scenario, seen, parts = self.scenario, len(self.tasks), []
        for k, rows in drawn:
            train = self.tasks[k].train
            rows = rows.to(train.labels.device)
            unit = scenario.units(k)[train.labels[rows]]
            parts.append(hard_rows(train.inputs(rows), unit, scenario.active(k, seen), torch.full_like(unit, k)))
        return concat([part.times(len(part) / sum(map(len, parts))) for part in parts])


class Together(Source):
    """Rows of groups of tasks: those of a group are drawn together, and groups have equal weight.

    Parameters
    ----------
    groups
        The tasks of each group; by default only the newest.
    """

    def __init__(
        self,
        scenario: Scenario,
        tasks: Sequence[Task],
        size: int,
        rng: torch.Generator,
        groups: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__(scenario, tasks, size, rng)
        self.groups = groups or [[len(tasks) - 1]]
        each = -(-size // len(self.groups))
        self.draws = [Rows([len(tasks[k].train) for k in group], each, rng) for group in self.groups]

    def __call__(self) -> Batch:
        rows = [
            self._rows(list(zip(group, draw(), strict=True)))
            for group, draw in zip(self.groups, self.draws, strict=True)
        ]
        return concat([part.times(1 / len(rows)) for part in rows])

    def learned(self) -> list[Part]:
        newest = len(self.tasks) - 1
        return [Part(newest, self.tasks[newest].train)]


class Blend(Source):
    """Rows of several tasks in shares that change from step to step; the rows are chosen beforehand.

    Parameters
    ----------
    shares
        (steps, tasks) each task's share of the rows at each step.
    """

    def __init__(
        self, scenario: Scenario, tasks: Sequence[Task], size: int, rng: torch.Generator, shares: Tensor
    ) -> None:
        super().__init__(scenario, tasks, size, rng)
        draws = [Rows([len(task.train)], size, rng) for task in tasks]
        self.plan: list[list[tuple[int, Tensor]]] = []
        for share in shares:
            owner = torch.multinomial(share, size, replacement=True, generator=rng)
            counts = torch.bincount(owner, minlength=len(tasks)).tolist()
            self.plan.append([(k, draws[k](n)[0]) for k, n in enumerate(counts) if n])
        self.next = 0

    def __call__(self) -> Batch:
        self.next += 1
        return self._rows(self.plan[self.next - 1])

    def learned(self) -> list[Part]:
        parts = []
        for k, task in enumerate(self.tasks):
            drawn = [rows for step in self.plan for owner, rows in step if owner == k]
            if drawn:
                rows = torch.unique(torch.cat(drawn)).to(task.train.labels.device)
                parts.append(Part(k, task.train.take(rows)))
        return parts
