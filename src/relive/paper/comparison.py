"""Our numbers next to the published ones: which runs count for a cell of the paper's tables, and how they compare."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from relive._util.errors import unknown
from relive._util.statistics import ALPHA, holm, mean_and_sem, welch, welch_margin
from relive.experiments.compare import TESTED_RUNS, percents
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.paper.published import (
    GRIDS,
    PROTOCOL_NAMES,
    PUBLISHED,
    RUNS_PER_CELL,
    PublishedCell,
    counts,
    preset_settings,
)
from relive.paper.tuned import DEFAULTS, Settings, Tuned, as_in_paper

NEAR_SDS, RANGE_SDS = 1.0, 3.0  # published standard deviations: what counts as near, and as in range for a single run
POINTS = 1.0  # always counts as near

Verdict = Literal["agrees", "inconclusive", "undecided", "in range", "higher", "lower", "missing"]
METHODS = tuple(dict.fromkeys(method for _, _, method in PUBLISHED))


@dataclass(frozen=True)
class Compared:
    """One cell of a table: our runs, the published number, and the outcome of the comparison. Accuracies in percent.

    Attributes
    ----------
    scenario, method
        Which cell.
    settings
        The method settings that a run must have to count, or None if they should be searched and are not.
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
        ``"higher"`` and ``"lower"`` if a difference was shown. Otherwise ``"agrees"`` if the whole interval is near 0
        (one published standard deviation, or a point), else ``"undecided"`` with fewer runs than the published cell,
        and ``"inconclusive"`` with as many. One or two runs are not tested: their mean is ``"in range"`` of a
        single published run, or not.
    note
        What a reader should know about this verdict.
    """

    scenario: str
    method: str
    settings: Mapping[str, float] | None
    published: PublishedCell
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
        """Return this many published standard deviations in points, but at least one point."""
        return max(sds * self.published.sem * math.sqrt(RUNS_PER_CELL), POINTS)


@dataclass(frozen=True)
class Comparison:
    """One of the paper's two tables next to ours; ``cells`` has a key (scenario, method) for each published cell."""

    protocol: str
    settings: Settings
    cells: dict[tuple[str, str], Compared] = field(default_factory=dict)

    @property
    def tested(self) -> int:
        """How many cells Welch's test was applied to."""
        return sum(cell.p is not None for cell in self.cells.values())


def compare(results: Iterable[RunResult], protocol: str, settings: Settings = DEFAULTS) -> Comparison:
    """Compare results with the published table of a protocol.

    Parameters
    ----------
    results
        Any results; those that are not the paper's experiment are left out.
    protocol
        Which table.
    settings
        Which settings the runs must have.
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
            wanted = wanted_settings(protocol, scenario, method, settings.cells)
            runs = [] if wanted is None else counted(by_cell[protocol, scenario, method], wanted)
            cells[scenario, method] = _judged(scenario, method, wanted, runs, PUBLISHED[protocol, scenario, method])
    corrected = holm({key: cell.p for key, cell in cells.items() if cell.p is not None})
    for key, p in corrected.items():
        cells[key] = replace(cells[key], p_holm=p, verdict=_tested(cells[key], p))
    return Comparison(protocol, settings, cells)


def preferred(default: Comparison, *others: Comparison) -> Comparison:
    """Return a table with the cells of other settings where they have enough runs.

    Of several, that with the most runs is taken, the last of equals. The paper's figures use searched settings: it gave
    the competing methods "the best possible chance".
    """
    cells = dict(default.cells)
    for key, cell in default.cells.items():
        most = max((table.cells[key] for table in reversed(others)), key=lambda other: other.n, default=cell)
        if most.n >= min(TESTED_RUNS, cell.n or 1):
            cells[key] = most
    return replace(default, cells=cells)


def wanted_settings(protocol: str, scenario: str, method: str, chosen: Tuned | None) -> dict[str, float] | None:
    """Return the settings that a cell's runs must have, or None if a search has yet to choose them."""
    defaults = preset_settings(protocol, method)
    if chosen is None or (protocol, method) not in GRIDS:
        return defaults
    of_cell = chosen.get((protocol, scenario, method))
    return None if of_cell is None else defaults | of_cell


def counted(results: Iterable[RunResult], settings: Mapping[str, float]) -> list[RunResult]:
    """Return the results that count for a cell, by seed, without the grid search's own run and split's seed 0.

    A seed counts once: its runs with other numbers of threads differ only in the last bits.
    """
    by_seed: dict[int, RunResult] = {}
    for result in sorted(results, key=lambda r: (r.spec.seed, r.spec.threads)):
        if counts(result.spec.protocol, result.spec.seed) and as_in_paper(result.spec, settings):
            by_seed.setdefault(result.spec.seed, result)
    return list(by_seed.values())


def _judged(
    scenario: str,
    method: str,
    settings: Mapping[str, float] | None,
    runs: Sequence[RunResult],
    published: PublishedCell,
) -> Compared:
    """Return a cell with its numbers; the verdict of a tested cell awaits the correction."""
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
    """Return the verdict of a cell with a given corrected p-value."""
    if p < ALPHA:
        return _direction(cell)
    assert cell.interval is not None
    if max(map(abs, cell.interval)) <= cell.within(NEAR_SDS):
        return "agrees"
    return "undecided" if cell.n < RUNS_PER_CELL else "inconclusive"


def _direction(cell: Compared) -> Verdict:
    return "higher" if (cell.difference or 0) > 0 else "lower"
