"""The paper's two tables with our numbers in them, as text, Markdown, LaTeX, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from relive._util.statistics import ALPHA
from relive.experiments.compare import TESTED_RUNS
from relive.experiments.spec import SCENARIO_NAMES
from relive.paper.comparison import METHODS, NEAR_SDS, POINTS, RANGE_SDS, Compared, Comparison
from relive.paper.published import NO_DEFAULT, RUNS_PER_CELL
from relive.paper.tuned import DEFAULTS
from relive.report.style import PROTOCOL_TITLES, SCENARIO_TITLES, method_bound, method_title, settings_text

VERDICT_STYLES = {
    "agrees": "green",
    "in range": "cyan",
    "undecided": "dim",
    "inconclusive": "dim",
    "higher": "yellow",
    "lower": "yellow",
    "missing": "dim",
}
ARROWS = {"higher": "▲", "lower": "▼", "agrees": "✓", "in range": "≈", "undecided": "?", "inconclusive": "~"}
EMPTY = "–"
INTERVAL = f"{100 * (1 - ALPHA):.0f} % interval of the difference"


def accuracy_text(mean: float | None, sem: float | None) -> str:
    """Format an accuracy as the paper does.

    >>> accuracy_text(99.661, 0.03), accuracy_text(91.1, None), accuracy_text(97.31, 0.0042)
    ('99.66 ± 0.03', '91.10', '97.31 ± 0.004')
    >>> accuracy_text(67.68, 1e-5)
    '67.68 ± <0.001'
    """
    if mean is None:
        return "missing"
    if sem is None:
        return f"{mean:.2f}"
    if 0 < sem < 0.0005:
        return f"{mean:.2f} ± <0.001"
    return f"{mean:.2f} ± {sem:.3f}" if 0 < sem < 0.01 else f"{mean:.2f} ± {sem:.2f}"


def difference_text(difference: float | None) -> str:
    """Format a difference in points, with a true minus sign.

    >>> difference_text(-0.5), difference_text(-0.004)
    ('−0.50', '+0.00')
    """
    return "" if difference is None else f"{round(difference, 2) + 0.0:+.2f}".replace("-", "−")


def interval_text(cell: Compared) -> str:
    """Format the interval of the difference, if known."""
    return "" if cell.interval is None else "[" + ", ".join(map(difference_text, cell.interval)) + "]"


def verdict_text(cell: Compared) -> str:
    """Return the verdict in a word, with a sign that does not rely on colour."""
    return f"{ARROWS.get(cell.verdict, '')} {cell.verdict}".strip()


def p_text(p: float | None) -> str:
    """Format a p-value with a meaningful number of digits.

    >>> p_text(0.0312), p_text(1e-9), p_text(1.0)
    ('0.031', '< 0.001', '1.000')
    """
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def title(table: Comparison) -> str:
    """Return a table's title."""
    return f"Average test accuracy (%) over all tasks, {PROTOCOL_TITLES[table.protocol]}, {table.settings.title}"


def short_title(table: Comparison) -> str:
    """Return a title for lists of tables."""
    return ", ".join(filter(None, [PROTOCOL_TITLES[table.protocol], table.settings.short]))


def rules(table: Comparison) -> str:
    """Explain how the verdicts are made."""
    few = (
        f"Fewer than {TESTED_RUNS} runs are not tested: they are “in range” if their mean is within {RANGE_SDS:g} "
        f"published standard deviations, or {POINTS:g} point, of the published one, else “higher” or “lower”."
    )
    if not table.tested:
        return f"Mean ± SEM of n runs; published: of {RUNS_PER_CELL} runs. {few}"
    return (
        f"Mean ± SEM of n runs; published: of {RUNS_PER_CELL} runs. Cells with {TESTED_RUNS} or more runs are judged "
        f"by Welch's test on these summary statistics, two-sided at {ALPHA:g} with Holm's correction for the "
        f"{table.tested} cells tested in this table: “higher” and “lower” mean that a difference was shown. Where none "
        f"was, “agrees” means that the {INTERVAL} (of this cell alone, not corrected) is within {NEAR_SDS:g} published "
        f"standard deviation, or {POINTS:g} point, of 0; “undecided”, that there are too few runs to tell; "
        f"“inconclusive”, that no difference was shown with {RUNS_PER_CELL} runs or more, but one larger than that "
        f"cannot be excluded. {few}"
    )


