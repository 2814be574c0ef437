"""The paper's claims as a checked list: what our runs say about each, with the numbers that say it.

A claim is made of parts, one per scenario or method. Each part is met, not met, or open, which means that there are no
runs for it or that the difference is within two standard errors. A claim holds if enough of its parts are met, does not
hold if too many are not, and otherwise nothing can be said.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from relive.experiments.paper import RUNS_PER_CELL
from relive.experiments.spec import SCENARIO_NAMES
from relive.report.comparison import Compared, Comparison, is_quiet
from relive.report.style import METHOD_TITLES, SCENARIO_TITLES
from relive.report.tables import accuracy_text, difference_text

Outcome = Literal["met", "not met", "open"]
Status = Literal["holds", "does not hold", "cannot be said"]

REPLAY = ("dgr", "dgr-distill", "rtf")
OTHERS = ("none", "ewc", "online-ewc", "si", "lwf")
WORKS, FAILS = 90.0, 50.0  # percent: "good performance (above 90%)"; a method that fails is wrong more often than right
ALMOST_HALVED = 0.6
NEGLIGIBLE = 1.0  # point
STANDARD_ERRORS = 2.0

Cells = Mapping[tuple[str, str], Compared]


@dataclass(frozen=True)
class Part:
    """One thing that a claim says, and what came out."""

    outcome: Outcome
    text: str


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
        return "does not hold" if len(outcomes) - outcomes.count("not met") < self.needed else "cannot be said"


def claims(table: Comparison) -> list[Claim]:
    """Check the paper's claims about one protocol."""
    return [Claim(table.protocol, *words, tuple(parts(table.cells)), needed) for words, parts, needed in _CHECKS]


def _only_replay(cells: Cells) -> list[Part]:
    works = [_beyond(cells["class", method], WORKS, above=True) for method in REPLAY]
    return works + [_beyond(cells["class", method], FAILS, above=False) for method in OTHERS]


def _distillation(cells: Cells) -> list[Part]:
    return [_difference(cells[scenario, "dgr-distill"], cells[scenario, "dgr"], 0.0) for scenario in SCENARIO_NAMES]


def _no_loss(cells: Cells) -> list[Part]:
    return [_difference(cells[s, "rtf"], cells[s, "dgr-distill"], -NEGLIGIBLE) for s in SCENARIO_NAMES]


def _faster(cells: Cells) -> list[Part]:
    return [_time_part(cells, scenario, 1.0) for scenario in SCENARIO_NAMES]


def _almost_halved(cells: Cells) -> list[Part]:
    return [_time_part(cells, scenario, ALMOST_HALVED) for scenario in SCENARIO_NAMES]


def _beyond(cell: Compared, threshold: float, *, above: bool) -> Part:
    """Compare a cell's mean with a threshold."""
    title = METHOD_TITLES[cell.method]
    if cell.mean is None:
        return Part("open", f"{title}: no runs")
    beyond = cell.mean - threshold if above else threshold - cell.mean
    outcome = _outcome(beyond, _standard_error(cell))
    text = f"{title}: {accuracy_text(cell.mean, cell.sem)} % ({_runs(cell.n)})"
    return Part(outcome, text + (f", too near {threshold:g} % to tell" if outcome == "open" else ""))


def _difference(better: Compared, worse: Compared, margin: float) -> Part:
    """Say whether one method's mean exceeds another's by a margin."""
    title = SCENARIO_TITLES[better.scenario]
    if better.mean is None or worse.mean is None:
        return Part("open", f"{title}: no runs of {_missing(better, worse)}")
    difference = better.mean - worse.mean
    error = math.hypot(_standard_error(better), _standard_error(worse))
    outcome = _outcome(difference - margin, error)
    text = (
        f"{title}: {better.mean:.2f} − {worse.mean:.2f} = {difference_text(difference)} ± {error:.2f} points "
        f"({_pair(better.n, worse.n)})"
    )
    return Part(outcome, text + (", too near to tell" if outcome == "open" else ""))


def _outcome(beyond: float, error: float) -> Outcome:
    """Judge by how much something is beyond its threshold."""
    noise = STANDARD_ERRORS * error
    return "met" if beyond > noise else "not met" if beyond < -noise else "open"


def _standard_error(cell: Compared) -> float:
    """Return a mean's standard error; a single run's is taken from the spread of the published runs."""
    return cell.published.sem * math.sqrt(RUNS_PER_CELL) if cell.sem is None else cell.sem


def _time_part(cells: Cells, scenario: str, at_most: float) -> Part:
    """Compare the training times of RtF and DGR+distill; times from a busy machine are told, but decide nothing."""
    rtf, dgr = cells[scenario, "rtf"], cells[scenario, "dgr-distill"]
    title = SCENARIO_TITLES[scenario]
    if not rtf.n or not dgr.n:
        return Part("open", f"{title}: no runs of {_missing(rtf, dgr)}")
    quiet = [[run for run in cell.runs if is_quiet(run)] for cell in (rtf, dgr)]
    measured = quiet if all(quiet) else [list(rtf.runs), list(dgr.runs)]
    ours, theirs = (statistics.fmean(run.train_seconds for run in runs) for runs in measured)
    ratio = ours / theirs
    text = f"{title}: {ours:.0f} s / {theirs:.0f} s = {ratio:.2f} ({_pair(*map(len, measured))})"
    if not all(quiet):
        return Part("open", text + ", measured next to other work")
    return Part("met" if ratio <= at_most else "not met", text)


def _missing(*cells: Compared) -> str:
    return " and ".join(METHOD_TITLES[cell.method] for cell in cells if not cell.n)


def _runs(n: int) -> str:
    return "one run" if n == 1 else f"{n} runs"


def _pair(n: int, m: int) -> str:
    return f"{_runs(n)} each" if n == m else f"{n} and {m} runs"


_IDLE = "from runs on an otherwise idle machine"
# (title, the paper's words, when we say that it holds), what is compared, how many of the parts must be met
_CHECKS: list[tuple[tuple[str, str, str], Callable[[Cells], list[Part]], int]] = [
    (
        (
            "In Class-IL only generative replay works",
            "only the methods using generative replay retained good performance (above 90%) in the Class-IL scenario",
            f"DGR, DGR+distill and RtF are above {WORKS:g} % and all others below {FAILS:g} %, by two standard errors",
        ),
        _only_replay,
        len(REPLAY + OTHERS),
    ),
    (
        (
            "DGR+distill outperforms DGR in every scenario",
            "DGR+distill outperformed DGR in all scenarios",
            "its mean is higher in all three scenarios, by two standard errors",
        ),
        _distillation,
        3,
    ),
    (
        (
            "RtF loses nothing, or next to nothing, against DGR+distill",
            "substantially shortened training time with no or negligible loss in performance",
            f"its mean is less than {NEGLIGIBLE:g} point lower in all three scenarios, by two standard errors",
        ),
        _no_loss,
        3,
    ),
    (
        (
            "RtF trains faster than DGR+distill",
            "this time was substantially reduced",
            f"its mean training time over DGR+distill's is below 1 in all three scenarios, {_IDLE}",
        ),
        _faster,
        3,
    ),
    (
        (
            "RtF almost halves the training time of DGR+distill",
            "for most experiments almost halved",
            f"the ratio is at most {ALMOST_HALVED:g} in two of the three scenarios, {_IDLE}",
        ),
        _almost_halved,
        2,
    ),
]
