r"""Scores of samples that a model had not learned, or not yet: only numbers are kept, no samples.

They serve two purposes. *A temperature*: the sum of :math:`-\log p_T(y|x)` is kept at every temperature of a grid
(:mod:`relive.classifier.calibration`). *Novelty*: for some samples it is kept how unlike everything learned they
were, in several ways j (:meth:`relive.core.method.Method.novelty`, or how close the runner-up was). For a new sample,
:math:`p_j` is the share of held-out samples that are at least as unusual in way j; combining all ways, its
strangeness is Fisher's statistic,

.. math:: s(x) = \sum_j -\log p_j(x) + b_j(x)

where b is how far a sample lies beyond all held-out ones, where the share can say no more. Its familiarity is the share
of held-out samples that are at least as strange; beyond the strangest of them it keeps falling. Rejecting samples with
a familiarity below 0.05 rejects about 5 % of samples like those learned, whatever the distribution (Vovk et al. 2005,
"Algorithmic learning in a random world"), as long as the model has not changed since. It has: so the most recent scores
count most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive.classifier.calibration import FADES, SMALLEST, TEMPERATURES, losses, temperature

Array = npt.NDArray[Any]
SURE = -30.0  # log odds of all other answers below which differences are ignored
KEPT = 64  # samples of each class whose novelty scores are kept


@dataclass(frozen=True, eq=False)
class Asked:
    """The scores so far; immutable.

    Attributes
    ----------
    losses
        (classes, temperatures) the summed losses of each class's samples.
    count
        (classes,) how many samples of each class were scored.
    last
        (classes,) the number of the last round of scoring that had samples of a class; 0 for never.
    scores, owner
        (kept, kinds) how unlike everything learned some of them were, NaN where not known yet, and (kept,)
        the class of each.
    learned
        How many samples the model had learned at the last round.
    usual
        The method's usual temperature; 1 if nothing is to be calibrated.
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
        """Return the scores before any sample was scored."""
        zeros = np.zeros((0, len(TEMPERATURES)))
        return cls(zeros, np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(0, np.int64), usual=usual)

    def with_more(
        self, probabilities: Array, column: Array, classes: Array, scores: Array, learned: int, seed: int
    ) -> Asked:
        """Return the scores with those of more samples added.

        Parameters
        ----------
        probabilities, column
            (n, labels) at temperature 1, and (n,) the index of the true label.
        classes
            (n,) the class of each sample.
        scores
            (n, kinds) how unlike everything learned each sample is.
        learned
            How many samples the model has learned.
        seed
            Determines which of them are kept.
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
        for c, score in zip(classes.tolist(), scores, strict=True):  # reservoir sampling within each class
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
        """Return the scores without those of some classes' samples."""
        total, count = self.losses.copy(), self.count.copy()
        there = [c for c in gone if c < len(count)]
        total[there], count[there] = 0, 0
        stays = ~np.isin(self.owner, list(gone))
        return replace(self, losses=total, count=count, scores=self.scores[stays], owner=self.owner[stays])

    @property
    def temperature(self) -> float:
        """The best temperature; the usual one if there are no scores."""
        return temperature(self.losses.sum(0), self.usual)

    @property
    def numbers(self) -> int:
        """How many numbers are kept."""
        return sum(array.size for array in self.to_arrays().values())

    def familiarity(self, scores: Array) -> Array:
        """Return the share of held-out samples that are at least as strange as these, (n,), given (n, kinds)."""
        if not len(self.scores):
            raise InputError(
                "this model has no held-out scores to compare with, so it cannot tell which samples are "
                "unusual: learn another task, with a network holding some samples out (--holdout 0.1, holdout=0.1)"
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
        """Return the weight of each kept row, (kept,): 1 on average, halved with each round of scoring since."""
        weight = self.count[self.owner] / np.bincount(self.owner)[self.owner]
        weight *= FADES ** (self.last.max() - self.last[self.owner])
        scaled: Array = weight * (len(weight) / weight.sum())
        return scaled

    def check_share(self, reject: Any) -> float:
        """Return the share of samples to reject as a number; refuse one that is too small to resolve."""
        if not isinstance(reject, int | float | np.number) or isinstance(reject, bool) or not 0 < float(reject) < 1:
            raise InputError(f"reject = {reject!r}: it must be a number between 0 and 1, such as 0.05, or None")
        n = len(self.scores)
        if n and (n + 1) * float(reject) < 1:
            raise InputError(
                f"reject = {reject}: this model has only {n} held-out scores, too few to resolve so small a "
                f"share: use at least {math.ceil(1000 / (n + 1)) / 1000:g}"
            )
        return float(reject)

    def to_arrays(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        names = ("losses", "count", "last", "scores", "owner")
        return {name: getattr(self, name) for name in names}


def asked_from(arrays: Mapping[str, Array], learned: int, usual: float, n_classes: int) -> Asked:
    """Return the scores from arrays of a file, which may hold anything.

    Raises
    ------
    ValueError
        If they are invalid.
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
    """Return how close all other answers together are to the best, log p(others) / p(best), (n,): higher is less sure.

    Very confident answers are treated alike: how confident they are depends on the other classes, and new ones come.

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
    """Return how unlike everything learned samples are, in each way, (n, kinds).

    A method that measures no novelty leaves the closeness of other answers, which means nothing with a single label.
    """
    if kinds is not None:
        return kinds
    return closeness(probabilities)[:, None] if n_labels > 1 else np.full((len(probabilities), 1), np.nan)


def _beyond(values: Array, known: Array) -> Array:
    """Return how far values lie beyond all known ones, (n,), in units of the distance from the last to the median."""
    known = known[~np.isnan(known)]
    if not len(known):
        return np.zeros(len(values))
    top, middle = known.max(), np.median(known)
    beyond: Array = np.nan_to_num(np.maximum(values - top, 0) / max(top - middle, 1e-9))
    return beyond


def _share_above(values: Array, known: Array, weight: Array, itself: int) -> Array:
    """Return the weighted share of known values that are no smaller, (n,); a new value counts itself.

    For an unknown value (NaN) the share is one half.
    """
    known, weight = known[~np.isnan(known)], weight[~np.isnan(known)]
    order = np.argsort(known)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)  # (known + 1,) the weight from each place on
    share: Array = (itself + above[np.searchsorted(known[order], values)]) / (1 + weight.sum())
    return np.where(np.isnan(values), 0.5, share)
