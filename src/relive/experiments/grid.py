"""Grid searches as in the paper's appendix C: one run per value, judged on the test sets; the best is kept by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from relive.errors import InputError
from relive.experiments.paper import GRID_SEED, GRIDS
from relive.experiments.spec import RunResult, RunSpec
from relive.experiments.store import read_signed, signed, to_bytes
from relive.experiments.sweep import specs_of
from relive.files import write_atomic

TUNED = "tuned.json"
Cell = tuple[str, str, str]  # protocol, scenario, method
Tuned = dict[Cell, dict[str, float]]


def grid_specs(protocol: str, scenario: str, method: str) -> list[RunSpec]:
    """Return the runs of one grid search."""
    if (protocol, method) not in GRIDS:
        searched = sorted({name for _, name in GRIDS})
        raise InputError(f"{method} has no hyperparameter to search; these have: {', '.join(searched)}")
    return specs_of([protocol], [scenario], [method], [GRID_SEED], GRIDS[protocol, method])


def best(results: Iterable[RunResult]) -> RunResult:
    """Return the run with the highest average accuracy; of equals, the one with the smallest settings."""
    return min(results, key=lambda r: (-r.average_accuracy, sorted(r.spec.settings.items())))


def read_tuned(root: Path) -> Tuned:
    """Return the chosen settings of every cell that was searched in this runs directory."""
    path = root / TUNED
    if not path.exists():
        return {}
    tuned: Tuned = {}
    for name, settings in read_signed(path).items():
        protocol, scenario, method = name.split("/")
        tuned[protocol, scenario, method] = settings
    return tuned


def write_tuned(root: Path, chosen: Mapping[Cell, Mapping[str, float]]) -> None:
    """Keep the chosen settings of some cells, beside those that are there already."""
    tuned = read_tuned(root) | {cell: dict(settings) for cell, settings in chosen.items()}
    values = {"/".join(cell): settings for cell, settings in sorted(tuned.items())}
    write_atomic(root / TUNED, to_bytes(signed(values)))
