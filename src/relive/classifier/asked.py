r"""What came out when a model was asked about samples that it had not learned, or not yet: numbers, no samples.

Two things follow. *A temperature*: the sum of :math:`-\log p_T(y|x)` is kept at every temperature of a grid
(:mod:`relive.classifier.calibration`). *What is usual*: of some samples it is kept how unlike everything learned they
were, in several ways j (:meth:`relive.core.method.Method.novelty`, or how close the other answers were). A new sample
is as unusual in one way as the share of known ones that are as unlike or more, :math:`p_j`; in all ways together its
strangeness is Fisher's statistic,

.. math:: s(x) = \sum_j -\log p_j(x) + b_j(x)

with b how far a sample lies beyond all known ones, where the share can say no more. Its familiarity is the share of
known samples that are as strange or stranger; beyond the strangest of them it goes on falling. Refusing what is less
familiar than 0.05 refuses about 5 % of samples like those learned, whatever their distribution (Vovk et al. 2005,
"Algorithmic learning in a random world"), as far as the scores are those of today's model. They are older, so that
those of the last tasks count most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive.classifier.calibration import FADES, SMALLEST, TEMPERATURES, losses, temperature

Array = npt.NDArray[Any]
SURE = -30.0  # the log of how much less likely all other answers are; further down makes no difference
KEPT = 64  # samples of each class of which it is kept how unlike everything learned they were


@dataclass(frozen=True, eq=False)
class Asked:
    """What came out so far; nothing here is changed in place.

    Attributes
    ----------
    losses
        (classes, temperatures) the summed losses of each class's samples.
    count
        (classes,) how many samples of each class were asked about.
    last
        (classes,) how many times the model had been asked when it was last asked about a class; 0 for never.
    scores, owner
        (kept, kinds) how unlike everything learned some of them were, NaN where that was not known yet, and (kept,)
        which class each is of.
    learned
        How many samples the model had learned when it was asked last.
    usual
        The temperature that is usual for the method; 1 if nothing is to be calibrated.
    """

    losses: Array
    count: Array
    last: Array
    scores: Array
    owner: Array
    learned: int = 0
    usual: float = 1.0

    @classmethod
    def nothing(cls, usual: float = 1.0) -> Asked:
        """Return what is known before anything was asked."""
        zeros = np.zeros((0, len(TEMPERATURES)))
        return cls(zeros, np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(0, np.int64), usual=usual)

    def with_more(
        self, probabilities: Array, column: Array, classes: Array, scores: Array, learned: int, seed: int
    ) -> Asked:
        """Return it with samples that were asked about now.

        Parameters
        ----------
        probabilities, column
            (n, labels) at temperature 1, and (n,) which label is right.
        classes
            (n,) the class of each sample.
        scores
            (n, kinds) how unlike everything learned each sample is.
        learned
            How many samples the model has learned.
        seed
            Which of them are kept is drawn from it.
        """
        n = max(len(self.count), int(classes.max()) + 1)
        more = n - len(self.count)
        total, count = np.pad(FADES * self.losses, ((0, more), (0, 0))), np.pad(self.count, (0, more))
        last = np.pad(self.last, (0, more))
        last[classes] = last.max() + 1
        same = scores.shape[1] == self.scores.shape[1]  # a file of before may have other kinds of scores
        kept, owner = (list(self.scores), self.owner.tolist()) if same else ([], [])
        rng = np.random.default_rng([seed, int(count.sum())])
        places: dict[int, list[int]] = {}
        for place, c in enumerate(owner):
            places.setdefault(c, []).append(place)
        for c, score in zip(classes.tolist(), scores, strict=True):  # each of a class's samples is as likely to stay
            mine = places.setdefault(c, [])
            count[c] += 1
            if len(mine) < KEPT:
                mine.append(len(kept))
                kept.append(score)
                owner.append(c)
            elif (drawn := int(rng.integers(int(count[c])))) < KEPT:
                kept[mine[drawn]] = score
        for c in np.unique(classes):
            mine = classes == c
            total[c] += losses(probabilities[mine], column[mine])
        return replace(
            self,
            losses=total,
            count=count,
            last=last,
            scores=np.array(kept),
            owner=np.array(owner, np.int64),
            learned=learned,
        )

    def without(self, gone: Sequence[int]) -> Asked:
        """Return it without what came out for the samples of some classes."""
        total, count = self.losses.copy(), self.count.copy()
        there = [c for c in gone if c < len(count)]
        total[there], count[there] = 0, 0
        stays = ~np.isin(self.owner, list(gone))
        return replace(self, losses=total, count=count, scores=self.scores[stays], owner=self.owner[stays])

    @property
    def temperature(self) -> float:
        """The temperature that suits; what is usual if nothing was asked."""
        return temperature(self.losses.sum(0), self.usual)

    @property
    def numbers(self) -> int:
        """How many numbers are kept."""
        return sum(array.size for array in self.to_arrays().values())

    def familiarity(self, scores: Array) -> Array:
        """Return the share of known samples that are as strange as these or stranger, (n,), given (n, kinds)."""
        if not len(self.scores):
            raise InputError(
                "this model has no held-out scores to compare with, so it cannot tell which samples are "
                "unusual: learn another task with calibrate=True (and, for a network, holdout=0.1)"
            )
        if scores.shape[1] != self.scores.shape[1]:
            raise InputError(
                f"this model keeps {self.scores.shape[1]} kinds of scores, and relive now uses {scores.shape[1]}: "
                "it cannot tell what is unusual until it has learned one more task"
            )
        known, weight = self.scores, self._weight()
        strange, strange_known = np.zeros(len(scores)), np.zeros(len(known))
        for mine, theirs in zip(scores.T, known.T, strict=True):
            strange += _beyond(mine, theirs) - np.log(_share_above(mine, theirs, weight, 1))
            strange_known -= np.log(_share_above(theirs, theirs, weight, 0))
        top = strange_known.max()
        falling = np.minimum(1, max(top, 1e-9) / np.maximum(strange, 1e-9))  # beyond all known ones, where no share is
        familiarity: Array = _share_above(strange, strange_known, weight, 1) * falling
        return familiarity

    def _weight(self) -> Array:
        """Return what each kept row counts for, (kept,): 1 on average, and half as much with each time asked since."""
        weight = self.count[self.owner] / np.bincount(self.owner)[self.owner]
        weight *= FADES ** (self.last.max() - self.last[self.owner])
        scaled: Array = weight * (len(weight) / weight.sum())
        return scaled

    def check_share(self, reject: Any) -> float:
        """Return the share of samples to be refused as a number; refuse one that cannot be reached."""
        if not isinstance(reject, int | float | np.number) or isinstance(reject, bool) or not 0 < float(reject) < 1:
            raise InputError(f"reject = {reject!r}: it must be a number between 0 and 1, such as 0.05, or None")
        n = len(self.scores)
        if n and (n + 1) * float(reject) < 1:
            raise InputError(
                f"reject = {reject}: this model has only {n} held-out scores, too few to resolve so small a "
                f"share: use at least {1 / (n + 1):.3f}"
            )
        return float(reject)

    def to_arrays(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        names = ("losses", "count", "last", "scores", "owner")
        return {name: getattr(self, name) for name in names}


def asked_from(arrays: Mapping[str, Array], learned: int, usual: float, n_classes: int) -> Asked:
    """Return what was asked, from arrays that may be anything.

    Raises
    ------
    ValueError
        If they cannot be.
    """
    total, count, last, scores, owner = (arrays[name] for name in ("losses", "count", "last", "scores", "owner"))
    n = len(count)
    fits = total.shape == (n, len(TEMPERATURES)) and count.shape == last.shape == (n,) and n <= n_classes
    fits = fits and scores.ndim == 2
    fits = fits and owner.shape == (len(scores),) and owner.dtype == np.int64
    fits = fits and bool(np.isin(owner, np.arange(n)).all())
    fits = fits and all(a.dtype == np.float64 and bool(np.isfinite(a).all()) for a in (total, count, last))
    fits = fits and scores.dtype == np.float64 and not np.isinf(scores).any()
    fits = fits and bool((count >= 0).all() and (last >= 0).all() and (count[owner] > 0).all())
    if not fits or not TEMPERATURES[0] <= usual <= TEMPERATURES[-1]:
        raise ValueError("its held-out scores are invalid")
    return Asked(total, count, last, scores, owner, learned, usual)


def closeness(probabilities: Array) -> Array:
    """Return how close all other answers together are to the best, log p(others) / p(best), (n,): the unsurer the more.

    Very sure ones are all the same: how sure they are depends on which classes there are besides, and new ones come.

    >>> closeness(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [0.0, -30.0]
    """
    best = probabilities.argmax(1)[:, None]
    top = np.take_along_axis(probabilities, best, 1)[:, 0]
    others = probabilities.copy()
    np.put_along_axis(others, best, 0.0, 1)
    score: Array = np.maximum(np.log(np.maximum(others.sum(1), SMALLEST)) - np.log(top), SURE)
    return score


def strangeness_scores(probabilities: Array, kinds: Array | None, n_labels: int) -> Array:
    """Return in which ways, and how much, samples are unlike everything learned, (n, kinds).

    A method that measures no novelty leaves how close the other answers are, which means nothing with one label only.
    """
    if kinds is not None:
        return kinds
    return closeness(probabilities)[:, None] if n_labels > 1 else np.full((len(probabilities), 1), np.nan)


def _beyond(values: Array, known: Array) -> Array:
    """Return how far values are beyond all known ones, (n,), in units of how far the last known is from the middle."""
    known = known[~np.isnan(known)]
    if not len(known):
        return np.zeros(len(values))
    top, middle = known.max(), np.median(known)
    beyond: Array = np.nan_to_num(np.maximum(values - top, 0) / max(top - middle, 1e-9))
    return beyond


def _share_above(values: Array, known: Array, weight: Array, itself: int) -> Array:
    """Return the weighted share of known values that are no smaller, (n,); a new value itself counts as one of them.

    Of a value that is not known (NaN) nothing can be told: half of all.
    """
    known, weight = known[~np.isnan(known)], weight[~np.isnan(known)]
    order = np.argsort(known)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)  # (known + 1,) the weight from each place on
    share: Array = (itself + above[np.searchsorted(known[order], values)]) / (1 + weight.sum())
    return np.where(np.isnan(values), 0.5, share)
