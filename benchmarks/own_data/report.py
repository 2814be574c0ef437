"""The runs as tables: each learner's summary, and its accuracy on every course."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.own_data.courses import COURSES, Course
from benchmarks.own_data.learners import LEARNERS
from benchmarks.own_data.results import Run

Cells = dict[str, dict[str, list[Run]]]  # course: learner: its runs


@dataclass(frozen=True)
class Summary:
    """How a learner did on all courses it took.

    Attributes
    ----------
    courses
        How many.
    accuracy, macro
        Means over them, in %.
    rank
        Mean place among the learners of the same course that keep no data, from 1.
    behind, where
        The largest distance to the best learner that keeps no data, in points, and on which course.
    seconds
        Mean CPU time of a course, geometric.
    numbers
        Mean number of numbers kept, geometric.
    """

    courses: int
    accuracy: float
    macro: float
    rank: float
    behind: float
    where: str
    seconds: float
    numbers: float


def cells(runs: Sequence[Run]) -> Cells:
    """Sort runs by course and learner, in the catalogues' order; refuse to mix versions of a data set."""
    found: Cells = {}
    for course in COURSES:
        mine = [run for run in runs if run.course == course]
        if len({run.data for run in mine}) > 1:
            raise ValueError(
                f"{course} was run on different data {sorted({run.data for run in mine})}: remove some runs"
            )
        by_learner = {name: [run for run in mine if run.learner == name] for name in LEARNERS}
        if mine:
            found[course] = {name: own for name, own in by_learner.items() if own}
    return found


def mean_accuracy(runs: Sequence[Run]) -> float:
    """Return the mean accuracy in %."""
    return 100 * statistics.fmean(run.accuracy for run in runs)


def place(own: float, others: Sequence[float]) -> float:
    """Return the place of a score, from 1 for the highest; with equals it is shared.

    >>> place(90.0, [95.0, 90.0, 80.0])
    2.5
    """
    return 1 + sum(other > own for other in others) + sum(other == own for other in others) / 2


def summaries(table: Cells) -> dict[str, Summary]:
    """Return every learner's summary."""
    places, distances, taken = defaultdict(list), defaultdict(list), defaultdict(list)
    for course, learners in table.items():
        scores = {name: mean_accuracy(runs) for name, runs in learners.items()}
        without = {name: score for name, score in scores.items() if not LEARNERS[name].keeps_data}
        for name, score in scores.items():
            places[name].append(place(score, [other for who, other in without.items() if who != name]))
            distances[name].append((max(without.values(), default=math.nan) - score, course))
            taken[name].append(learners[name])
    return {
        name: Summary(
            courses=len(taken[name]),
            accuracy=statistics.fmean(mean_accuracy(runs) for runs in taken[name]),
            macro=100 * statistics.fmean(statistics.fmean(run.macro for run in runs) for runs in taken[name]),
            rank=statistics.fmean(places[name]),
            behind=max(distances[name])[0],
            where=max(distances[name])[1],
            seconds=geometric([run.seconds for runs in taken[name] for run in runs]),
            numbers=geometric([run.numbers for runs in taken[name] for run in runs]),
        )
        for name in LEARNERS
        if name in taken
    }


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; what is less than a thousandth counts as that.

    >>> geometric([10, 1000])
    100.0
    """
    return round(statistics.geometric_mean(max(value, 0.001) for value in values), 6)


def summary_table(table: Cells) -> str:
    """Return the summaries as markdown."""
    lines = [
        "| learner | of | courses | mean accuracy | mean macro accuracy | mean rank | furthest behind the best "
        "without data | CPU seconds | numbers kept |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, s in summaries(table).items():
        entry = LEARNERS[name]
        lines.append(
            f"| {name}{mark(name)} | {entry.family} | {s.courses} | {s.accuracy:.1f} | {s.macro:.1f} | {s.rank:.1f} "
            f"| {s.behind:.1f} ({s.where}) | {s.seconds:.2g} | {short(s.numbers)} |"
        )
    return "\n".join(lines)


def mark(learner: str) -> str:
    """Return a sign for those that were given only a part of large data sets."""
    return " †" if LEARNERS[learner].most else ""


def short(number: float) -> str:
    """Return a large number with two digits.

    >>> [short(n) for n in (950, 12345, 455_000, 2_010_000)]
    ['950', '12 thousand', '460 thousand', '2.0 million']
    """
    digits = float(f"{number:.2g}")
    unit, name = next((u, n) for u, n in ((1e6, " million"), (1e3, " thousand"), (1, "")) if digits >= u or u == 1)
    return f"{digits / unit:.{0 if digits >= 10 * unit or not name else 1}f}{name}"


def course_tables(table: Cells) -> str:
    """Return mean ± SEM of every cell as markdown, a table per kind of data."""
    parts = []
    for kind in dict.fromkeys(course.kind for course in COURSES.values()):
        names = [name for name in table if COURSES[name].kind == kind]
        if not names:
            continue
        learners = [learner for learner in LEARNERS if any(learner in table[name] for name in names)]
        lines = [
            f"**{kind.capitalize()}**\n",
            "| learner | " + " | ".join(title(name, COURSES[name]) for name in names) + " |",
            "| --- |" + " --- |" * len(names),
        ]
        for learner in learners:
            values = [cell(table[name].get(learner, []), COURSES[name]) for name in names]
            lines.append(f"| {learner}{mark(learner)} | " + " | ".join(values) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def title(name: str, course: Course) -> str:
    """Return a column's title."""
    return f"{name} ({course.per_task} per task{', macro' if shows_macro(course) else ''})"


def shows_macro(course: Course) -> bool:
    """Return whether classes are so unequal that the mean over classes is worth showing."""
    return course.rare or course.source in ("shuttle", "glass", "soybean", "zoo")


def cell(runs: Sequence[Run], course: Course) -> str:
    """Return mean ± SEM in %, of macro accuracy too where it is shown."""
    if not runs:
        return "–"
    parts = [with_error([run.accuracy for run in runs])]
    if shows_macro(course):
        parts.append(with_error([run.macro for run in runs]))
    return ", ".join(parts)


def with_error(values: Sequence[float]) -> str:
    """Return mean ± SEM in %.

    >>> with_error([0.5, 0.52])
    '51.0 ± 1.0'
    """
    sem = f" ± {100 * statistics.stdev(values) / math.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.fmean(values):.1f}{sem}"


def page(runs: Sequence[Run]) -> str:
    """Return all tables."""
    table = cells(runs)
    counts = [len(own) for learners in table.values() for own in learners.values()]
    seeds = f"{min(counts)} to {max(counts)} seeds" if min(counts) < max(counts) else f"{max(counts)} seeds"
    return f"{summary_table(table)}\n\n{course_tables(table)}\n\nMean ± SEM in % over {seeds}."
