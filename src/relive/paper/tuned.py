"""Which settings the runs of a table have: defaults, those chosen by grid searches, a later report's; no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from relive._util.fidelity import AS_RUN
from relive.experiments.spec import RunResult, RunSpec
from relive.paper.published import (
    GRID_SEED,
    GRIDS,
    LATER_REPORT,
    PAPER_DATASET,
    PRESETS,
    PROTOCOL_NAMES,
    preset_settings,
)

CellKey = tuple[str, str, str]  # protocol, scenario, method
Tuned = dict[CellKey, dict[str, float]]


@dataclass(frozen=True)
class Settings:
    """The settings that the runs of a table have.

    Attributes
    ----------
    name
        ``"default"``, ``"tuned"`` or ``"later"``: the command-line option is ``--tuned`` or ``--later``.
    title, short
        For the title of a table, and for lists of tables.
    cells
        The settings of each cell, on top of the defaults; None if they are the defaults.
    """

    name: str
    title: str
    short: str
    cells: Tuned | None

    @property
    def options(self) -> list[str]:
        """The command-line options that choose them."""
        return [] if self.cells is None else [f"--{self.name}"]


DEFAULTS = Settings("default", "the 2018 code's default settings", "", None)
LATER = Settings("later", "settings of the authors' later report", "later report", LATER_REPORT)


def searched_settings(tuned: Tuned) -> Settings:
    """Return the settings that grid searches chose."""
    return Settings("tuned", "settings chosen by grid search", "tuned", tuned)


def as_in_paper(spec: RunSpec, settings: Mapping[str, float]) -> bool:
    """Return whether a spec is the paper's experiment with these settings, for any seed and number of threads."""
    return spec.protocol in PRESETS and spec == RunSpec(
        protocol=spec.protocol,
        scenario=spec.scenario,
        method=spec.method,
        dataset=PAPER_DATASET,
        seed=spec.seed,
        settings=settings,
        fidelity=AS_RUN,
        threads=spec.threads,
        **PRESETS[spec.protocol],
    )


def searched(results: Iterable[RunResult], protocol: str) -> dict[tuple[str, str], list[RunResult]]:
    """Return the runs of a protocol's grid searches, by scenario and method."""
    found = defaultdict(list)
    for result in results:
        spec = result.spec
        grid = GRIDS.get((protocol, spec.method))
        if grid is None or spec.protocol != protocol or spec.seed != GRID_SEED:
            continue
        if spec.threads != 1 or any(spec.settings.get(name) not in values for name, values in grid.items()):
            continue
        tried = preset_settings(protocol, spec.method) | {name: spec.settings[name] for name in grid}
        if as_in_paper(spec, tried):
            found[spec.scenario, spec.method].append(result)
    return dict(found)


def best(results: Iterable[RunResult]) -> RunResult:
    """Return the run with the highest average accuracy; of equals, the one with the smallest settings."""
    return min(results, key=lambda r: (-r.average_accuracy, sorted(r.spec.settings.items())))


def tuned_of(results: Iterable[RunResult]) -> Tuned:
    """Return the settings chosen by each complete search among the results; incomplete ones choose nothing."""
    results = list(results)
    tuned = Tuned()
    for protocol in PROTOCOL_NAMES:
        for (scenario, method), runs in searched(results, protocol).items():
            grid = GRIDS[protocol, method]
            tried = {tuple(run.spec.settings[name] for name in grid) for run in runs}
            if tried >= set(product(*grid.values())):
                tuned[protocol, scenario, method] = dict(best(runs).spec.settings)
    return tuned
