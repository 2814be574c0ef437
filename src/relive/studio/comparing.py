"""Finished runs side by side, and next to the paper's numbers, as plain values: the report's tables for the page."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relive._util.errors import ReliveError
from relive.experiments.compare import Entry, SideBySide, side_by_side
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.experiments.store import Store
from relive.paper.comparison import METHODS, Compared, Comparison
from relive.paper.published import PROTOCOL_NAMES
from relive.paper.tuned import best, searched, tuned_of
from relive.report import own_runs, style, tables
from relive.report.page import Report, as_one_file, read_explanations
from relive.report.times import Times, read_times
from relive.studio.commands import as_command


def chosen(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return any runs side by side; those that learned the same tasks are compared."""
    return [_group(group) for group in side_by_side(results)]


class Comparer:
    """Compares the finished runs of a store, and reads them again only when they change.

    Parameters
    ----------
    store
        Where they are.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._kept: tuple[object, dict[str, Any]] = (None, {})

    def everything(self, version: object) -> dict[str, Any]:
        """Return all comparisons, computed again only when ``version`` or the training times change."""
        with self._lock:
            times, wrong = self._times()
            if self._kept[0] != (version, times, wrong):
                self._kept = (version, times, wrong), self._compared(times, wrong)
            return self._kept[1]

    def report(self, results: Sequence[RunResult] | None, data_dir: Path | None) -> str:
        """Return the page that ``relive report`` writes, of all finished runs or of some."""
        with self._lock:
            found, damaged = self.store.scan() if results is None else (results, [])
            explanations = read_explanations(self.store.root)
            told = [str(error) for error in damaged]
            times, wrong = self._times()
            told += wrong
            return as_one_file(Report(self.store.root, found, tuned_of(found), explanations, told, times), data_dir)

    def _times(self) -> tuple[Times, list[str]]:
        """Return the training times of the first directory of the store that has any, and what is wrong with others."""
        wrong = list[str]()
        for root in (self.store.root, *self.store.also):
            try:
                if times := read_times(root):
                    return times, wrong
            except ReliveError as error:
                wrong.append(str(error))
        return {}, wrong

    def _compared(self, times: Times, wrong: list[str]) -> dict[str, Any]:
        results, damaged = self.store.scan()
        told = [*map(str, damaged), *wrong]
        report = Report(Path(), results, tuned_of(results), {}, told, times)
        return {
            "groups": [_group(group) for group in report.own],
            "tables": [_table(table) for table in report.tables],
            "searches": _searches(results),
            "claims": [
                {
                    "protocol": style.PROTOCOL_TITLES[c.protocol],
                    "title": f"{c.title} ({c.basis})" if c.basis else c.title,
                    "status": c.status,
                }
                for c in report.claims
            ],
            "damaged": list(report.damaged),
        }


def _group(group: SideBySide) -> dict[str, Any]:
    return {
        "title": group.title,
        "scenarios": [{"name": name, "title": style.SCENARIO_TITLES[name]} for name in group.scenarios],
        "headings": own_runs.HEADINGS,
        "entries": [_entry(entry, group) for entry in group.entries],
        "pairs": [
            {
                "scenario": scenario,
                "cells": [
                    own_runs.versus(pair, group),
                    own_runs.paired_text(pair),
                    str(pair.n),
                    own_runs.p_cell(pair.p),
                    own_runs.p_cell(pair.p_holm),
                ],
            }
            for scenario in group.scenarios
            for pair in group.pairs(scenario)
        ],
        "rules": own_runs.rules(group),
    }


def _entry(entry: Entry, group: SideBySide) -> dict[str, Any]:
    return {
        "scenario": entry.scenario,
        "title": own_runs.label(entry, group),
        "colour": style.method_colour(entry.method),
        "cells": own_runs.row(entry),
        "runs": [
            {"name": run.spec.name, "seed": run.spec.seed, "x": run.train_seconds, "y": 100 * run.average_accuracy}
            for run in entry.runs
        ],
    }


def _table(table: Comparison) -> dict[str, Any]:
    return {
        "title": tables.title(table),
        "short": tables.short_title(table),
        "scenarios": [{"name": name, "title": style.SCENARIO_TITLES[name]} for name in SCENARIO_NAMES],
        "rows": [
            {
                "title": style.method_title(method),
                "bound": style.method_bound(method),
                "cells": [_cell(table.cells.get((scenario, method))) for scenario in SCENARIO_NAMES],
            }
            for method in METHODS
        ],
        "command": as_command(["paper", "--protocol", table.protocol, *table.settings.options]),
        "rules": tables.rules(table),
        "notes": tables.settings_notes(table),
        "runs": [
            {
                "scenario": cell.scenario,
                "title": style.method_title(cell.method),
                "colour": style.method_colour(cell.method),
                "name": run.spec.name,
                "seed": run.spec.seed,
                "x": run.train_seconds,
                "y": 100 * run.average_accuracy,
            }
            for cell in table.cells.values()
            for run in cell.runs
        ],
    }


def _cell(cell: Compared | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "ours": tables.accuracy_text(cell.mean, cell.sem) if cell.n else None,
        "n": cell.n,
        "paper": tables.accuracy_text(*cell.published),
        "difference": tables.difference_text(cell.difference),
        "verdict": cell.verdict,
        "said": tables.verdict_text(cell),
    }


def _searches(results: list[RunResult]) -> list[dict[str, Any]]:
    """Return every grid search: the settings tried, and the accuracy of each."""
    found = []
    for protocol in PROTOCOL_NAMES:
        for (scenario, method), runs in searched(results, protocol).items():
            chosen = best(runs)
            tried = sorted(runs, key=lambda run: sorted(run.spec.settings.items()))
            words = ["grid", "--protocol", protocol, "--scenario", scenario, "--method", method]
            found.append(
                {
                    "command": as_command(words),
                    "runs": [{"name": run.spec.name} for run in tried],
                    "title": f"{style.method_title(method)}, {style.PROTOCOL_TITLES[protocol]}, "
                    f"{style.SCENARIO_TITLES[scenario]}",
                    "colour": style.method_colour(method),
                    "tried": [
                        {
                            "settings": style.settings_text(run.spec.settings, method),
                            "accuracy": 100 * run.average_accuracy,
                            "best": run is chosen,
                        }
                        for run in tried
                    ],
                }
            )
    return found
