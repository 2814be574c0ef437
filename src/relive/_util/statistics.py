"""The statistics that tables need: mean ± SEM, tests of differences, intervals of shares, Holm's correction."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

ALPHA = 0.05
Key = TypeVar("Key")


def mean_and_sem(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and its standard error if there is more than one value.

    >>> mean_and_sem([1.0, 3.0]), mean_and_sem([2.0])
    ((2.0, 1.0), (2.0, None))
    """
    sem = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return statistics.fmean(values), sem


def student_margin(sem: float, degrees: float) -> float:
    """Return half of the width of Student's 95 % interval."""
    from scipy.stats import t as student

    return sem * float(student.ppf(1 - ALPHA / 2, degrees))


def paired(differences: Sequence[float]) -> float | None:
    """Return the two-sided p-value of the paired t-test; None with fewer than two pairs.

    If all differences are equal, p is 0, or 1 if they are all 0.

    >>> round(paired([1.0, 2.0, 3.0]), 4), paired([0.0, 0.0]), paired([1.0])
    (0.0742, 1.0, None)
    """
    from scipy.stats import t as student

    mean, sem = mean_and_sem(differences)
    if sem is None:
        return None
    if sem == 0:
        return float(mean == 0)
    return float(2 * student.sf(abs(mean) / sem, len(differences) - 1))


def welch(mean: float, sem: float, n: int, mean2: float, sem2: float, n2: int) -> float:
    """Return the two-sided p-value of Welch's test from two means and their standard errors.

    If neither sample has any spread, p is 1 if they are equal and 0 otherwise.
    """
    from scipy.stats import ttest_ind_from_stats

    if sem == 0 and sem2 == 0:
        return float(mean == mean2)
    sd, sd2 = sem * math.sqrt(n), sem2 * math.sqrt(n2)
    return float(ttest_ind_from_stats(mean, sd, n, mean2, sd2, n2, equal_var=False).pvalue)


def welch_margin(sem: float, n: int, sem2: float, n2: int) -> float:
    """Return half the width of the confidence interval of a difference of means, with Welch's degrees of freedom."""
    error = math.hypot(sem, sem2)
    if error == 0:
        return 0.0
    return student_margin(error, error**4 / (sem**4 / (n - 1) + sem2**4 / (n2 - 1)))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return p-values with Holm's step-down correction for multiple tests.

    >>> {key: round(p, 3) for key, p in holm({"a": 0.01, "b": 0.04, "c": 0.03}).items()}
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    corrected: dict[Key, float] = {}
    largest = 0.0
    for rank, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p))
        corrected[key] = largest
    return corrected


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson 1927, JASA 22).

    >>> [round(end, 3) for end in wilson(9, 10)]
    [0.596, 0.982]
    """
    from scipy.stats import binomtest

    interval = binomtest(right, n).proportion_ci(1 - ALPHA, method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test; 1 if nothing changed.

    >>> mcnemar(0, 0), mcnemar(8, 0), mcnemar(3, 3)
    (1.0, 0.0078125, 1.0)
    """
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
