"""The figures made of numbers: runs against published cells and time, searches, learning curves, forgetting."""

from __future__ import annotations

import io
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from relive._util.files import write_atomic
from relive._util.registry import short_name
from relive.experiments.compare import Entry, is_quiet
from relive.experiments.spec import SCENARIO_NAMES, RunResult, RunSpec
from relive.paper.comparison import METHODS, Compared, Comparison
from relive.paper.published import GRIDS, RUNS_PER_CELL, preset_settings
from relive.paper.tuned import Tuned, searched
from relive.report import style

SEARCHED = ("xdg", "ewc", "online-ewc", "si")  # in the paper's order
GREY = "0.45"
DEVIATIONS = 5.0  # published standard deviations on either side of a published mean that a figure shows
NEW_TASK = "(a line where a new task begins)"


def save(figure: Figure, directory: Path, name: str, formats: Sequence[str] = ("svg", "png")) -> None:
    """Write a figure into a directory, the same bytes every time."""
    directory.mkdir(parents=True, exist_ok=True)
    settle(figure)
    for extension in formats:
        write_atomic(directory / f"{name}.{extension}", to_bytes(figure, extension))


def settle(figure: Figure) -> None:
    """Lay a figure out once, rather than each time it is written."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def to_bytes(figure: Figure, extension: str) -> bytes:
    """Return a figure as the bytes of an SVG or a PNG file."""
    metadata = {"Date": None} if extension == "svg" else {"Software": None}
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "relive"}):
        figure.savefig(file, format=extension, dpi=150, metadata=metadata)
    return file.getvalue()


def agreement_figure(table: Comparison) -> Figure:
    """Return every run against the published cell: a dot per run, in standard deviations of the published runs.

    A bar is the 95 % interval of the difference between the means. What is beyond the panel stands at its edge.
    """
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    for axis, scenario in zip(figure.subplots(1, len(SCENARIO_NAMES), sharey=True), SCENARIO_NAMES, strict=True):
        axis.axvspan(-1, 1, color="0.92", linewidth=0)
        axis.axvline(0, color=GREY, linewidth=1)
        for cell in _with_runs(table, scenario):
            _deviations(axis, cell, len(METHODS) - METHODS.index(cell.method))
        axis.set_xlim(-DEVIATIONS, DEVIATIONS)
        axis.set_title(style.SCENARIO_TITLES[scenario])
        axis.set_yticks(range(len(METHODS), 0, -1), map(style.method_title, METHODS))
        axis.set_ylim(0.4, len(METHODS) + 0.6)
        _plain(axis)
    figure.supxlabel(
        "accuracy minus the published mean, in standard deviations of the published runs", fontsize="medium"
    )
    return figure


def _deviations(axis: Axes, cell: Compared, y: float) -> None:
    """Draw a cell's runs, spread over the height of its row, and the interval of the difference between means."""
    deviation = cell.published.sem * math.sqrt(RUNS_PER_CELL)
    x = np.array([100 * run.average_accuracy - cell.published.mean for run in cell.runs]) / deviation
    inside = np.abs(x) <= DEVIATIONS
    heights = y + np.linspace(-0.3, 0.3, len(x)) if len(x) > 1 else np.array([y])
    colour = style.method_colour(cell.method)
    axis.scatter(x[inside], heights[inside], s=14, color=colour, alpha=0.7, linewidth=0)
    for sign, marker in ((-1, "<"), (1, ">")):
        beyond = sign * x > DEVIATIONS
        edge = np.full(beyond.sum(), sign * 0.97 * DEVIATIONS)
        axis.scatter(edge, heights[beyond], s=18, marker=marker, color=colour, alpha=0.7, linewidth=0)
    if cell.interval is not None and abs(x.mean()) <= DEVIATIONS:
        axis.plot(
            np.clip(np.array(cell.interval) / deviation, -DEVIATIONS, DEVIATIONS), [y, y], color="0.1", linewidth=2
        )


