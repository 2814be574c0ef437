"""The report: one HTML file that opens from disk with no network, and its figures as files next to it."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from relive._util.errors import InputError, unknown
from relive._util.fidelity import AS_RUN, name_of
from relive._util.files import write_atomic
from relive._util.registry import short_name
from relive.experiments.compare import SideBySide, core_share, is_quiet, side_by_side
from relive.experiments.spec import SCENARIO_NAMES, RunResult, RunSpec
from relive.paper.comparison import METHODS, Compared, Comparison, Verdict, compare, preferred
from relive.paper.published import (
    GRID_SEED,
    GRIDS,
    IN_ORDER,
    PRESETS,
    PROTOCOL_NAMES,
    PUBLISHED,
    preset_settings,
)
from relive.paper.tuned import DEFAULTS, LATER, Tuned, as_in_paper, searched, searched_settings
from relive.report import own_runs, style, tables
from relive.report.claims import Claim, claims
from relive.report.figures import save, settle, to_bytes
from relive.report.gallery import Drawn, examples, gallery, own_gallery
from relive.report.times import Times

EXPLANATIONS = "explanations.json"
FIGURES = "figures"
_VERDICTS: tuple[Verdict, ...] = ("agrees", "in range", "inconclusive", "undecided", "higher", "lower")


@dataclass(frozen=True)
class Report:
    """The contents of a report.

    Attributes
    ----------
    root
        The runs directory.
    results
        All intact results in it.
    tuned
        The settings that grid searches chose.
    explanations
        Why a cell deviates from the paper, by "protocol/scenario/method", with "/tuned" or "/later" appended for the
        tables with such settings.
    damaged
        What could not be read, and why.
    times
        Training times of interleaved methods.
    """

    root: Path
    results: Sequence[RunResult]
    tuned: Tuned
    explanations: Mapping[str, str]
    damaged: Sequence[str] = ()
    times: Times = field(default_factory=dict)

    @cached_property
    def tables(self) -> list[Comparison]:
        """The comparisons to show: of each protocol with runs, and those with other settings if there are any."""
        shown = []
        for protocol in self.protocols:
            shown.append(compare(self.results, protocol))
            if any(cell[0] == protocol for cell in self.tuned):
                shown.append(self._searched[protocol])
            if self._has_later(protocol):
                shown.append(self._later[protocol])
        return shown

    @cached_property
    def _searched(self) -> dict[str, Comparison]:
        return {name: compare(self.results, name, searched_settings(self.tuned)) for name in PROTOCOL_NAMES}

    @cached_property
    def _later(self) -> dict[str, Comparison]:
        return {name: compare(self.results, name, LATER) for name in PROTOCOL_NAMES}

    def _has_later(self, protocol: str) -> bool:
        """Return whether there are runs with settings of the later report that are not the defaults."""
        cells = self._later[protocol].cells.values()
        return any(cell.n and cell.settings != preset_settings(protocol, cell.method) for cell in cells)

    @cached_property
    def protocols(self) -> list[str]:
        """The paper's protocols with runs, or with settings chosen by a search."""
        tables = {name: compare(self.results, name) for name in PROTOCOL_NAMES}
        others = {protocol for protocol, _, _ in self.tuned} | set(filter(self._has_later, PROTOCOL_NAMES))
        return [name for name in tables if name in others or any(cell.n for cell in tables[name].cells.values())]

    @cached_property
    def own(self) -> list[SideBySide]:
        """The runs that are in none of the paper's tables, grouped by what can be compared."""
        return side_by_side(
            run
            for run in self.results
            if run.spec.protocol not in self.protocols or not as_in_paper(run.spec, run.spec.settings)
        )

    @cached_property
    def best(self) -> list[Comparison]:
        """For each protocol the runs of figures and claims: with searched settings or those of the later report."""
        return [
            preferred(compare(self.results, name), self._later[name], self._searched[name]) for name in self.protocols
        ]

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims, checked."""
        return [claim for table in self.best for claim in claims(table, self.times)]

    def figures(self, data_dir: Path | None = None) -> list[Drawn]:
        """Draw everything."""
        drawn = [figure for i, group in enumerate(self.own) for figure in own_gallery(group, i + 1)]
        drawn += examples(data_dir) if self.best else []
        for table in self.best:
            drawn += gallery(table, self.results, self.tuned, self.root)
        return drawn


def read_explanations(root: Path) -> dict[str, str]:
    """Return the explanations of deviations in a runs directory, by cell.

    Raises
    ------
    InputError
        If the file is not a JSON object of strings, or names a cell that the paper does not have.
    """
    path = root / EXPLANATIONS
    if not path.exists():
        return {}
    try:
        texts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InputError(f'{path} must be a JSON object of strings, e.g. {{"split/task/ewc": "…"}}')
    known = ["/".join(cell) for cell in PUBLISHED]
    for name in texts:
        if re.sub("/(tuned|later)$", "", name) not in known:
            raise unknown(f"cell in {path}", name, known)
    return texts


def write(report: Report, output: Path, data_dir: Path | None = None) -> list[Path]:
    """Write the page and, in a folder next to it, its figures; return the files written, the page first."""
    folder = output.parent / FIGURES
    drawn = report.figures(data_dir)
    for item in drawn:
        save(item.figure, folder, item.name)
    shown = {item.name: base64.b64encode((folder / f"{item.name}.svg").read_bytes()).decode() for item in drawn}
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, drawn, shown).encode())
    return [output, *(folder / f"{item.name}.{kind}" for item in drawn for kind in ("svg", "png"))]


def as_one_file(report: Report, data_dir: Path | None = None) -> str:
    """Return the page alone, with its figures in it."""
    drawn = report.figures(data_dir)
    for item in drawn:
        settle(item.figure)
    return render(report, drawn, {d.name: base64.b64encode(to_bytes(d.figure, "svg")).decode() for d in drawn})


def render(report: Report, drawn: Sequence[Drawn], svg: Mapping[str, str]) -> str:
    """Return the page as text; everything in it that comes from a file is escaped."""
    templates = Environment(
        loader=PackageLoader("relive.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "accuracy": lambda cell: tables.accuracy_text(cell.mean, cell.sem),
        "published": lambda cell: tables.accuracy_text(*cell.published),
        "difference": tables.difference_text,
        "p": tables.p_text,
        "verdict": tables.verdict_text,
        "interval": tables.interval_text,
        "table_title": tables.title,
        "rules": tables.rules,
        "settings_notes": tables.settings_notes,
        "with_code": _with_code,
        "own_label": own_runs.label,
        "own_row": own_runs.row,
        "own_versus": own_runs.versus,
        "own_difference": own_runs.paired_text,
        "own_p": own_runs.p_cell,
        "own_rules": own_runs.rules,
        "identity": id,
    }
    names = style.method_names(run.spec.method for run in report.results)
    return templates.get_template("page.html").render(
        report=report,
        style=style,
        methods=METHODS,
        words=style.WORDS,
        interval_name=tables.INTERVAL,
        own_headings=own_runs.HEADINGS,
        keepers=[name for method, name in names.items() if style.keeps_data(method)],
        scenarios=SCENARIO_NAMES,
        presets=PRESETS,
        fidelity=vars(AS_RUN),
        relive_version=version("relive"),
        summaries=[_summary(table) for table in report.tables],
        departures={id(table): _departures(table, report.explanations) for table in report.tables},
        claim_counts=Counter(claim.status for claim in report.claims),
        figures=[_figure(item, svg[item.name]) for item in drawn],
        versions=_versions(report.results),
        runs=_rows(report),
    )


def _with_code(text: str) -> Markup:
    """Return a text with backticked parts as code, whose words do not break at hyphens.

    >>> _with_code("so <b>: `run --set c=5`, and ` alone")
    Markup('so &lt;b&gt;: <code><span>run</span> <span>--set</span> <span>c=5</span></code>, and ` alone')
    """
    parts = [escape(part) for part in re.split("`([^`]+)`", text)]  # text and code in turns
    word = Markup("<span>{}</span>")
    parts[1::2] = [
        Markup("<code>{}</code>").format(Markup(" ").join(map(word.format, code.split()))) for code in parts[1::2]
    ]
    return Markup("").join(parts)


def _summary(table: Comparison) -> dict[str, Any]:
    cells = list(table.cells.values())
    if table.settings is not DEFAULTS:  # the others are the runs of the first table
        cells = [cell for cell in cells if (table.protocol, cell.method) in GRIDS]
    verdicts = Counter(cell.verdict for cell in cells)
    return {
        "title": tables.short_title(table),
        "anchor": anchor(table),
        "runs": sum(cell.n for cell in cells),
        "cells": len(cells),
        "what": "cells" if table.settings is DEFAULTS else "cells with settings to choose",
        "missing": verdicts["missing"],
        "verdicts": [(word, verdicts[word]) for word in _VERDICTS],
    }


def anchor(table: Comparison) -> str:
    """Return a table's anchor on the page."""
    return f"table-{table.protocol}" + ("" if table.settings is DEFAULTS else f"-{table.settings.name}")


