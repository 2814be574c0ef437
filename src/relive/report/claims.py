"""The paper's claims as a checked list: what our runs say about each, with the numbers that say it.

A claim is made of parts, one per scenario or method, which are met, not met, or open. A claim holds if enough of them
are met, and does not hold if too many are not. Otherwise its difference is too small to tell, if what is open has as
many runs as the paper's cells, and if it has fewer, they are too few to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from relive._util.statistics import ALPHA
from relive.experiments.compare import OWN_CORE, TESTED_RUNS
from relive.experiments.spec import SCENARIO_NAMES
from relive.paper.comparison import Comparison
from relive.paper.published import PROTOCOL_NAMES, RUNS_PER_CELL
from relive.report.parts import Part, beyond, difference, missing, time_ratio
from relive.report.style import SCENARIO_TITLES
from relive.report.times import Times

Status = Literal["holds", "does not hold", "too small to tell", "too few runs to tell"]

REPLAY = ("dgr", "dgr-distill", "rtf")
OTHERS = ("none", "ewc", "online-ewc", "si", "lwf")
WORKS, WELL = 50.0, 90.0  # percent: right more often than wrong; "good performance (above 90%)"
ALMOST_HALVED = 0.6
ABOUT_TWICE = (1.5, 2.5)
NEGLIGIBLE = 1.0  # point


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
        return "too small to tell" if enough else "too few runs to tell"

    @property
    def basis(self) -> str:
        """A warning if a decided claim has parts that rest on too few runs for a spread of their own, else empty."""
        if self.status not in ("holds", "does not hold"):
            return ""
        fewest = min((part.n for part in self.parts if part.n), default=TESTED_RUNS)
        return f"fewer than {TESTED_RUNS} seeds" if fewest < TESTED_RUNS else ""


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


def _si_helps(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("si",), "none", ("task", "domain"))


def _regularisation_helps(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("ewc", "online-ewc", "si"), "none", ("task", "domain"))


def _lwf_beats_si(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("lwf",), "si", SCENARIO_NAMES)


def _lwf_fails(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("none",), "lwf", ("task", "domain"))


def _ewc_is_below_replay(table: Comparison, times: Times) -> list[Part]:
    cells = table.cells
    return [
        difference(cells[scenario, "dgr-distill"], cells[scenario, method], NEGLIGIBLE)
        for scenario in SCENARIO_NAMES
        for method in ("ewc", "online-ewc")
    ]


def _si_beats_xdg(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("si",), "xdg", ("task",))


def _only_replay(table: Comparison, times: Times) -> list[Part]:
    works = [beyond(table.cells["class", method], WORKS, above=True) for method in REPLAY]
    return works + [beyond(table.cells["class", method], WORKS, above=False) for method in OTHERS]


def _works_well(table: Comparison, times: Times) -> list[Part]:
    return [beyond(table.cells["class", method], WELL, above=True) for method in REPLAY]


def _distillation(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("dgr-distill",), "dgr", SCENARIO_NAMES)


def _best(table: Comparison, times: Times) -> list[Part]:
    parts, cells = [], table.cells
    for scenario in SCENARIO_NAMES:
        others = [cells[scenario, method] for method in (*OTHERS, "xdg", "dgr") if (scenario, method) in cells]
        if all(cell.n for cell in others):
            best = max(others, key=lambda cell: cell.mean or 0.0)
            parts.append(difference(cells[scenario, "rtf"], best, 0.0))
        else:
            titles = missing(cells[scenario, "rtf"], *others)
            parts.append(Part("open", f"{SCENARIO_TITLES[scenario]}: no runs of {titles}"))
    return parts


def _feedback_is_better(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("rtf",), "dgr-distill", SCENARIO_NAMES)


def _feedback_is_worse(table: Comparison, times: Times) -> list[Part]:
    return _better(table, ("dgr-distill",), "rtf", SCENARIO_NAMES)


def _no_loss(table: Comparison, times: Times) -> list[Part]:
    cells = table.cells
    return [difference(cells[s, "rtf"], cells[s, "dgr-distill"], -NEGLIGIBLE) for s in SCENARIO_NAMES]


def _faster(table: Comparison, times: Times) -> list[Part]:
    return [time_ratio(table, times, s, "rtf", "dgr-distill", 0.0, 1.0) for s in SCENARIO_NAMES]


def _almost_halved(table: Comparison, times: Times) -> list[Part]:
    return [time_ratio(table, times, s, "rtf", "dgr-distill", 0.0, ALMOST_HALVED) for s in SCENARIO_NAMES]


def _twice(table: Comparison, times: Times) -> list[Part]:
    return [
        time_ratio(table, times, scenario, method, "si", *ABOUT_TWICE)
        for scenario in SCENARIO_NAMES
        for method in ("dgr", "dgr-distill")
    ]


def _better(table: Comparison, methods: Sequence[str], than: str, scenarios: Sequence[str]) -> list[Part]:
    """Compare each of some methods with another one, in each of some scenarios."""
    cells = table.cells
    return [difference(cells[scenario, m], cells[scenario, than], 0.0) for scenario in scenarios for m in methods]


_CLEARLY = f"by more than the {100 * (1 - ALPHA):.0f} % interval"
_IDLE = (
    f"{_CLEARLY}; both methods interleaved in one process, or else runs that had their cores for "
    f"{100 * OWN_CORE:.0f} % of the time; on our processor, where the paper used a GPU"
)
_ALL = [
    _Check(
        "SI reduces forgetting in Task-IL and Domain-IL",
        {
            "split": "it reduced catastrophic forgetting in the Task-IL and Domain-IL scenarios",
        },
        f"it is better than None in both, {_CLEARLY}",
        _si_helps,
        2,
    ),
    _Check(
        "EWC, online EWC and SI reduce forgetting in Task-IL and Domain-IL",
        {
            "permuted": "they performed reasonably well in the Task-IL and Domain-IL scenarios",
        },
        f"each is better than None in both, {_CLEARLY}",
        _regularisation_helps,
        6,
    ),
    _Check(
        "EWC with a large λ stays substantially below DGR+distill",
        {
            "split": "comparable to that of SI, but still substantially below that of DGR+distill",
        },
        f"EWC and online EWC are more than {NEGLIGIBLE:g} point worse in all three scenarios, {_CLEARLY}",
        _ewc_is_below_replay,
        6,
    ),
    _Check(
        "LwF prevents forgetting better than SI",
        {
            "split": "prevented the forgetting of previous tasks better than SI",
        },
        f"it is better in all three scenarios, {_CLEARLY}",
        _lwf_beats_si,
        3,
    ),
    _Check(
        "LwF does not work",
        {
            "permuted": "this method did not work with the permuted MNIST protocol",
        },
        f"it is worse than None in Task-IL and Domain-IL, {_CLEARLY}",
        _lwf_fails,
        2,
    ),
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
        "SI outperforms XdG in Task-IL",
        dict.fromkeys(PROTOCOL_NAMES, "on both it was outperformed by SI"),
        f"it is better, {_CLEARLY}",
        _si_beats_xdg,
        1,
    ),
    _Check(
        "RtF slightly outperforms DGR+distill",
        {
            "split": "RtF slightly outperformed DGR+distill on all experiments with the split MNIST task protocol",
        },
        f"it is better in all three scenarios, {_CLEARLY}",
        _feedback_is_better,
        3,
    ),
    _Check(
        "DGR+distill slightly outperforms RtF",
        {
            "permuted": "it performed slightly less than DGR+distill on the experiments with the permuted MNIST",
        },
        f"it is better in all three scenarios, {_CLEARLY}",
        _feedback_is_worse,
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
