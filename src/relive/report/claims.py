"""The paper's claims as a checked list: what our runs say about each, with the numbers that say it.

A claim is made of parts, one per scenario or method. Each part is met, not met, or open, which means that there are no
runs for it or that its 95 % interval (Student's) has the threshold in it. A claim holds if enough of its parts are met,
does not hold if too many are not. Otherwise its difference is too small to tell, if what is open has as many runs as
the paper's cells, and nothing can be said if it has fewer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from relive._util.statistics import ALPHA, mean_and_sem, student_margin
from relive.experiments.compare import OWN_CORE, is_quiet
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.paper.comparison import Compared, Comparison
from relive.paper.published import PROTOCOL_NAMES, RUNS_PER_CELL
from relive.report.style import SCENARIO_TITLES, method_title
from relive.report.tables import accuracy_text, difference_text
from relive.report.times import Times

Outcome = Literal["met", "not met", "open"]
Status = Literal["holds", "does not hold", "too small to tell", "cannot be said"]

REPLAY = ("dgr", "dgr-distill", "rtf")
OTHERS = ("none", "ewc", "online-ewc", "si", "lwf")
WORKS, WELL = 50.0, 90.0  # percent: right more often than wrong; "good performance (above 90%)"
ALMOST_HALVED = 0.6
ABOUT_TWICE = (1.5, 2.5)
NEGLIGIBLE = 1.0  # point
_NO_PAIR = "no pair of runs with the same seed, code and kind of processor that had their cores to themselves"


@dataclass(frozen=True)
class Part:
    """One thing that a claim says, what came out, and of how many runs or pairs of runs."""

    outcome: Outcome
    text: str
    n: int = 0


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, how it is checked here, and what our runs say.

    Attributes
    ----------
    protocol
        On which protocol it is checked.
    title
        The claim in our words.
    quote
        The paper's words.
    rule
        When we say that it holds.
    parts
        What was compared.
    needed
        How many parts must be met.
    """

    protocol: str
    title: str
    quote: str
    rule: str
    parts: tuple[Part, ...]
    needed: int

    @property
    def status(self) -> Status:
        """What can be said."""
        outcomes = [part.outcome for part in self.parts]
        if outcomes.count("met") >= self.needed:
            return "holds"
        if len(outcomes) - outcomes.count("not met") < self.needed:
            return "does not hold"
        enough = all(part.n >= RUNS_PER_CELL for part in self.parts if part.outcome == "open")
        return "too small to tell" if enough else "cannot be said"


@dataclass(frozen=True)
class _Check:
    """How a claim is checked: its words about each protocol, what is compared, how many parts must be met."""

    title: str
    quotes: Mapping[str, str]
    rule: str
    parts: Callable[[Comparison, Times], list[Part]]
    needed: int


def claims(table: Comparison, times: Times | None = None) -> list[Claim]:
    """Check what the paper claims about one protocol.

    Parameters
    ----------
    table
        The runs that say it.
    times
        Training times of interleaved methods; without them, pairs of runs are compared.
    """
    return [
        Claim(table.protocol, c.title, c.quotes[table.protocol], c.rule, tuple(c.parts(table, times or {})), c.needed)
        for c in _ALL
        if table.protocol in c.quotes
    ]


def _only_replay(table: Comparison, times: Times) -> list[Part]:
    works = [_beyond(table.cells["class", method], WORKS, above=True) for method in REPLAY]
    return works + [_beyond(table.cells["class", method], WORKS, above=False) for method in OTHERS]


def _works_well(table: Comparison, times: Times) -> list[Part]:
    return [_beyond(table.cells["class", method], WELL, above=True) for method in REPLAY]


def _distillation(table: Comparison, times: Times) -> list[Part]:
    cells = table.cells
    return [_difference(cells[scenario, "dgr-distill"], cells[scenario, "dgr"], 0.0) for scenario in SCENARIO_NAMES]


