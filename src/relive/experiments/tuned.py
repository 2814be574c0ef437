"""The settings that grid searches chose, kept by cell in the runs directory; no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from relive.experiments.spec import RunResult
from relive.experiments.store import read_signed, signed, to_bytes
from relive.files import write_atomic

TUNED = "tuned.json"
Cell = tuple[str, str, str]  # protocol, scenario, method
Tuned = dict[Cell, dict[str, float]]


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
