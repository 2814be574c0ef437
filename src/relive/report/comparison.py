"""Our numbers beside the published ones: which runs count for a cell of the paper's tables, and how they compare."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from scipy.stats import t as student
from scipy.stats import ttest_ind_from_stats

from relive.errors import unknown
from relive.experiments.paper import GRID_SEED, GRIDS, PUBLISHED, RUNS_PER_CELL, Cell, preset_settings
from relive.experiments.spec import PROTOCOL_NAMES, SCENARIO_NAMES, RunResult
from relive.experiments.tuned import Tuned, as_in_paper

ALPHA = 0.05
TESTED_RUNS = 3  # with two, a spread near 0 comes by chance too often for a test
NEAR_SDS, RANGE_SDS = 1.0, 3.0  # published standard deviations: how near is near, how far a single run may be
POINTS = 1.0  # near in any case
OWN_CORE = 0.95  # of the time; a run that had less waited for others, and its time says little

Key = TypeVar("Key")
Verdict = Literal["agrees", "undecided", "in range", "higher", "lower", "missing"]
METHODS = tuple(dict.fromkeys(method for _, _, method in PUBLISHED))


@dataclass(frozen=True)
class Compared:
    """One cell of a table: our runs, the published number, and what the comparison says. Accuracies in percent.

    Attributes
    ----------
    scenario, method
        Which cell.
    settings
        What the method's settings must be for a run to count, or None if they were to be searched and are not.
    runs
        The runs that count, one per seed.
    mean, sem
        Of our runs; one run has no SEM.
    published
        The paper's mean and SEM of 20 runs.
    p, p_holm
        Welch's test against the published cell, and corrected for the number of cells tested; None if not tested.
    interval
        Of the difference to the published mean, 95 %, in points; None if not tested.
    verdict
        ``"higher"`` and ``"lower"`` if a difference was shown. If none was, ``"agrees"`` if the interval is near 0 as a
        whole (one published standard deviation, or a point), else ``"undecided"``: there are too few runs to tell. One
        or two runs are not tested: their mean is ``"in range"`` of a single published run, or it is not.
    note
        What a reader should know about this verdict.
    """

    scenario: str
    method: str
    settings: Mapping[str, float] | None
    published: Cell
    runs: tuple[RunResult, ...] = ()
    mean: float | None = None
    sem: float | None = None
    p: float | None = None
    p_holm: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict = "missing"
    note: str = ""

    @property
    def n(self) -> int:
        """How many runs."""
        return len(self.runs)

    @property
    def difference(self) -> float | None:
        """Ours minus published, in points."""
        return None if self.mean is None else self.mean - self.published.mean

    def within(self, sds: float) -> float:
        """Return so many published standard deviations in points, but at least one point."""
        return max(sds * self.published.sem * math.sqrt(RUNS_PER_CELL), POINTS)


@dataclass(frozen=True)
class Comparison:
    """One of the paper's two tables beside ours; ``cells`` has a key (scenario, method) for each published cell."""

    protocol: str
    tuned: bool
    cells: dict[tuple[str, str], Compared] = field(default_factory=dict)

    @property
    def tested(self) -> int:
        """How many cells Welch's test was applied to."""
        return sum(cell.p is not None for cell in self.cells.values())


def compare(results: Iterable[RunResult], protocol: str, tuned: Tuned | None = None) -> Comparison:
    """Compare results with the published table of a protocol.

    Parameters
    ----------
    results
        Any results; those that are not the paper's experiment are left out.
    protocol
        Which table.
    tuned
        The settings that grid searches chose; None compares runs with the default settings.
    """
    if protocol not in PROTOCOL_NAMES:
        raise unknown("protocol", protocol, PROTOCOL_NAMES)
    by_cell = defaultdict(list)
    for result in results:
        by_cell[result.spec.protocol, result.spec.scenario, result.spec.method].append(result)
    cells = {}
    for method in METHODS:
        for scenario in SCENARIO_NAMES:
            if (protocol, scenario, method) not in PUBLISHED:
                continue
            settings = wanted_settings(protocol, scenario, method, tuned)
            runs = [] if settings is None else counted(by_cell[protocol, scenario, method], settings)
            cells[scenario, method] = _judged(scenario, method, settings, runs, PUBLISHED[protocol, scenario, method])
    corrected = holm({key: cell.p for key, cell in cells.items() if cell.p is not None})
    for key, p in corrected.items():
        cells[key] = replace(cells[key], p_holm=p, verdict=_tested(cells[key], p))
    return Comparison(protocol, tuned is not None, cells)


def preferred(default: Comparison, tuned: Comparison) -> Comparison:
    """Return a table of the runs with searched settings where there are enough, and of the default ones elsewhere.

    The paper's figures are of such runs: it gave the competing methods "the best possible chance".
    """
    searched = {key: cell for key, cell in tuned.cells.items() if cell.n >= min(TESTED_RUNS, default.cells[key].n or 1)}
    return replace(default, cells=default.cells | searched)