def settings_notes(table: Comparison) -> list[str]:
    """Return the settings of each method, one line per method that has any."""
    notes = []
    for method in METHODS:
        cells = [cell for (_, name), cell in table.cells.items() if name == method]
        texts = {
            c.scenario: "not searched yet" if c.settings is None else settings_text(c.settings, method) for c in cells
        }
        if len(set(texts.values())) == 1:
            texts = {"": next(iter(texts.values()))}
        said = "; ".join(f"{SCENARIO_TITLES.get(s, '')} {text}".strip() for s, text in texts.items() if text)
        elsewhere = NO_DEFAULT.get((table.protocol, method))
        if table.settings is DEFAULTS and elsewhere is not None:
            said += " (from the authors' later report: the 2018 code has no default)"
        if said:
            notes.append(f"{method_title(method)}: {said}")
    return notes


def as_text(table: Comparison) -> RenderableType:
    """Return the table for a terminal, in the paper's composition."""
    shown = Table(title=title(table), title_justify="left", title_style="bold", show_lines=True, caption_justify="left")
    shown.add_column("method")
    for scenario in SCENARIO_NAMES:
        shown.add_column(SCENARIO_TITLES[scenario], no_wrap=True)
    for method in METHODS:
        cells = [_text_cell(table.cells.get((scenario, method))) for scenario in SCENARIO_NAMES]
        shown.add_row(_method_text(method, "\n"), *cells)
    shown.caption = "\n".join([*settings_notes(table), rules(table)])
    return shown


def _text_cell(cell: Compared | None) -> Text:
    if cell is None:
        return Text(EMPTY, style="dim")
    text = Text()
    if cell.n:
        text.append(accuracy_text(cell.mean, cell.sem), style="bold").append(f"  n={cell.n}\n")
    text.append(f"paper {accuracy_text(*cell.published)}\n", style="dim")
    words = " ".join([difference_text(cell.difference), verdict_text(cell)]).strip()
    return text.append(words, style=VERDICT_STYLES[cell.verdict])


def _method_text(method: str, gap: str = " ") -> str:
    return method_title(method) + (f"{gap}({method_bound(method)})" if method_bound(method) else "")


def as_markdown(table: Comparison) -> str:
    """Return the table in Markdown."""
    lines = [f"**{title(table)}**", "", "| method | " + " | ".join(SCENARIO_TITLES.values()) + " |"]
    lines.append("| --- |" + " --- |" * len(SCENARIO_TITLES))
    for method in METHODS:
        cells = [_markdown_cell(table.cells.get((scenario, method))) for scenario in SCENARIO_NAMES]
        lines.append("| " + " | ".join([_method_text(method), *cells]) + " |")
    notes = [f"- {note}" for note in settings_notes(table)]
    brackets = f" In brackets: the {INTERVAL}." if table.tested else ""
    return "\n".join([*lines, "", "Settings:", "", *notes, "", rules(table) + brackets, ""])


def _markdown_cell(cell: Compared | None) -> str:
    if cell is None:
        return EMPTY
    lines = [f"**{accuracy_text(cell.mean, cell.sem)}** (n={cell.n})"] if cell.n else []
    lines += [f"paper {accuracy_text(*cell.published)}"]
    said = [difference_text(cell.difference), interval_text(cell), verdict_text(cell)]
    return "<br>".join([*lines, " ".join(filter(None, said))])