def _best(table: Comparison, times: Times) -> list[Part]:
    parts, cells = [], table.cells
    for scenario in SCENARIO_NAMES:
        others = [cells[scenario, method] for method in (*OTHERS, "xdg", "dgr") if (scenario, method) in cells]
        if all(cell.n for cell in others):
            best = max(others, key=lambda cell: cell.mean or 0.0)
            parts.append(_difference(cells[scenario, "rtf"], best, 0.0))
        else:
            missing = _missing(cells[scenario, "rtf"], *others)
            parts.append(Part("open", f"{SCENARIO_TITLES[scenario]}: no runs of {missing}"))
    return parts


def _no_loss(table: Comparison, times: Times) -> list[Part]:
    cells = table.cells
    return [_difference(cells[s, "rtf"], cells[s, "dgr-distill"], -NEGLIGIBLE) for s in SCENARIO_NAMES]


def _faster(table: Comparison, times: Times) -> list[Part]:
    return [_time_part(table, times, s, "rtf", "dgr-distill", 0.0, 1.0) for s in SCENARIO_NAMES]


def _almost_halved(table: Comparison, times: Times) -> list[Part]:
    return [_time_part(table, times, s, "rtf", "dgr-distill", 0.0, ALMOST_HALVED) for s in SCENARIO_NAMES]


def _twice(table: Comparison, times: Times) -> list[Part]:
    return [
        _time_part(table, times, scenario, method, "si", *ABOUT_TWICE)
        for scenario in SCENARIO_NAMES
        for method in ("dgr", "dgr-distill")
    ]


def _beyond(cell: Compared, threshold: float, *, above: bool) -> Part:
    """Compare a cell's mean with a threshold."""
    title = method_title(cell.method)
    if cell.mean is None:
        return Part("open", f"{title}: no runs")
    beyond = cell.mean - threshold if above else threshold - cell.mean
    error, degrees = cell.sem, cell.n - 1
    if error is None:  # one run: its spread is that of the published ones
        error, degrees = cell.published.sem * math.sqrt(RUNS_PER_CELL), RUNS_PER_CELL - 1
    outcome = _outcome(beyond, error, degrees)
    noise = student_margin(error, degrees)
    interval = f"[{cell.mean - noise:.2f}, {cell.mean + noise:.2f}]"
    text = f"{title}: {accuracy_text(cell.mean, cell.sem)} % {interval} ({_runs(cell.n)})"
    return Part(outcome, text + (f", too near {threshold:g} % to tell" if outcome == "open" else ""), cell.n)


def _difference(better: Compared, worse: Compared, margin: float) -> Part:
    """Say whether one method's mean exceeds another's by a margin, seed by seed: a seed gives both the same tasks."""
    title = SCENARIO_TITLES[better.scenario]
    if not better.n or not worse.n:
        return Part("open", f"{title}: no runs of {_missing(better, worse)}")
    pairs = [
        100 * (ours.average_accuracy - theirs.average_accuracy) for ours, theirs in _pairs(better.runs, worse.runs)
    ]
    if not pairs:
        return Part("open", f"{title}: no runs of both with the same seed")
    difference, error = mean_and_sem(pairs)
    degrees, of = len(pairs) - 1, _seeds(len(pairs))
    if error is None:  # one pair: its spread is that of the published runs
        of += "; ± is the spread of the published runs"
        error = math.hypot(better.published.sem, worse.published.sem) * math.sqrt(RUNS_PER_CELL)
        degrees = 2 * (RUNS_PER_CELL - 1)
    outcome = _outcome(difference - margin, error, degrees)
    versus = f"{method_title(better.method)} − {method_title(worse.method)}"
    noise = student_margin(error, degrees)
    interval = f"[{difference_text(difference - noise)}, {difference_text(difference + noise)}]"
    text = f"{title}: {versus} = {difference_text(difference)} ± {error:.2f} points {interval} ({of})"
    return Part(outcome, text + (", too near to tell" if outcome == "open" else ""), len(pairs))


def _outcome(beyond: float, error: float, degrees: int) -> Outcome:
    """Judge by how much something is beyond its threshold."""
    noise = student_margin(error, degrees)
    return "met" if beyond > noise else "not met" if beyond < -noise else "open"


