"""Accuracy against numbers kept, and against CPU time: a point per learner, with the front drawn."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.own_data.courses import COURSES
from benchmarks.own_data.learners import LEARNERS, OWN, RIVER, SKLEARN, SUMS, WHOLE
from benchmarks.own_data.report import Cells, summaries

COLOURS = {OWN: "#d55e00", SUMS: "#0072b2", SKLEARN: "#009e73", RIVER: "#cc79a7", WHOLE: "0.45"}
MARKS = {OWN: "o", SUMS: "s", SKLEARN: "^", RIVER: "v", WHOLE: "D"}


def figure(table: Cells, measure: str, label: str) -> Figure:
    """Return accuracy against a measure of :class:`Summary`, a panel per kind of data."""
    kinds = list(dict.fromkeys(COURSES[name].kind for name in table))
    drawn = Figure(figsize=(5.2 * len(kinds), 4.6), layout="constrained")
    for axis, kind in zip(drawn.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        panel(axis, {name: cells for name, cells in table.items() if COURSES[name].kind == kind}, measure)
        axis.set_title(kind.capitalize())
        axis.set_xlabel(label)
    drawn.axes[0].set_ylabel("mean accuracy (%)")
    handles = {family: drawn.axes[0].scatter([], [], color=COLOURS[family], marker=MARKS[family]) for family in COLOURS}
    drawn.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return drawn


def panel(axis: Axes, table: Cells, measure: str) -> None:
    """Draw the learners that took every course of a panel; those on the front, and relive's, with their names."""
    of = {name: s for name, s in summaries(table).items() if s.courses == len(table)}
    points = {name: (float(getattr(s, measure)), s.accuracy) for name, s in of.items()}
    without = {name: point for name, point in points.items() if not LEARNERS[name].keeps_data}
    edge = front(list(without.values()))
    axis.plot(*zip(*edge, strict=True), color="0.7", linewidth=1, zorder=0, drawstyle="steps-post")
    for name, (x, y) in points.items():
        family = LEARNERS[name].family
        axis.scatter(x, y, color=COLOURS[family], marker=MARKS[family], s=28)
        if (x, y) in edge or family in (OWN, WHOLE):
            short = name.removeprefix("everything at once: ")
            axis.annotate(short, (x, y), (4, 3), textcoords="offset points", fontsize=7)
    axis.set_xscale("log")
    axis.spines[["top", "right"]].set_visible(False)


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that nothing cheaper is as good as.

    >>> front([(1.0, 50.0), (2.0, 40.0), (3.0, 70.0), (3.0, 60.0)])
    [(1.0, 50.0), (3.0, 70.0)]
    """
    found: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or y > found[-1][1]:
            found.append((x, y))
    return found