def wanted_settings(protocol: str, scenario: str, method: str, tuned: Tuned | None) -> dict[str, float] | None:
    """Return the settings that a cell's runs must have, or None if a search should have chosen them and has not."""
    defaults = preset_settings(protocol, method)
    if tuned is None or (protocol, method) not in GRIDS:
        return defaults
    chosen = tuned.get((protocol, scenario, method))
    return None if chosen is None else defaults | chosen


def counted(results: Iterable[RunResult], settings: Mapping[str, float]) -> list[RunResult]:
    """Return the results that count for a cell, by seed; the grid search's own run does not.

    A seed counts once: its runs with other numbers of threads differ in the last bits, they are no new draw.
    """
    by_seed: dict[int, RunResult] = {}
    for result in sorted(results, key=lambda r: (r.spec.seed, r.spec.threads)):
        if result.spec.seed != GRID_SEED and as_in_paper(result.spec, settings):
            by_seed.setdefault(result.spec.seed, result)
    return list(by_seed.values())


def mean_and_sem(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and its standard error if there is more than one value.

    >>> mean_and_sem([1.0, 3.0]), mean_and_sem([2.0])
    ((2.0, 1.0), (2.0, None))
    """
    sem = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return statistics.fmean(values), sem


def percents(runs: Iterable[RunResult]) -> list[float]:
    """Return the runs' average accuracies in percent."""
    return [100 * run.average_accuracy for run in runs]


def is_quiet(run: RunResult) -> bool:
    """Say whether a run is known to have had a core to itself for each of its threads, so that its time counts."""
    share = core_share(run)
    return share is not None and share >= OWN_CORE


def core_share(run: RunResult) -> float | None:
    """Return which part of its training time a run had its cores, or None if that is not known."""
    if run.cpu_seconds is None or not run.train_seconds:
        return None
    return run.cpu_seconds / (run.train_seconds * run.spec.threads)


def welch(mean: float, sem: float, n: int, mean2: float, sem2: float, n2: int) -> float:
    """Return the two-sided p-value of Welch's test from two means and their standard errors.

    Two samples without any spread are the same or they are not: p is 1 or 0.
    """
    if sem == 0 and sem2 == 0:
        return float(mean == mean2)
    sd, sd2 = sem * math.sqrt(n), sem2 * math.sqrt(n2)
    return float(ttest_ind_from_stats(mean, sd, n, mean2, sd2, n2, equal_var=False).pvalue)


def welch_margin(sem: float, n: int, sem2: float, n2: int) -> float:
    """Return by how much the difference of two means may be off either way, with Welch's degrees of freedom."""
    error = math.hypot(sem, sem2)
    if error == 0:
        return 0.0
    degrees = error**4 / (sem**4 / (n - 1) + sem2**4 / (n2 - 1))
    return float(error * student.ppf(1 - ALPHA / 2, degrees))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return p-values corrected for their number by Holm's step-down method.

    >>> {key: round(p, 3) for key, p in holm({"a": 0.01, "b": 0.04, "c": 0.03}).items()}
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    corrected: dict[Key, float] = {}
    largest = 0.0
    for rank, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p))
        corrected[key] = largest
    return corrected


def _judged(
    scenario: str, method: str, settings: Mapping[str, float] | None, runs: Sequence[RunResult], published: Cell
) -> Compared:
    """Return a cell with its numbers; the verdict of a tested cell waits for the correction."""
    cell = Compared(scenario, method, settings, published)
    if settings is None:
        return replace(cell, note="its settings have not been searched")
    if not runs:
        return cell
    mean, sem = mean_and_sem(percents(runs))
    cell = replace(cell, runs=tuple(runs), mean=mean, sem=sem)
    if sem is None or cell.n < TESTED_RUNS:
        return _judged_by_range(cell)
    p = welch(mean, sem, cell.n, published.mean, published.sem, RUNS_PER_CELL)
    margin = welch_margin(sem, cell.n, published.sem, RUNS_PER_CELL)
    interval = (mean - published.mean - margin, mean - published.mean + margin)
    return replace(cell, p=p, interval=interval, note="all our runs have the same accuracy" if sem == 0 else "")


def _judged_by_range(cell: Compared) -> Compared:
    """Return a cell of one or two runs, judged by the spread of the published runs."""
    assert cell.difference is not None
    reach = cell.within(RANGE_SDS)
    within = abs(cell.difference) <= reach
    runs = "one run" if cell.n == 1 else f"{cell.n} runs"
    note = f"{runs}: {'within' if within else 'outside'} {reach:.2f} points of the published mean"
    return replace(cell, verdict="in range" if within else _direction(cell), note=note)


def _tested(cell: Compared, p: float) -> Verdict:
    """Return the verdict of a cell whose p-value, corrected, is known."""
    if p < ALPHA:
        return _direction(cell)
    assert cell.interval is not None
    return "agrees" if max(map(abs, cell.interval)) <= cell.within(NEAR_SDS) else "undecided"


def _direction(cell: Compared) -> Verdict:
    return "higher" if (cell.difference or 0) > 0 else "lower"
