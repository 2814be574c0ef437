"""The parts of a claim: a mean beyond a threshold, a difference of two methods, a ratio of training times.

Each is met, not met, or open, which means that there are no runs for it or that its 95 % interval (Student's) has the
threshold in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from relive._util.statistics import mean_and_sem, student_margin
from relive.experiments.compare import TESTED_RUNS, is_quiet
from relive.experiments.spec import RunResult
from relive.paper.comparison import Compared, Comparison
from relive.paper.published import RUNS_PER_CELL
from relive.report.style import SCENARIO_TITLES, method_title
from relive.report.tables import accuracy_text, difference_text
from relive.report.times import Times

Outcome = Literal["met", "not met", "open"]

_NO_PAIR = "no pair of runs with the same seed, code and kind of processor that had their cores to themselves"


@dataclass(frozen=True)
class Part:
    """One thing that a claim says, what came out, and of how many runs or pairs of runs."""

    outcome: Outcome
    text: str
    n: int = 0


def beyond(cell: Compared, threshold: float, *, above: bool) -> Part:
    """Compare a cell's mean with a threshold."""
    title = method_title(cell.method)
    if cell.mean is None:
        return Part("open", f"{title}: no runs")
    excess = cell.mean - threshold if above else threshold - cell.mean
    error, degrees = cell.sem, cell.n - 1
    if error is None or cell.n < TESTED_RUNS:  # too few for a spread of their own: that of the published runs
        error, degrees = cell.published.sem * math.sqrt(RUNS_PER_CELL / cell.n), RUNS_PER_CELL - 1
    outcome = _outcome(excess, error, degrees)
    noise = student_margin(error, degrees)
    interval = f"[{cell.mean - noise:.2f}, {cell.mean + noise:.2f}]"
    text = (
        f"{title}: {accuracy_text(cell.mean, cell.sem)} % {interval} ({_runs(cell.n)}; paper {cell.published.mean:.2f})"
    )
    return Part(outcome, text + (f", too near {threshold:g} % to tell" if outcome == "open" else ""), cell.n)


def difference(better: Compared, worse: Compared, margin: float) -> Part:
    """Say whether one method's mean exceeds another's by a margin, seed by seed: a seed gives both the same tasks."""
    title = SCENARIO_TITLES[better.scenario]
    if not better.n or not worse.n:
        return Part("open", f"{title}: no runs of {missing(better, worse)}")
    pairs = [
        100 * (ours.average_accuracy - theirs.average_accuracy) for ours, theirs in _pairs(better.runs, worse.runs)
    ]
    if not pairs:
        return Part("open", f"{title}: no runs of both with the same seed")
    mean, error = mean_and_sem(pairs)
    degrees, of = len(pairs) - 1, _seeds(len(pairs))
    if error is None or len(pairs) < TESTED_RUNS:  # too few for a spread of their own: that of the published runs
        of += "; ± from the spread of the published runs"
        error = math.hypot(better.published.sem, worse.published.sem) * math.sqrt(RUNS_PER_CELL / len(pairs))
        degrees = 2 * (RUNS_PER_CELL - 1)
    outcome = _outcome(mean - margin, error, degrees)
    versus = f"{method_title(better.method)} − {method_title(worse.method)}"
    noise = student_margin(error, degrees)
    interval = f"[{difference_text(mean - noise)}, {difference_text(mean + noise)}]"
    of += f"; paper {difference_text(better.published.mean - worse.published.mean)}"
    text = f"{title}: {versus} = {difference_text(mean)} ± {error:.2f} points {interval} ({of})"
    return Part(outcome, text + (", too near to tell" if outcome == "open" else ""), len(pairs))


def _outcome(excess: float, error: float, degrees: int) -> Outcome:
    """Judge by how much something is beyond its threshold."""
    noise = student_margin(error, degrees)
    return "met" if excess > noise else "not met" if excess < -noise else "open"


def time_ratio(table: Comparison, times: Times, scenario: str, ours: str, theirs: str, low: float, high: float) -> Part:
    """Say whether one method's training time over another's is between two numbers."""
    title = SCENARIO_TITLES[scenario]
    interleaved = [times.get((table.protocol, scenario, method), []) for method in (ours, theirs)]
    if all(interleaved):
        pairs = list(zip(*interleaved, strict=True))
        how = f"{len(pairs)} interleaved repeats"
    else:
        cells = [table.cells[scenario, method] for method in (ours, theirs)]
        if not all(cell.n for cell in cells):
            return Part("open", f"{title}: no runs of {missing(*cells)}")
        pairs = _times_of_runs(*(cell.runs for cell in cells))
        how = _seeds(len(pairs))
    if not pairs:
        return Part("open", f"{title}: {_NO_PAIR}")
    seconds = [statistics.fmean(values) for values in zip(*pairs, strict=True)]
    mean, error = mean_and_sem([math.log(a / b) for a, b in pairs])
    names = " / ".join(map(method_title, (ours, theirs)))
    text = f"{title}: {names} = {seconds[0]:.0f} s / {seconds[1]:.0f} s = {math.exp(mean):.2f}"
    if error is None:
        return Part("open", f"{text} (one pair, too few to tell)")
    noise = student_margin(error, len(pairs) - 1)
    least, most = math.exp(mean - noise), math.exp(mean + noise)
    outcome: Outcome = "met" if low < least and most < high else "not met" if most < low or high < least else "open"
    return Part(outcome, f"{text}, {least:.2f} to {most:.2f} ({how})")


def _times_of_runs(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> list[tuple[float, float]]:
    """Return the training times of two methods, seed by seed, of runs that had their cores to themselves.

    Both runs of a pair must be of the same versions, to which the kind of processor belongs.
    """
    return [
        (a.train_seconds, b.train_seconds)
        for a, b in _pairs(ours, theirs)
        if is_quiet(a) and is_quiet(b) and a.versions == b.versions and a.spec.threads == b.spec.threads
    ]


def _pairs(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> list[tuple[RunResult, RunResult]]:
    """Return the runs of two methods that had the same seed, and so the same tasks in the same order."""
    by_seed = {run.spec.seed: run for run in theirs}
    return [(run, by_seed[run.spec.seed]) for run in ours if run.spec.seed in by_seed]


def missing(*cells: Compared) -> str:
    """Return the titles of the methods without runs."""
    return ", ".join(method_title(cell.method) for cell in cells if not cell.n)


def _runs(n: int) -> str:
    return "one run" if n == 1 else f"{n} runs"


def _seeds(n: int) -> str:
    return "one seed" if n == 1 else f"{n} seeds"
