r"""How a network detects forgetting without old data: it is tested on samples drawn from portraits of classes.

When a class was learned, its mean, its features' deviations and its largest principal axes are kept: a Gaussian,

.. math:: x = \mu + \sum_{j \le k} s_j z_j v_j + r \odot z', \qquad z, z' \sim \mathcal N(0, 1)

where r is what the axes leave of the deviations. The same 200 samples are drawn each time. The share of them assigned
to the class says little by itself; but how it has changed since the class was learned is close to how the accuracy on
real samples has changed (docs/own-data.md has the figures). A class with fewer than ten samples has no portrait, and
there is at most one axis per five samples: a mean of few samples would be close to a sample.

Portraits also tell what is unlike every class: with the covariance that the samples are drawn with and 1 % of the mean
variance, :math:`\Sigma_c = V_c V_c^\top + \mathrm{diag}(r_c^2) + 0.01\,\bar\sigma^2 I`,

.. math:: \min_c\; (x - \mu_c)^\top \Sigma_c^{-1} (x - \mu_c) \qquad\text{and}\qquad
    \min_c\; -\log \mathcal N(x; \mu_c, \Sigma_c)

A closed form needs none, because it forgets nothing and measures novelty from its sums. In Domain-IL there is none:
every class would need one per task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from relive.classifier.bookkeeping import GONE, Bookkeeping, NewTask

if TYPE_CHECKING:
    from relive.core.learner import Learner
    from relive.data.tasks import Examples

Array = npt.NDArray[Any]
DRAWN = 200  # samples of each class
AXES, PER_AXIS, FEWEST = 10, 5, 10  # maximum number of axes; samples per axis; minimum samples of a class
FLOOR = 0.01  # of the mean variance, added to every variance
CHUNK = 1000  # inputs whose distances are computed together


@dataclass(frozen=True, eq=False)
class Portrait:
    """A class as it was when last learned.

    Attributes
    ----------
    identity, task
        The class, and the number of the task in which it was learned.
    mean, deviation
        (inputs,) of the network's inputs.
    axes
        (k, inputs) principal axes, each as long as the deviation along it.
    then, now
        The share of drawn samples assigned to the class when it was learned, and now.
    """

    identity: int
    task: int
    mean: Array
    deviation: Array
    axes: Array
    then: float = 1.0
    now: float = 1.0

    @classmethod
    def of(cls, identity: int, task: int, x: Array) -> Portrait:
        """Return the portrait of a class, given its inputs (n, inputs)."""
        mean = x.mean(0)
        k = min(AXES, len(x) // PER_AXIS)
        _, length, axes = np.linalg.svd(x - mean, full_matrices=False)
        scaled = axes[:k] * (length[:k, None] / np.sqrt(len(x)))
        return cls(identity, task, *(a.astype(np.float32) for a in (mean, x.std(0), scaled)))

    def drawn(self, bounded: bool) -> Array:
        """Return the samples, (drawn, inputs); ``bounded`` says whether inputs lie between 0 and 1."""
        rng = np.random.default_rng([self.identity, self.task])
        x = self.mean + rng.standard_normal((DRAWN, len(self.axes))) @ self.axes
        x += np.sqrt(self.rest) * rng.standard_normal((DRAWN, len(self.mean)))
        result: Array = (x.clip(0, 1) if bounded else x).astype(np.float32)
        return result

    @property
    def rest(self) -> Array:
        """The variance of each input that the axes leave, (inputs,)."""
        left: Array = np.maximum(self.deviation**2 - (self.axes**2).sum(0), 0)
        return left

    def distances(self, x: Array, floor: float) -> tuple[Array, Array]:
        """Return the squared distance of inputs x (n, inputs), and minus their log density up to a constant, (n,) each.

        By Woodbury's identity, with variances of at least ``floor``.
        """
        scale = np.sqrt(self.rest.astype(np.float64) + floor)
        away, axes = (x - self.mean) / scale, self.axes / scale  # (n, inputs), (k, inputs)
        inner, along = np.eye(len(axes)) + axes @ axes.T, away @ axes.T
        squared = (away**2).sum(1) - (along * np.linalg.solve(inner, along.T).T).sum(1)
        return squared, 0.5 * (squared + np.linalg.slogdet(inner)[1]) + np.log(scale).sum()

    @property
    def kept(self) -> float:
        """How much of the class is still recognised, estimated from drawn samples."""
        return min(self.now / self.then, 1.0) if self.then else 1.0

    @property
    def lost(self) -> float:
        """How many points of accuracy were lost, estimated from drawn samples."""
        return 100 * max(self.then - self.now, 0.0)


Portraits = tuple[Portrait, ...]


def with_task(
    before: Portraits, learner: Learner, books: Bookkeeping, new: NewTask, learned: Examples, bounded: bool
) -> Portraits:
    """Return the portraits after a task was learned: those of its classes are new, and all are tested again."""
    if not learner.method.takes_steps or learner.scenario.shares_units:
        return ()
    task, x, target = learner.seen - 1, learned.inputs(slice(None)).cpu().numpy(), learned.labels.cpu().numpy()
    counts = np.bincount(target, minlength=len(new.classes))
    painted = {c for c, n in zip(new.classes, counts, strict=True) if n >= FEWEST}
    drawn = [Portrait.of(c, task, x[target == i].astype(np.float64)) for i, c in enumerate(new.classes) if c in painted]
    stay = [p for p in before if learner.scenario.needs_task or p.identity not in painted]
    shares = asked(drawn, learner, books, bounded)
    fresh = [replace(p, then=share, now=share) for p, share in zip(drawn, shares, strict=True)]
    return (*asked_again(tuple(stay), learner, books, bounded), *fresh)


def asked_again(portraits: Portraits, learner: Learner, books: Bookkeeping, bounded: bool) -> Portraits:
    """Return portraits with current shares, without those of forgotten classes."""
    there = [p for p in portraits if books.meaning[p.identity] != GONE]
    shares = asked(there, learner, books, bounded)
    return tuple(replace(p, now=share) for p, share in zip(there, shares, strict=True))


def asked(portraits: Sequence[Portrait], learner: Learner, books: Bookkeeping, bounded: bool) -> list[float]:
    """Return, for each portrait, the share of its drawn samples that gets its class's label."""
    import torch

    from relive.classifier.answers import most_likely_classes

    meaning, shares = np.array(books.meaning), []
    for portrait in portraits:
        task = portrait.task if learner.scenario.needs_task else learner.seen - 1
        answers = most_likely_classes(learner, torch.from_numpy(portrait.drawn(bounded)), task)
        shares.append(float((meaning[answers] == meaning[portrait.identity]).mean()))
    return shares


