"""The user's own runs side by side: a table of means and of every pair, and two figures. No paper is needed."""

from __future__ import annotations

import csv
import io
import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relive._util.registry import short_name
from relive.experiments.compare import DIGITS, TESTED_RUNS, Entry, Pair, SideBySide
from relive.report import style
from relive.report.figures import draw_steps, draw_times, legend_marks, step_unit
from relive.report.tables import accuracy_text, difference_text, p_text

RULES = (
    "Mean ± SEM of n runs; accuracy is the average over tasks of the final model's test accuracy. CPU time is that "
    "of training alone, whatever else ran on the machine. Kept numbers are the network's parameters and whatever else "
    "the method carries from task to task. Pairs are compared seed by seed (paired t-test, two-sided, of at least "
    f"{TESTED_RUNS} seeds), corrected for the number of pairs in a scenario by Holm's method."
)
IN_ORDER = (
    "Seed 0 is among these runs: it keeps the classes in their order, while every other seed shuffles them over the "
    "tasks."
)
CLASS_ORDERED = ("split", "blurred")  # the protocols of which that is so
HEADINGS = ("accuracy %", "n", "forgetting", "CPU time (s)", "kept numbers")


def label(entry: Entry, group: SideBySide) -> str:
    """Return a method's label, with what distinguishes it from others with the same title."""
    title, told = style.method_title(entry.method), []
    alike = [other for other in group.of(entry.scenario) if style.method_title(other.method) == title]
    twins = [other for other in alike if other.method == entry.method]
    if len(twins) < len(alike):
        told.append(entry.method.rpartition(":")[0] or entry.method)
    if any(other.digest != entry.digest for other in twins):
        told.append(entry.digest[:DIGITS])
    if any(other.encoder != entry.encoder for other in twins):
        told.append(f"encoder {short_name(entry.encoder)}")
    values = {name: v for name, v in entry.settings.items() if any(other.settings.get(name) != v for other in twins)}
    if values:
        told.append(style.settings_text(values, entry.method))
    return f"{title} ({', '.join(told)})" if told else title


def rules(group: SideBySide) -> str:
    """Explain how to read a comparison."""
    ordered = group.like.fidelity.class_order != "in_order" and group.like.protocol in CLASS_ORDERED
    seeds = {run.spec.seed for entry in group.entries for run in entry.runs}
    return f"{RULES} {IN_ORDER}" if ordered and 0 in seeds and len(seeds) > 1 else RULES


def as_text(group: SideBySide) -> RenderableType:
    """Return the comparison for a terminal."""
    shown: list[RenderableType] = [Text(group.title, style="bold")]
    for scenario in group.scenarios:
        table = Table(title=style.SCENARIO_TITLES[scenario], title_justify="left", box=None, pad_edge=False)
        for heading in ("method", *HEADINGS):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for entry in group.of(scenario):
            table.add_row(Text(label(entry, group)), *row(entry))
        pairs = Table(box=None, pad_edge=False)
        for heading in ("pair", "difference (points)", "seeds", "p", "p (Holm)"):
            pairs.add_column(heading, justify="left" if heading == "pair" else "right")
        for pair in group.pairs(scenario):
            pairs.add_row(
                Text(versus(pair, group)), paired_text(pair), str(pair.n), p_cell(pair.p), p_cell(pair.p_holm)
            )
        shown += ["", table]
        if pairs.row_count:
            shown += ["", pairs]
    return Group(*shown, "", Text(rules(group), style="dim"))