def time_figure(table: Comparison) -> Figure:
    """Return accuracy against training time (figures 4 and 5): a mark per run, a star per mean, a panel per scenario.

    Runs that are not known to have had their own core are hollow, or pale if a marker has no inside.
    """
    figure = Figure(figsize=(12, 4.9), layout="constrained")
    panels = figure.subplots(1, len(SCENARIO_NAMES))
    for axis, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        cells = [cell for cell in table.cells.values() if cell.scenario == scenario and cell.n]
        colours = [style.method_colour(cell.method) for cell in cells]
        draw_times(axis, cells, colours, style.SCENARIO_TITLES[scenario])
    panels[0].set_ylabel("average test accuracy (%)")
    shown = [method for method in METHODS if any(c.n for c in table.cells.values() if c.method == method)]
    names = [(method, style.method_colour(method), name) for method, name in style.method_names(shown).items()]
    figure.legend(handles=legend_marks(names), loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_times(axis: Axes, cells: Sequence[Compared | Entry], colours: Sequence[str], title: str) -> None:
    """Draw accuracy against training time into a panel."""
    for cell, colour in zip(cells, colours, strict=True):
        _scatter(axis, cell, colour)
    axis.set_title(title)
    axis.set_xlabel("training time (s), log scale")
    if cells:
        axis.set_xscale("log")
        low, high = axis.get_xlim()
        decades = math.log10(high / low)
        between = (1, 2, 5) if decades < 2 else (1, 3) if decades < 4 else (1,)  # numbers must not touch
        axis.xaxis.set_major_locator(LogLocator(subs=between) if decades >= 1 else MaxNLocator(5, steps=[1, 2, 5]))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.xaxis.set_minor_locator(NullLocator())
    else:
        _say(axis, "no runs yet")
        axis.set_yticks([])
    _plain(axis)


def _scatter(axis: Axes, cell: Compared | Entry, colour: str) -> None:
    """Draw a cell's runs and their mean; the time of the mean is that of quiet runs if there are any, else the median.

    Stars look alike to some people: each has its method's marker in it.
    """
    marker = style.method_marker(cell.method)
    for run in cell.runs:
        x, y = run.train_seconds, 100 * run.average_accuracy
        filled = MarkerStyle(marker).is_filled()  # a cross, for one, has no inside: matplotlib draws it by its face
        face = colour if is_quiet(run) or not filled else "none"
        edge: dict[str, Any] = {"edgecolor": colour} if filled else {}
        alpha = 0.65 if is_quiet(run) or filled else 0.4
        axis.scatter(x, y, s=22, marker=marker, facecolor=face, alpha=alpha, linewidth=1 if filled else 1.5, **edge)
    if cell.n < 2:
        return
    quiet = [run for run in cell.runs if is_quiet(run)]
    x = (statistics.fmean if quiet else statistics.median)([run.train_seconds for run in quiet or cell.runs])
    y = 100 * statistics.fmean(run.average_accuracy for run in cell.runs)
    inside, around = (colour, "white") if quiet else ("none", colour)
    axis.scatter(x, y, s=260, marker="*", facecolor=inside, edgecolor=around, linewidth=1, zorder=3)
    axis.scatter(x, y, s=16, marker=marker, color=around, linewidth=0.5, zorder=4)


def legend_marks(names: Iterable[tuple[str, str, str]]) -> list[Line2D]:
    """Return the legend entries of such a figure: each a method, with its colour and what to call it."""

    def mark(marker: str, colour: str, label: str, size: float = 6, hollow: bool = False) -> Line2D:
        face = "none" if hollow else colour
        return Line2D(
            [], [], linestyle="", marker=marker, color=colour, markerfacecolor=face, markersize=size, label=label
        )

    handles = [mark(style.method_marker(method), colour, name) for method, colour, name in names]
    return [
        *handles,
        mark("*", GREY, "star: mean of the runs", 12),
        mark("o", GREY, "hollow or pale: timing unreliable", hollow=True),
    ]


def grid_figure(results: Iterable[RunResult], tuned: Tuned, protocol: str) -> Figure | None:
    """Return the grid searches of a protocol, a row per scenario and a column per method; None if there are none.

    A star marks the chosen value, a dotted line the default one.
    """
    found = searched(results, protocol)
    scenarios = [name for name in SCENARIO_NAMES if any(scenario == name for scenario, _ in found)]
    if not scenarios:
        return None
    figure = Figure(figsize=(12, 0.8 + 2.6 * len(scenarios)), layout="constrained")
    panels = figure.subplots(len(scenarios), len(SEARCHED), squeeze=False, sharey="row")
    for row, scenario in zip(panels, scenarios, strict=True):
        for axis, method in zip(row, SEARCHED, strict=True):
            runs = found.get((scenario, method))
            if runs:
                _grid_panel(axis, runs, tuned.get((protocol, scenario, method)))
            else:
                _say(axis, "only in Task-IL" if method == "xdg" and scenario != "task" else "not searched yet")
            _plain(axis)
        row[0].set_ylabel(f"{style.SCENARIO_TITLES[scenario]}\naverage test accuracy (%)")
    for axis, method in zip(panels[0], SEARCHED, strict=True):
        axis.set_title(style.method_title(method))
    return figure


def _grid_panel(axis: Axes, runs: Sequence[RunResult], chosen: dict[str, float] | None) -> None:
    spec = runs[0].spec
    name = next(iter(GRIDS[spec.protocol, spec.method]))
    lines = defaultdict(list)
    for run in runs:
        lines[run.spec.settings.get("gamma")].append((run.spec.settings[name], 100 * run.average_accuracy))
    colour = style.method_colour(spec.method)
    for (gamma, points), pattern in zip(sorted(lines.items(), key=str), style.LINE_STYLES * len(lines), strict=False):
        label = None if gamma is None else f"γ = {gamma:g}"
        axis.plot(*zip(*sorted(points), strict=True), pattern, marker="o", markersize=3.5, color=colour, label=label)
    axis.axvline(preset_settings(spec.protocol, spec.method)[name], color=GREY, linestyle=":", linewidth=1)
    if chosen is not None:
        accuracy = next((100 * r.average_accuracy for r in runs if dict(r.spec.settings) == chosen), None)
        if accuracy is not None:
            axis.plot(chosen[name], accuracy, "*", markersize=15, color=colour, markeredgecolor="black", zorder=3)
    if name != "proportion":
        axis.set_xscale("log")
    axis.set_xlabel(style.SETTING_NAMES.get(name, name))
    if len(lines) > 1:
        axis.legend(frameon=False, fontsize="small")


def accuracy_figure(result: RunResult) -> Figure:
    """Return the accuracy on each task, from its start to the end of one run."""
    spec = result.spec
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axis = figure.subplots()
    _learning_panel(axis, [result])
    axis.set_xlabel(f"{step_unit(spec)[1]} {NEW_TASK}")
    axis.set_ylabel("test accuracy (%)")
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    axis.set_xticks([k * spec.iters / step_unit(spec)[0] for k in range(spec.tasks + 1)])
    if not result.curve:  # a closed form takes no steps
        axis.set_xticks(axis.get_xticks(), [str(k) for k in range(spec.tasks + 1)])
        axis.set_xlabel("tasks learned")
    title = f"{style.method_title(spec.method)}, {result.protocol_title} {short_name(spec.dataset)}"
    axis.set_title(f"{title}, {style.SCENARIO_TITLES[spec.scenario]}, seed {spec.seed}", parse_math=False)
    return figure


def learning_figure(table: Comparison, scenario: str) -> Figure | None:
    """Return the accuracy on each task over time, the mean of a cell's runs, a panel per method."""
    cells = _with_runs(table, scenario)
    if not cells:
        return None
    figure, panels = _small_multiples(len(cells), height=2.3)
    for axis, cell in zip(panels, cells, strict=True):
        _learning_panel(axis, cell.runs)
        axis.set_title(_panel_title(cell), fontsize="medium")
    figure.supxlabel(f"{step_unit(cells[0].runs[0].spec)[1]} {NEW_TASK}", fontsize="medium")
    figure.supylabel("test accuracy (%)", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def _learning_panel(axis: Axes, runs: Sequence[RunResult]) -> None:
    """Draw one line per task, dots where a task was finished."""
    spec = runs[0].spec
    unit = step_unit(spec)[0]
    for k in range(spec.tasks):
        values = defaultdict(list)
        for run in runs:
            for task, step, row in run.curve:
                if len(row) > k and step < spec.iters:
                    values[task * spec.iters + step].append(100 * row[k])
            for i in range(k, spec.tasks):
                values[(i + 1) * spec.iters].append(100 * run.accuracy_matrix[i][k])
        means = {step / unit: statistics.fmean(values[step]) for step in sorted(values)}
        ends = {step / unit: means[step / unit] for step in values if step % spec.iters == 0}
        colour = task_colour(k, spec.tasks)
        axis.plot(list(means), list(means.values()), color=colour, linewidth=1.5)
        axis.plot(list(ends), list(ends.values()), "o", color=colour, markersize=3.5, label=f"task {k + 1}")
    draw_steps(axis, spec)
    axis.xaxis.set_major_locator(MaxNLocator(3, integer=spec.iters >= unit, prune="upper"))


def step_unit(spec: RunSpec) -> tuple[int, str]:
    """Return the unit for training steps, and its name: single steps if there are few."""
    few = spec.tasks * spec.iters < 1000
    return (1, "training steps") if few else (1000, "training steps in thousands")


def draw_steps(axis: Axes, spec: RunSpec) -> None:
    """Give a panel the axis of training steps, with a line where a new task begins."""
    unit = step_unit(spec)[0]
    for k in range(1, spec.tasks):
        axis.axvline(k * spec.iters / unit, color="0.87", linewidth=0.8, zorder=0)
    axis.set_ylim(-2, 102)
    axis.set_xlim(0, spec.tasks * spec.iters / unit)
    _plain(axis)


def task_colour(task: int, tasks: int) -> tuple[float, float, float, float]:
    """Return a task's colour: the later, the lighter."""
    low, high = style.TASK_COLOUR_RANGE
    colour: tuple[float, float, float, float] = matplotlib.colormaps[style.TASK_COLOUR_MAP](
        low + (high - low) * task / max(1, tasks - 1)
    )
    return colour


def forgetting_figure(table: Comparison, scenario: str) -> Figure | None:
    """Return, for each method, the accuracy on every task after every task, as a heat map of a cell's mean."""
    cells = _with_runs(table, scenario)
    if not cells:
        return None
    figure, panels = _small_multiples(len(cells), height=2.35)
    whole = Normalize(0, 100)
    for axis, cell in zip(panels, cells, strict=True):
        matrix = 100 * np.mean([run.accuracy_matrix for run in cell.runs], axis=0)
        _heat_map(axis, matrix, whole)
        axis.set_title(_panel_title(cell), fontsize="medium")
    figure.supxlabel("accuracy on task", fontsize="medium")
    figure.supylabel("after learning task", fontsize="medium")
    scale = ScalarMappable(whole, style.ACCURACY_COLOUR_MAP)
    figure.colorbar(scale, ax=panels, label="test accuracy (%)", shrink=0.8, pad=0.02)
    return figure


def _heat_map(axis: Axes, matrix: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scale: Normalize) -> None:
    """Draw the learned half of an accuracy matrix, with its numbers."""
    n = len(matrix)
    learned = np.ma.masked_where(np.triu(np.ones_like(matrix, dtype=bool), 1), matrix)
    axis.imshow(learned, cmap=style.ACCURACY_COLOUR_MAP, norm=scale)
    for i in range(n):
        for j in range(i + 1):
            ink = "black" if matrix[i, j] > 55 else "white"
            axis.text(j, i, f"{matrix[i, j]:.0f}", ha="center", va="center", fontsize=8 if n <= 5 else 5.5, color=ink)
    ticks = range(n) if n <= 5 else range(0, n, 3)
    axis.set_xticks(ticks, [str(k + 1) for k in ticks])
    axis.set_yticks(ticks, [str(k + 1) for k in ticks])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _with_runs(table: Comparison, scenario: str) -> list[Compared]:
    return [cell for cell in table.cells.values() if cell.scenario == scenario and cell.n]


def _panel_title(cell: Compared) -> str:
    title = f"{style.method_title(cell.method)} ({cell.mean:.1f} %, n={cell.n})"
    settings = "" if cell.settings is None else style.settings_text(cell.settings, cell.method)
    return f"{title}\n{settings}" if settings else title


def _small_multiples(n: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure of n equal panels, at most five in a row."""
    columns = min(n, 5)
    rows = math.ceil(n / columns)
    width = 12 if columns > 2 else 2 + 3.2 * columns
    figure = Figure(figsize=(width, 0.7 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis in panels[n:]:
        axis.set_axis_off()
    for axis in panels[n - columns : n]:  # with nothing below them
        axis.tick_params(labelbottom=True)
    return figure, list(panels[:n])


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)


def _say(axis: Axes, text: str) -> None:
    """Write in an empty panel why it is empty."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=GREY)
    axis.set_xticks([])
