r"""Learners that keep only sums of features and solve for the output layer: they take no steps and never forget.

Every sample is added to three sums, which do not depend on the order of samples or tasks:

.. math:: n_c \qquad s_c = \sum_{x \in c} h(x) \qquad P = \sum_x h(x)\,h(x)^\top

with h(x) the features of a fixed encoder. These determine the class means, the within-class and total
covariance of the features, and hence the nearest mean (:mod:`relive.methods.ncm`), linear discriminant analysis
(:mod:`relive.methods.slda`) and ridge regression (:mod:`relive.methods.analytic`), exactly as if all data were kept.

In Domain-IL, where tasks share output units, every task's classes are summed separately, and the evidence for a unit is
added up over them: a class may look different in every domain.

A class is forgotten by subtracting its sums. That is exact if P is kept for each class (``forgettable``), or is not
needed. Otherwise the class's part of P is not known: its mean and the pooled covariance stand in for it,

.. math:: P \leftarrow P - n_c (\Sigma + \mu_c \mu_c^\top)

which leaves Σ unchanged. Two classes are merged, exactly, by adding their sums.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from relive._util.errors import InputError, ReliveError
from relive.core.method import Method, Problem
from relive.core.sources import Part
from relive.core.state import check_form
from relive.data.tasks import Task
from relive.methods.novelty import Novelty
from relive.methods.scaled import Scaled
from relive.methods.sums import Sums, add_products, half, mirror, move_products, whole
from relive.networks import Classifier, Sizes
from relive.networks.blocks import full_width
from relive.networks.head import OFF
from relive.networks.random_features import Adapts

CHUNK = 1000  # samples whose features are in memory together


class ClosedForm(Method, ABC):
    """What the closed forms share; a subclass defines which sums it needs, and how the output layer follows."""

    takes_steps = False
    heeds_tasks = False
    can_forget = True
    can_unlearn = True
    needs_products: ClassVar[bool] = True
    sums_: Sums | None = None
    by_class_: list[Tensor]  # if forgettable: the products of each class, instead of those of all
    settled_ = True
    roughly_ = False  # whether an estimate of the best ridge will do
    scaled_: Scaled | None = None  # computed on demand
    novelty_: Novelty | None = None
    width_ = 0  # features requested from the encoder, once known

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        classes = problem.scenario.classes
        self.forgets_exactly = problem.forgettable or not self.needs_products
        self.apart_ = problem.scenario.shares_units  # whether every task's classes are summed separately
        self.starts_ = [sum(map(len, classes[:k])) for k in range(len(classes))]
        cells = full_width(sum(map(len, classes))) if self.apart_ else problem.sizes.units
        self.width_ = self.width_ or self.width(problem.sizes, problem.forgettable)
        sizes = replace(problem.sizes, units=cells, hidden=self.width_)
        net = Classifier(sizes, rng).requires_grad_(False)
        torch.nn.init.zeros_(net.head.weight)
        torch.nn.init.zeros_(net.head.bias)
        self.frozen_ = sum(t.numel() for t in net.state_dict().values())
        if self.sums_ is None:
            d, self.by_class_ = net.n_features, []
            zeros = torch.zeros(cells, d, dtype=torch.float64, device=problem.device)
            products = zeros.new_zeros(d, d) if self.needs_products else None
            if problem.forgettable and products is not None:
                self.by_class_, products = [products] * cells, None
            self.sums_ = Sums(zeros.new_zeros(cells), zeros, products)
        return net

    @property
    def sums(self) -> Sums:
        """The sums; available after ``build``."""
        assert self.sums_ is not None
        return self.sums_

    def width(self, sizes: Sizes, forgettable: bool = False) -> int:
        """Return how many features to request from an encoder of variable size."""
        return sizes.hidden

    @abstractmethod
    def readout(self) -> tuple[Tensor, Tensor]:
        """Return the output layer: weights (classes, features) and biases (classes,), of classes with samples."""

    def cells(self, task: int) -> Tensor:
        """Return where each class of a task is summed, (classes,)."""
        if not self.apart_:
            return self.problem.scenario.units(task)
        first = self.starts_[task]
        return torch.arange(first, first + len(self.problem.scenario.classes[task]), device=self.problem.device)

    def places(self) -> list[dict[int, int]]:
        """Return where each class is summed: for all tasks together, or per task if their sums are separate."""
        scenario = self.problem.scenario
        tasks = [dict(zip(ids, self.cells(k).tolist(), strict=True)) for k, ids in enumerate(scenario.classes)]
        if scenario.needs_task or scenario.shares_units:
            return tasks
        return [{c: cell for places in tasks for c, cell in places.items()}]

    @torch.no_grad()
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        self.unshare()
        self.roughly_ = False
        first = not bool(self.sums.count.any())
        for part in learned:
            if first and isinstance(net.encoder, Adapts):
                net.encoder.adapt(part.examples.inputs(slice(None)))
            first = False
            self._count(net, part)
        self.unsettle()

    def unlearn(self, net: Classifier, part: Part, rows: Tensor) -> None:
        self.unshare()
        self.roughly_ = True  # a copy that is only scored on these rows
        self._count(net, part, rows)
        self.unsettle()

    def _count(self, net: Classifier, part: Part, gone: Tensor | None = None) -> None:
        """Add samples; or subtract some of their rows, with features computed in the same batches."""
        cells = self.cells(part.task)
        for start in range(0, len(part.examples), CHUNK):
            some = slice(start, start + CHUNK)
            mine = None if gone is None else gone[(gone >= start) & (gone < start + CHUNK)] - start
            if mine is not None and not len(mine):
                continue
            h, cell = net.encoder(part.examples.inputs(some)).double(), cells[part.examples.labels[some]]
            if mine is None:
                self.count(h, cell)
            else:
                self.count(h[mine], cell[mine], -1)

    def unsettle(self) -> None:
        """Mark everything derived from the sums for recomputation."""
        self.settled_, self.scaled_, self.novelty_ = False, None, None

    def unshare(self) -> None:
        """Copy the sums before changing them in place: until then copies of a method share them."""
        self.sums_ = self.sums.copy()
        self.by_class_ = list(self.by_class_)

    def count(self, h: Tensor, cell: Tensor, times: int = 1) -> None:
        """Add samples with features h (n, features) to the sums of their classes (n,), or subtract them."""
        self.sums.add(h, cell, times)
        if self.by_class_:
            add_products(self.by_class_, h, cell, times)

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        self.unshare()
        self.drop(self.cells_of(gone))
        self.unsettle()

    def cells_of(self, ids: Collection[int]) -> list[int]:
        """Return all places where these classes are summed."""
        return [cell for places in self.places() for c, cell in places.items() if c in ids]

    def drop(self, cells: list[int]) -> None:
        """Subtract the sums of these classes; the sums must not be shared."""
        count, means = self.sums.count, self.sums.means
        products = self.sums.products
        if products is not None:
            within = products - (means.T * count) @ means  # n Σ
            products -= within * (count[cells].sum() / self.sums.n)
            products -= (means[cells].T * count[cells]) @ means[cells]
            mirror(products)
        for cell in cells if self.by_class_ else ():
            self.by_class_[cell] = torch.zeros_like(self.by_class_[cell])
        self.sums.count[cells] = 0
        self.sums.total[cells] = 0

    def merge(self, net: Classifier, into: int, other: int) -> None:
        self.unshare()
        for places in self.places():
            if into in places and other in places:
                self.move(places[other], places[into])
        self.unsettle()

    def move(self, source: int, target: int) -> None:
        """Add the sums of a class to another's; the sums must not be shared."""
        for sums in (self.sums.count, self.sums.total):
            sums[target] += sums[source]
            sums[source] = 0
        if self.by_class_:
            move_products(self.by_class_, source, target)

    @torch.no_grad()
    def settle(self, net: Classifier) -> None:
        if self.settled_:
            return
        with positive():
            weight, bias = self.readout()
        there = self.sums.count > 0
        net.head.weight.zero_()
        net.head.bias.fill_(OFF)
        net.head.weight[there] = weight.to(net.head.weight.dtype)
        net.head.bias[there] = bias.to(net.head.bias.dtype)
        self.settled_ = True

    def counted(self) -> Sums:
        """Return the sums of the classes with samples."""
        there, products = self.sums.count > 0, self.sums.products
        if self.by_class_:
            products = torch.stack([p for p, some in zip(self.by_class_, there, strict=True) if some]).sum(0)
        return Sums(self.sums.count[there], self.sums.total[there], products)

    def scaled(self) -> Scaled:
        """Return the scaled features to solve with; cached until more is added, unless they are large."""
        features = self.scaled_ or Scaled.of(self.counted())
        self.scaled_ = None if features.axes.basis is None else features
        return features

    def novelty(self, net: Classifier, x: Tensor) -> Tensor | None:
        if not self.needs_products:
            return None
        if self.novelty_ is None:
            with positive():
                self.novelty_ = Novelty.of(self.scaled())
        return self.novelty_(net.encoder(x).double())

    def scores(self, net: Classifier, x: Tensor) -> Tensor:
        """Return the score of each summed class, (n, classes)."""
        scores: Tensor = net(x)
        return scores

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        self.settle(net)
        scores = self.scores(net, x)
        if not self.apart_:
            return scores
        scenario = self.problem.scenario
        logits = scores.new_full((len(x), scenario.width), -torch.inf)
        for k in range(len(scenario.classes)):
            mine, units = self.cells(k), scenario.units(k)
            logits[:, units] = torch.logaddexp(logits[:, units], scores[:, mine])
        return logits

    def grow(self, net: Classifier) -> None:
        more = len(net.head.bias) - len(self.sums.count)
        if more:
            self.sums_ = replace(
                self.sums, count=pad(self.sums.count, (0, more)), total=pad(self.sums.total, (0, 0, 0, more))
            )
            if self.by_class_:
                self.by_class_ = [*self.by_class_, *[torch.zeros_like(self.by_class_[0])] * more]
        self.unsettle()

    def state(self) -> dict[str, Tensor]:
        state = {"count": self.sums.count, "total": self.sums.total}
        if self.sums.products is not None:
            state["products"] = half(self.sums.products)
        if self.by_class_:
            state["products"] = torch.stack([half(products) for products in self.by_class_])
        return state

    def is_finite(self) -> bool:
        """Check the sums, and the squares among the products: no other product exceeds the two largest of these."""
        squares = [p.diagonal() for p in (self.sums.products, *self.by_class_) if p is not None]
        return all(bool(t.isfinite().all()) for t in (self.sums.count, self.sums.total, *squares))

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        check_form(state, self.state())
        if bool((state["count"] < 0).any()) or not bool(state["count"].any()):  # with noise, it may not be whole
            raise InputError("count is below 0, or 0 for every class")

    def load_state(self, state: dict[str, Tensor]) -> None:
        d, products = self.sums.total.shape[1], None
        if self.by_class_:
            self.by_class_ = [whole(packed, d) for packed in state["products"]]
        elif self.sums.products is not None:
            products = whole(state["products"], d)
        self.sums_ = Sums(state["count"].clone(), state["total"].clone(), products)
        self.settled_, self.scaled_, self.novelty_ = True, None, None  # the output layer was stored too

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent method; sums are shared until either adds to them."""
        return copy.copy(self)

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        return int(self.frozen_) + super().stored_numbers(tasks)


@contextmanager
def positive() -> Iterator[None]:
    """Report clearly that a matrix is not a covariance, if the computation fails."""
    try:
        yield
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        raise ReliveError(
            f"this model's sums do not form a valid covariance ({str(error).splitlines()[0]}): all samples are equal, "
            "or so large or so similar that only rounding error remains; or the file was modified"
        ) from error