def as_markdown(group: SideBySide) -> str:
    """Return the comparison in Markdown."""
    lines = [f"**{group.title}**"]
    for scenario in group.scenarios:
        lines += ["", f"| {' | '.join([style.SCENARIO_TITLES[scenario], *HEADINGS])} |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        lines += ["| " + " | ".join([label(entry, group), *row(entry)]) + " |" for entry in group.of(scenario)]
        pairs = group.pairs(scenario)
        if pairs:
            lines += ["", "| pair | difference (points) | seeds | p | p (Holm) |", "| --- | --- | --- | --- | --- |"]
        for pair in pairs:
            cells = [versus(pair, group), paired_text(pair), str(pair.n), p_cell(pair.p), p_cell(pair.p_holm)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", rules(group), ""])


def row(entry: Entry) -> list[str]:
    """Return an entry's accuracy, runs, forgetting, time, and stored numbers, including its parameters."""
    runs = entry.runs
    forgetting, seconds = statistics.fmean(100 * run.forgetting for run in runs), _cpu_seconds(entry)
    return [
        accuracy_text(entry.mean, entry.sem),
        str(entry.n),
        f"{round(forgetting, 2) + 0.0:.2f}".replace("-", "−"),
        "–" if seconds is None else f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}",
        f"{statistics.fmean(run.parameters + run.stored_numbers for run in runs):,.0f}",
    ]


def _cpu_seconds(entry: Entry) -> float | None:
    """Return the mean CPU time of the runs for which it is known."""
    known = [run.cpu_seconds for run in entry.runs if run.cpu_seconds is not None]
    return statistics.fmean(known) if known else None


def p_cell(p: float | None) -> str:
    """Format a p-value, or a dash if there was no test."""
    return p_text(p) or "–"


def versus(pair: Pair, group: SideBySide) -> str:
    """Name the two entries that are compared."""
    return f"{label(pair.first, group)} − {label(pair.second, group)}"


def paired_text(pair: Pair) -> str:
    """Return by how much the first is better, in points."""
    return difference_text(pair.difference) + ("" if pair.sem is None else f" ± {pair.sem:.2f}")


def records(group: SideBySide) -> dict[str, Any]:
    """Return everything as plain values."""
    entries = [
        {
            "scenario": entry.scenario,
            "method": entry.method,
            "title": label(entry, group),
            "settings": dict(entry.settings),
            "n": entry.n,
            "mean": entry.mean,
            "sem": entry.sem,
            "seeds": [run.spec.seed for run in entry.runs],
            "accuracies": [run.average_accuracy for run in entry.runs],
            "forgetting": statistics.fmean(run.forgetting for run in entry.runs),
            "cpu_seconds": _cpu_seconds(entry),
            "train_seconds": statistics.fmean(run.train_seconds for run in entry.runs),
            "numbers": statistics.fmean(run.parameters + run.stored_numbers for run in entry.runs),
            "runs": [run.spec.name for run in entry.runs],
        }
        for entry in group.entries
    ]
    pairs = [
        {
            "scenario": scenario,
            "first": label(pair.first, group),
            "second": label(pair.second, group),
            "n": pair.n,
            "difference": pair.difference,
            "sem": pair.sem,
            "p": pair.p,
            "p_holm": pair.p_holm,
        }
        for scenario in group.scenarios
        for pair in group.pairs(scenario)
    ]
    return {"title": group.title, "like": group.like.to_json(), "entries": entries, "pairs": pairs}


def as_json(group: SideBySide) -> str:
    """Return the comparison as one JSON object."""
    return json.dumps(records(group), indent=1, ensure_ascii=False) + "\n"


def as_csv(group: SideBySide) -> str:
    """Return a line per method and scenario."""
    rows = [{k: v for k, v in record.items() if not isinstance(v, list | dict)} for record in records(group)["entries"]]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


FORMATS: dict[str, Callable[[SideBySide], str]] = {"markdown": as_markdown, "json": as_json, "csv": as_csv}


def _looks(group: SideBySide) -> dict[str, tuple[str, str]]:
    """Return the method and colour of each label; of several entries of a method, later ones are paler."""
    labels: dict[str, list[str]] = defaultdict(list)
    for entry in group.entries:
        if label(entry, group) not in labels[entry.method]:
            labels[entry.method].append(label(entry, group))
    return {
        name: (method, colour)
        for method, names in labels.items()
        for name, colour in zip(names, style.shades(style.method_colour(method), len(names)), strict=True)
    }


def time_figure(group: SideBySide) -> Figure:
    """Return accuracy against training time: a mark per run, a star per mean, a panel per scenario."""
    figure = Figure(figsize=(max(6.4, 4 * len(group.scenarios)), 4.6), layout="constrained")
    panels, looks = figure.subplots(1, len(group.scenarios), squeeze=False)[0], _looks(group)
    for axis, scenario in zip(panels, group.scenarios, strict=True):
        entries = group.of(scenario)
        colours = [looks[label(entry, group)][1] for entry in entries]
        draw_times(axis, entries, colours, style.SCENARIO_TITLES[scenario])
    figure.suptitle(group.title, fontsize="medium", wrap=True)
    panels[0].set_ylabel("average test accuracy (%)")
    figure.legend(
        handles=legend_marks((method, colour, name) for name, (method, colour) in looks.items()),
        loc="outside lower center",
        ncols=len(group.scenarios) + 1,
        frameon=False,
    )
    return figure


def learning_figure(group: SideBySide) -> Figure:
    """Return the accuracy over the tasks so far during learning: a line per method, a panel per scenario."""
    spec, (unit, steps_taken) = group.like, step_unit(group.like)
    figure = Figure(figsize=(max(6.4, 4 * len(group.scenarios)), 4.2), layout="constrained")
    panels, looks = figure.subplots(1, len(group.scenarios), squeeze=False, sharey=True)[0], _looks(group)
    patterns = dict(zip(looks, itertools.cycle(style.LINE_STYLES), strict=False))
    for axis, scenario in zip(panels, group.scenarios, strict=True):
        for entry in group.of(scenario):
            values = defaultdict(list)
            for run in entry.runs:
                for task, step, row in run.curve:
                    values[task * spec.iters + step].append(100 * statistics.fmean(row))
                for k, row in enumerate([] if run.curve else run.accuracy_matrix):  # a closed form takes no steps
                    values[(k + 1) * spec.iters].append(100 * statistics.fmean(row[: k + 1]))
            steps = sorted(values)
            means = [statistics.fmean(values[step]) for step in steps]
            name = label(entry, group)
            axis.plot([s / unit for s in steps], means, patterns[name], color=looks[name][1], linewidth=1.6)
        draw_steps(axis, spec)
        axis.set_title(style.SCENARIO_TITLES[scenario])
        axis.set_xlabel(steps_taken)
    figure.suptitle(group.title, fontsize="medium", wrap=True)
    panels[0].set_ylabel("test accuracy over the tasks so far (%)")
    lines = [Line2D([], [], color=colour, linestyle=patterns[name], label=name) for name, (_, colour) in looks.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(group.scenarios) + 1, frameon=False)
    return figure