_LATEX_MARKS = {
    "higher": r"$^{\uparrow}$",
    "lower": r"$^{\downarrow}$",
    "agrees": r"$^{=}$",
    "undecided": r"$^{?}$",
    "inconclusive": r"$^{\sim}$",
    "in range": r"$^{\approx}$",
    "missing": "",
}
_LATEX = str.maketrans(
    {
        "%": r"\%", "λ": r"$\lambda$", "γ": r"$\gamma$", "ξ": r"$\xi$", "±": r"$\pm$", "−": "$-$",
        "“": "``", "”": "''", "–": "--",
    }
)  # fmt: skip


def as_latex(table: Comparison) -> str:
    """Return the table in LaTeX with booktabs: our numbers, and below them the published ones."""
    head = " & ".join(rf"\bf {text}" for text in ["Method", *SCENARIO_TITLES.values()])
    lines = [r"\begin{table}", rf"\caption{{{_latex(title(table))}. {_latex(rules(table))}"]
    lines += [r"$\uparrow$: higher; $\downarrow$: lower; $=$: agrees; $\approx$: in range; ?: undecided;"]
    lines += [r"$\sim$: inconclusive."]
    lines += [_latex("Settings: " + ". ".join(settings_notes(table)) + ".}")]
    lines += [r"\begin{center}", r"\begin{tabular}{llll} \toprule", head + r" \\ \midrule"]
    for method in METHODS:
        cells = [table.cells.get((scenario, method)) for scenario in SCENARIO_NAMES]
        bound = rf" -- \emph{{{method_bound(method)}}}" if method_bound(method) else ""
        lines.append(method_title(method) + bound + "".join(f" & {_latex_cell(cell)}" for cell in cells) + r" \\")
        published = [r"\small " + _latex(accuracy_text(*cell.published)) if cell else "" for cell in cells]
        lines.append(r"\quad \small published" + "".join(f" & {text}" for text in published) + r" \\")
        if method in ("none", METHODS[-2]):
            lines.append(r"\midrule")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{center}", r"\end{table}", ""]
    return "\n".join(lines)


def _latex(text: str) -> str:
    return text.translate(_LATEX)


def _latex_cell(cell: Compared | None) -> str:
    if cell is None or not cell.n:
        return "--" if cell is None else r"\emph{missing}"
    return rf"{_latex(accuracy_text(cell.mean, cell.sem))}{_LATEX_MARKS[cell.verdict]} {{\small $n={cell.n}$}}"


def records(table: Comparison) -> list[dict[str, Any]]:
    """Return a flat record for every published cell."""
    return [
        {
            "protocol": table.protocol,
            "scenario": cell.scenario,
            "method": cell.method,
            "settings_from": table.settings.name,
            "settings": None if cell.settings is None else dict(cell.settings),
            "n": cell.n,
            "mean": cell.mean,
            "sem": cell.sem,
            "published_mean": cell.published.mean,
            "published_sem": cell.published.sem,
            "published_n": RUNS_PER_CELL,
            "difference": cell.difference,
            "difference_low": None if cell.interval is None else cell.interval[0],
            "difference_high": None if cell.interval is None else cell.interval[1],
            "p_welch": cell.p,
            "p_holm": cell.p_holm,
            "verdict": cell.verdict,
            "note": cell.note,
        }
        for cell in table.cells.values()
    ]


def as_json(table: Comparison) -> str:
    """Return the table as one JSON object."""
    values = {"title": title(table), "alpha": ALPHA, "tested": table.tested, "cells": records(table)}
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def as_csv(table: Comparison) -> str:
    """Return the table as CSV, a line per published cell."""
    rows = records(table)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        settings = row["settings"]
        said = "" if settings is None else " ".join(f"{key}={value:g}" for key, value in settings.items())
        writer.writerow(row | {"settings": said})
    return text.getvalue()


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "markdown": as_markdown,
    "latex": as_latex,
    "json": as_json,
    "csv": as_csv,
}