def _time_part(table: Comparison, times: Times, scenario: str, ours: str, theirs: str, low: float, high: float) -> Part:
    """Say whether one method's training time over another's is between two numbers."""
    title = SCENARIO_TITLES[scenario]
    interleaved = [times.get((table.protocol, scenario, method), []) for method in (ours, theirs)]
    if all(interleaved):
        pairs = list(zip(*interleaved, strict=True))
        how = f"{len(pairs)} interleaved repeats"
    else:
        cells = [table.cells[scenario, method] for method in (ours, theirs)]
        if not all(cell.n for cell in cells):
            return Part("open", f"{title}: no runs of {_missing(*cells)}")
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


def _missing(*cells: Compared) -> str:
    return ", ".join(method_title(cell.method) for cell in cells if not cell.n)


def _runs(n: int) -> str:
    return "one run" if n == 1 else f"{n} runs"


def _seeds(n: int) -> str:
    return "one seed" if n == 1 else f"{n} seeds"


_CLEARLY = f"by more than the {100 * (1 - ALPHA):.0f} % interval"
_IDLE = (
    f"{_CLEARLY}; both methods interleaved in one process, or else runs that had their cores for "
    f"{100 * OWN_CORE:.0f} % of the time; on our processor, where the paper used a GPU"
)
_ALL = [
    _Check(
        "In Class-IL only generative replay works",
        {
            "split": "only the methods using generative replay retained good performance (above 90%) in the Class-IL "
            "scenario",
            "permuted": "Again only the methods using generative replay were successful in the Class-IL scenario",
        },
        f"DGR, DGR+distill and RtF are right more often than wrong (above {WORKS:g} %), and None, EWC, online EWC, SI "
        f"and LwF are not, {_CLEARLY}",
        _only_replay,
        len(REPLAY + OTHERS),
    ),
    _Check(
        f"Generative replay stays above {WELL:g} % in Class-IL",
        {"split": "retained good performance (above 90%) in the Class-IL scenario"},
        f"DGR, DGR+distill and RtF are above {WELL:g} %, {_CLEARLY}",
        _works_well,
        len(REPLAY),
    ),
    _Check(
        "DGR+distill outperforms DGR in every scenario",
        {
            "split": "DGR+distill outperformed DGR in all scenarios",
            "permuted": "DGR+distill again always outperformed DGR",
        },
        f"it is better in all three scenarios, {_CLEARLY}",
        _distillation,
        3,
    ),
    _Check(
        "RtF outperforms all methods but DGR+distill",
        dict.fromkeys(PROTOCOL_NAMES, "similar to DGR+distill—RtF comfortably outperformed all other tested methods"),
        f"it is better than the best of the others in all three scenarios, {_CLEARLY}",
        _best,
        3,
    ),
    _Check(
        "RtF loses nothing, or next to nothing, against DGR+distill",
        dict.fromkeys(
            PROTOCOL_NAMES, "substantially shortened training time with no or negligible loss in performance"
        ),
        f"it is less than {NEGLIGIBLE:g} point worse in all three scenarios, {_CLEARLY}",
        _no_loss,
        3,
    ),
    _Check(
        "RtF trains faster than DGR+distill",
        dict.fromkeys(PROTOCOL_NAMES, "this time was substantially reduced"),
        f"its training time over DGR+distill's is below 1 in all three scenarios, {_IDLE}",
        _faster,
        3,
    ),
    _Check(
        "RtF almost halves the training time of DGR+distill",
        dict.fromkeys(PROTOCOL_NAMES, "for most experiments almost halved"),
        f"the ratio is below {ALMOST_HALVED:g} in two of the three scenarios, {_IDLE}",
        _almost_halved,
        2,
    ),
    _Check(
        "DGR and DGR+distill train for about twice as long as SI",
        dict.fromkeys(PROTOCOL_NAMES, "the training time for DGR and DGR+distill was roughly twice as long as for SI"),
        f"each ratio is between {ABOUT_TWICE[0]:g} and {ABOUT_TWICE[1]:g} in all three scenarios, {_IDLE}",
        _twice,
        6,
    ),
]