def _departures(table: Comparison, explanations: Mapping[str, str]) -> list[tuple[Compared, str]]:
    """Return the cells that differ from the paper, and others with an explanation, each with its explanation if any."""
    suffix = "" if table.settings is DEFAULTS else f"/{table.settings.name}"
    texts = [
        (cell, explanations.get(f"{table.protocol}/{cell.scenario}/{cell.method}{suffix}", ""))
        for cell in table.cells.values()
    ]
    return [(cell, text) for cell, text in texts if cell.verdict in ("higher", "lower") or (text and cell.n)]


def _figure(item: Drawn, svg: str) -> dict[str, Any]:
    width, height = (round(96 * inches) for inches in item.figure.get_size_inches())
    return {"item": item, "svg": svg, "width": width, "height": height, "file": f"{FIGURES}/{item.name}"}


def _versions(results: Iterable[RunResult]) -> list[dict[str, Any]]:
    """Return each set of versions that made results, the most used first."""
    sets = Counter(tuple(sorted(result.versions.items())) for result in results)
    return [{"items": dict(items), "runs": n} for items, n in sets.most_common()]


def _rows(report: Report) -> list[dict[str, Any]]:
    """Return a row for every run, with what it is used for."""
    uses: dict[int, list[str]] = {}
    names = style.method_names(run.spec.method for run in report.results)
    tried = {id(run) for name in PROTOCOL_NAMES for runs in searched(report.results, name).values() for run in runs}
    for table in report.tables:
        for cell in table.cells.values():
            for run in cell.runs:
                uses.setdefault(id(run), []).append(f"{table.settings.short} table".strip())
    for group in report.own:
        for entry in group.entries:
            uses.update({id(run): ["your runs"] for run in entry.runs})
    return [
        {
            "run": run,
            "use": ", ".join(dict.fromkeys(uses.get(id(run), []))) or ("grid search" if id(run) in tried else "other"),
            "why_other": _why_other(run.spec),
            "title": names[run.spec.method],
            "settings": style.settings_text(run.spec.settings, run.spec.method),
            "settings_order": " ".join(f"{k} {v:.4f}" for k, v in sorted(run.spec.settings.items(), reverse=True)),
            "dataset": short_name(run.spec.dataset),
            "fidelity": name_of(run.spec.fidelity),
            "quiet": is_quiet(run),
            "core_share": core_share(run),
        }
        for run in sorted(report.results, key=_paper_order)
    ]


def _why_other(spec: RunSpec) -> str:
    """Return why a run is in none of the tables."""
    if spec.protocol in PROTOCOL_NAMES and as_in_paper(spec, spec.settings):
        if (spec.protocol, spec.scenario, spec.method) not in PUBLISHED:
            return "the paper has no such cell"
        if dict(spec.settings) != preset_settings(spec.protocol, spec.method):
            return "with settings that no table has"
        if spec.seed == IN_ORDER.get(spec.protocol):
            return "the one seed that keeps the digits in order"
        if spec.seed == GRID_SEED:
            return "the seed of the grid searches"
    return "a seed that is counted already, run with another number of threads"


def _paper_order(run: RunResult) -> tuple[object, ...]:
    """Order runs as the paper does: protocol, scenario, method; then by settings and seed."""
    spec = run.spec
    method = METHODS.index(spec.method) if spec.method in METHODS else len(METHODS)
    protocol = PROTOCOL_NAMES.index(spec.protocol) if spec.protocol in PROTOCOL_NAMES else len(PROTOCOL_NAMES)
    places = (protocol, spec.protocol, SCENARIO_NAMES.index(spec.scenario), method)
    return (*places, spec.method, sorted(spec.settings.items()), spec.seed, spec.name)
