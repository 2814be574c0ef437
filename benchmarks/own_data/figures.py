"""Accuracy against numbers kept, and against CPU time: a point per learner, with the Pareto front."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from benchmarks.own_data.learners import LEARNERS, OWN, RIVER, SKLEARN, SUMS, WHOLE
from benchmarks.own_data.report import Cells, shared, summaries

COLOURS = {OWN: "#d55e00", SUMS: "#0072b2", SKLEARN: "#009e73", RIVER: "#cc79a7", WHOLE: "0.35"}
MARKS = {OWN: "o", SUMS: "s", SKLEARN: "^", RIVER: "v", WHOLE: "D"}
AROUND = [  # offsets of a label from its point: the nearest first, to the right before the left
    (round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1))
    for radius in (7, 13, 20, 28, 38, 50, 64, 80)
    for angle in sorted((math.pi * k / 8 for k in range(16)), key=lambda a: (-round(math.cos(a), 3), a))
]


def figure(table: Cells, measure: str, label: str) -> Figure:
    """Return mean accuracy against a measure of :class:`Summary`, over the courses that all learners shown have run."""
    fair = shared(table)
    of = summaries(fair)
    points = {name: (float(getattr(s, measure)), s.accuracy) for name, s in of.items()}
    drawn = Figure(figsize=(9, 6.4), layout="constrained", facecolor="white")
    axis = drawn.subplots()
    axis.set_xscale("log")
    axis.set_xlabel(f"{label}, geometric mean over {len(fair)} courses")
    axis.set_ylabel("mean accuracy (%)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(0.14, 0.08)
    for family, colour in COLOURS.items():
        mine = [points[name] for name in points if LEARNERS[name].family == family]
        axis.scatter([x for x, _ in mine], [y for _, y in mine], c=colour, marker=MARKS[family], s=30, label=family)
    edge = front([point for name, point in points.items() if not LEARNERS[name].keeps_data])
    axis.plot(*zip(*edge, strict=True), color="0.7", linewidth=1, zorder=0, drawstyle="steps-post")
    drawn.legend(loc="outside lower center", ncols=len(COLOURS), frameon=False)
    write_names(axis, points, edge)
    return drawn


def write_names(axis: Axes, points: dict[str, tuple[float, float]], edge: Sequence[tuple[float, float]]) -> None:
    """Write every point's name next to it, where it covers no other name, line to a name, point, and not the front."""
    drawn = axis.get_figure(root=True)
    assert drawn is not None
    drawn.draw_without_rendering()  # lays it out, so that positions in pixels are known
    pixels = {name: axis.transData.transform(point) for name, point in points.items()}
    marks = {name: Bbox.from_bounds(x - 4, y - 4, 8, 8) for name, (x, y) in pixels.items()}
    taken = list(marks.values())
    corners = [axis.transData.transform(point) for point in edge]
    for (x, y), (right, top) in itertools.pairwise(corners):
        taken += [Bbox([[x, y - 1], [right, y + 1]]), Bbox([[right - 1, y], [right + 1, top]])]
    written: list[Bbox] = []  # names, and the lines from points to them
    for name in sorted(points, key=lambda name: -points[name][1]):
        text = axis.annotate(
            name.removeprefix(f"{WHOLE}: "),
            points[name],
            (0, 0),
            textcoords="offset points",
            fontsize=7.5,
            color=COLOURS[LEARNERS[name].family],
            arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )
        crossed = [*written, *(mark for other, mark in marks.items() if not mark.overlaps(marks[name]))]
        for dx, dy in AROUND:
            text.set_position((dx, dy))
            text.set_horizontalalignment("left" if dx > 2 else "right" if dx < -2 else "center")
            text.set_verticalalignment("bottom" if dy > 5 else "top" if dy < -5 else "center")
            text.get_window_extent()  # puts the text in its place
            box = Text.get_window_extent(text)  # without the line to its point
            line = line_to(box, *pixels[name])
            inside = axis.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1
            clear = not any(box.overlaps(other) for other in taken)
            if inside and clear and not any(dot.overlaps(other) for dot in line for other in crossed):
                break
        taken += [box, *line]
        written += [box, *line]


def line_to(box: Bbox, x: float, y: float) -> list[Bbox]:
    """Return the line from a point to the middle of a box, as far as the box, in dots.

    >>> [tuple(map(float, dot.p0)) for dot in line_to(Bbox([[8, -1], [16, 1]]), 0, 0)]
    [(4.0, 0.0)]
    """
    to_x, to_y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    steps = max(1, round(math.hypot(to_x - x, to_y - y) / 4))
    along = ((x + (to_x - x) * k / steps, y + (to_y - y) * k / steps) for k in range(1, steps))
    dots = [Bbox([[a, b], [a, b]]) for a, b in along]
    return [dot for dot in dots if not dot.overlaps(box)]


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front: the points that no cheaper one matches.

    >>> front([(1.0, 50.0), (2.0, 40.0), (3.0, 70.0), (3.0, 60.0)])
    [(1.0, 50.0), (3.0, 70.0)]
    """
    found: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], -point[1])):
        if not found or y > found[-1][1]:
            found.append((x, y))
    return found