def novelty(portraits: Portraits, x: Array) -> Array | None:
    """Return how unlike all portraits inputs x (n, inputs) are in two ways, (n, 2); None without portraits."""
    if not portraits:
        return None
    floor = FLOOR * float(np.mean([np.square(p.deviation, dtype=np.float64).mean() for p in portraits])) + 1e-12
    chunks = np.array_split(x, -(-len(x) // CHUNK))
    return np.concatenate([np.array([p.distances(rows, floor) for p in portraits]).min(0).T for rows in chunks])


def by_label(portraits: Portraits, books: Bookkeeping) -> dict[int, Portrait]:
    """Return the portrait of each label that has one, by position; of several, the one that lost most."""
    found: dict[int, Portrait] = {}
    for portrait in portraits:
        position = books.meaning[portrait.identity]
        if position not in found or portrait.kept < found[position].kept:
            found[position] = portrait
    return found


def to_arrays(portraits: Portraits) -> dict[str, Array]:
    """Return portraits as arrays by name, none if there are none."""
    if not portraits:
        return {}
    return {
        "of": np.array([[p.identity, p.task, len(p.axes)] for p in portraits], dtype=np.int64),
        "shares": np.array([[p.then, p.now] for p in portraits]),
        "moments": np.stack([np.stack([p.mean, p.deviation]) for p in portraits]),
        "axes": np.concatenate([p.axes for p in portraits]),
    }


def portraits_from(arrays: Mapping[str, Array], n_inputs: int, books: Bookkeeping) -> Portraits:
    """Return portraits from arrays of a file, which may hold anything.

    Raises
    ------
    ValueError
        If they are invalid.
    """
    if not arrays:
        return ()
    of, shares, moments, axes = (arrays[name] for name in ("of", "shares", "moments", "axes"))
    m = len(of)
    fits = of.shape == (m, 3) and of.dtype == np.int64 and bool((of >= 0).all()) and shares.shape == (m, 2)
    fits = fits and shares.dtype == np.float64 and bool(((shares >= 0) & (shares <= 1)).all())
    fits = fits and moments.shape == (m, 2, n_inputs) and axes.shape == (int(of[:, 2].sum()), n_inputs)
    fits = fits and all(a.dtype == np.float32 and bool(np.isfinite(a).all()) for a in (moments, axes))
    fits = fits and bool((of[:, 0] < len(books.meaning)).all() and (of[:, 1] < len(books.tasks)).all())
    if not fits or any(books.meaning[c] == GONE for c in of[:, 0]):
        raise ValueError("its portraits of classes are invalid")
    ends = of[:, 2].cumsum()
    parts = np.split(axes, ends[:-1])
    return tuple(
        Portrait(int(c), int(k), mean, deviation, mine, float(then), float(now))
        for (c, k, _), (then, now), (mean, deviation), mine in zip(of, shares, moments, parts, strict=True)
    )
