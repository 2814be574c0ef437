"""A fixed number of real samples, shared evenly among the classes seen, for methods that store data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from relive._util.errors import InputError
from relive.core.batch import Batch, hard_rows
from relive.core.scenarios import Scenario
from relive.core.sources import Part
from relive.core.state import check_form, check_range
from relive.methods import classes


class Buffer:
    """Samples with the class, task, output unit and rank of each.

    Whenever samples are added, space is assigned in turns: first to the best-ranked sample of every class, then to the
    next of every class, until it is full. So classes have equal shares, and what a small class does not fill goes to
    the others.

    Parameters
    ----------
    size
        The capacity in samples.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.x = torch.empty(0, 0)  # (n, inputs)
        self.number, self.task, self.unit = torch.empty(3, 0, dtype=torch.long)  # (n,) class, task and output unit
        self.rank = torch.empty(0)  # (n,) the lowest of a class are kept longest

    def __len__(self) -> int:
        return len(self.x)

    @torch.no_grad()
    def add(self, learned: Sequence[Part], ranks: Sequence[Tensor], scenario: Scenario) -> None:
        """Add samples of what was learned, given a rank for each, (n,) for every part."""
        parts = [(self.x, self.number, self.task, self.unit, self.rank)] if len(self) else []
        for part, rank in zip(learned, ranks, strict=True):
            labels = part.examples.labels
            number = classes.numbers(scenario, part.task).to(labels.device)[labels]
            unit = scenario.units(part.task)[labels]
            parts.append((part.examples.inputs(slice(None)), number, torch.full_like(unit, part.task), unit, rank))
        x, number, task, unit, rank = (torch.cat(column) for column in zip(*parts, strict=True))
        kept = in_turns(number, rank)[: self.size]
        self.x, self.number, self.task = x[kept], number[kept], task[kept]
        self.unit, self.rank = unit[kept], rank[kept]

    def draw(self, n: int, seen: int, scenario: Scenario, rng: torch.Generator) -> Batch | None:
        """Return n different samples as rows, each with the units of its own task; None if there are none."""
        if not len(self):
            return None
        drawn = torch.randperm(len(self), generator=rng)[:n].to(self.x.device)
        task = self.task[drawn]
        active = torch.stack([scenario.active(k, seen) for k in range(seen)])[task]
        return hard_rows(self.x[drawn], self.unit[drawn], active, task)

    def drop(self, numbers: Collection[int]) -> None:
        """Delete the samples of classes with these numbers."""
        kept = torch.tensor([i for i, c in enumerate(self.number.tolist()) if c not in numbers], dtype=torch.long)
        for name, column in self.state().items():
            setattr(self, name, column[kept.to(column.device)])

    def state(self) -> dict[str, Tensor]:
        """Return everything that is stored."""
        return {name: getattr(self, name) for name in ("x", "number", "task", "unit", "rank")}

    def check(self, state: Mapping[str, Tensor], inputs: int, scenario: Scenario) -> None:
        """Refuse contents that are impossible for a buffer of this size."""
        n = len(state["rank"]) if "rank" in state and state["rank"].dim() else 0
        like = Buffer(n)
        like.x, like.rank = torch.empty(n, inputs), torch.empty(n)
        like.number, like.task, like.unit = torch.empty(3, n, dtype=torch.long)
        check_form(state, like.state())
        for name, below in (("number", classes.count(scenario)), ("task", len(scenario.classes))):
            check_range(state, name, 0, below)
        check_range(state, "unit", 0, scenario.width)
        if n > self.size:
            raise InputError(f"there are {n} samples, but the capacity is {self.size}")

    def restored(self, state: dict[str, Tensor]) -> Buffer:
        """Return a buffer of this size with what ``state`` returned."""
        other = Buffer(self.size)
        other.x, other.number, other.task = state["x"], state["number"], state["task"]
        other.unit, other.rank = state["unit"], state["rank"]
        return other


def in_turns(number: Tensor, rank: Tensor) -> Tensor:
    """Return all indices, one of each class at a time, those of lowest rank first.

    >>> in_turns(torch.tensor([0, 0, 0, 1]), torch.tensor([0.3, 0.1, 0.2, 0.9])).tolist()
    [1, 3, 2, 0]
    """
    order = rank.argsort(stable=True)
    order = order[number[order].argsort(stable=True)]  # class by class, and by rank within it
    ordered = number[order].contiguous()
    turn = torch.arange(len(order), device=order.device) - torch.searchsorted(ordered, ordered)
    return order[turn.argsort(stable=True)]


def where(mask: Tensor) -> Tensor:
    """Return the indices at which a mask (n,) is true; unlike ``nonzero`` it works on any device.

    >>> where(torch.tensor([False, True, True])).tolist()
    [1, 2]
    """
    return mask.float().argsort(descending=True, stable=True)[: int(mask.sum().item())]
