"""The benchmark's pictures, drawn from its JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from relive.paper.comparison import METHODS
from relive.report.figures import save
from relive.report.style import PROTOCOL_TITLES, method_colour, method_marker, method_title

GREY = "0.45"
GOAL_STYLE: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": "--"}
SLICES = {  # of an iteration
    "matrix products": "#0072b2",
    "Adam's kernel": "#009e73",
    "other operations": "#e69f00",
    "Python and autograd": "#cc79a7",
}
CURVES = {"tasks": "number of tasks", "width": "units per hidden layer", "batch": "batch size"}


def draw(parts: dict[str, Any], directory: Path) -> None:
    """Draw the picture of every part that was measured."""
    drawers: dict[str, Callable[[dict[str, Any]], Figure]] = {
        "floor": floor_figure,
        "versus": versus_figure,
        "growth": growth_figure,
        "before": before_figure,
    }
    for name, drawer in drawers.items():
        if name in parts:
            save(drawer(parts[name]), directory, name)


def floor_figure(part: dict[str, Any]) -> Figure:
    """Return the floor share of each method, a panel per protocol, with the goals."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axis, protocol in zip(figure.subplots(1, 2, sharey=True), PROTOCOL_TITLES, strict=True):
        mine = [f for f in part["figures"] if f["name"].endswith(PROTOCOL_TITLES[protocol])]
        names = [f["name"].split(",")[0] for f in mine]
        colours = [_colour(name) for name in names]
        axis.bar(names, [100 * f["value"] for f in mine], color=colours, width=0.7)
        for i, f in enumerate(mine):
            axis.hlines(100 * f["goal"], i - 0.42, i + 0.42, **GOAL_STYLE)
            _repeats(axis, i, [100 * v for v in f["values"]])
        axis.set_title(PROTOCOL_TITLES[protocol])
        axis.set_ylim(0, 100)
        axis.tick_params(axis="x", labelrotation=30)
        _plain(axis)
    figure.axes[0].set_ylabel("matrix products' share of\nan iteration (%); dashed: goal")
    return figure


def versus_figure(part: dict[str, Any]) -> Figure:
    """Return how many times as fast each method is as its plain version."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axis = figure.subplots()
    for i, method in enumerate(METHODS):
        values = [data[method]["speed-up"] for data in part["data"] if method in data]
        if values:
            axis.bar(i, statistics.median(values), color=method_colour(method), width=0.7)
            axis.text(i, statistics.median(values), f"{statistics.median(values):.1f}×", ha="center", va="bottom")
            _repeats(axis, i, values)
        axis.set_xticks(range(len(METHODS)), map(method_title, METHODS), rotation=30)
    axis.axhline(1, color=GREY, linewidth=1)
    axis.set_ylabel("speed over plain PyTorch\n(whole run, Fisher included)")
    _plain(axis)
    return figure


def growth_figure(part: dict[str, Any]) -> Figure:
    """Return milliseconds per iteration and peak memory against tasks, width and batch size."""
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = figure.subplots(2, len(CURVES), sharex="col")
    for column, (curve, label) in enumerate(CURVES.items()):
        for row, (unit, name) in enumerate((("milliseconds", "ms per iteration"), ("megabytes", "peak memory (MB)"))):
            axis, highest = panels[row][column], list[float]()
            for method in METHODS:
                runs = [d[f"{curve} {method}"].get(unit) for d in part["data"] if f"{curve} {method}" in d]
                if not runs or not runs[0]:
                    continue
                x = [int(n) for n in runs[0]]
                y = [statistics.median(run[n] for run in runs) for n in runs[0]]
                highest.append(max(y))
                axis.plot(
                    x,
                    y,
                    color=method_colour(method),
                    marker=method_marker(method),
                    label=method_title(method),
                )
            axis.set_xscale("log")
            axis.set_xticks(x, [str(n) for n in x])
            axis.minorticks_off()
            if row == 0 and curve != "tasks":
                axis.set_yscale("log")
            else:
                axis.set_ylim(0, 1.1 * max(highest))
            _plain(axis)
            if column == 0:
                axis.set_ylabel(name)
        panels[1][column].set_xlabel(label)
    panels[0][0].legend(frameon=False)
    return figure


def before_figure(part: dict[str, Any]) -> Figure:
    """Return where RtF's iteration spends its time, before and now, and the floor."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    axis = figure.subplots()
    commit = part["data"][0]["commit"]
    rows = {f"before ({commit})": "before", "now": "now"}
    for y, when in enumerate(rows.values()):
        left = 0.0
        for name, colour in SLICES.items():
            width = statistics.median(data[when][name] for data in part["data"])
            axis.barh(y, width, left=left, color=colour, label=name if y == 0 else None, height=0.6)
            left += width
        axis.text(left, y, f" {left:.2f}", va="center")
    axis.axvline(1, label="floor", **GOAL_STYLE)
    axis.set_yticks(range(len(rows)), list(rows))
    axis.invert_yaxis()
    axis.set_xlabel("an iteration of RtF (split MNIST, Class-IL, last task); its bare matrix products take 1")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    _plain(axis)
    return figure


def _repeats(axis: Axes, x: float, values: list[float]) -> None:
    """Draw a dot for every repeat."""
    if len(values) > 1:
        axis.plot([x] * len(values), values, ".", color="black", markersize=4)


def _colour(title: str) -> str:
    return next(method_colour(method) for method in METHODS if method_title(method) == title)


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
