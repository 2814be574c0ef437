"""The runs as tables: each learner's summary, and its accuracy on every course."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.own_data.courses import COURSES, Course
from benchmarks.own_data.learners import LEARNERS
from benchmarks.own_data.results import Run

Cells = dict[str, dict[str, list[Run]]]  # course: learner: its runs


REFERENCE = "rtf"  # its courses are compared, and its time is the unit
SEEDS = 5  # of a cell that is complete
COLUMNS = 8  # courses in one table
CLOSE = 1.0  # points behind the best that are not reported
IN_SHORT = (
    *("auto", "slda", "bir", "rtf", "none (fine-tuning)", "random features + ridge", "a Gaussian per class"),
    *("everything at once: the same MLP", "everything at once: RandomForest", "everything at once: SVC"),
)
FOLLOWED = ("auto", "rtf")  # learners for which the courses where they are behind are listed


@dataclass(frozen=True)
class Summary:
    """How a learner did on the courses it was run on.

    Attributes
    ----------
    courses
        How many.
    accuracy
        Mean over the courses that are :func:`shared`, in %; nan if one of them is missing.
    rank
        Mean rank among the learners of the same course that keep no data, from 1.
    behind, where
        The largest gap to the best other learner that keeps no data, in points, and on which course.
    seconds
        CPU time of a course, geometric mean over the shared courses, or over its own if it lacks one.
    ratio
        Median over courses of the CPU time over the reference's.
    numbers
        Numbers kept, geometric mean over the same courses.
    """

    courses: int
    accuracy: float
    rank: float
    behind: float
    where: str
    seconds: float
    ratio: float
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


def ahead(mine: Sequence[Run], theirs: Sequence[Run]) -> float:
    """Return by how many points the first are better, on the seeds that both have; nan if they share none."""
    scores = {run.seed: run.accuracy for run in theirs}
    differences = [100 * (run.accuracy - scores[run.seed]) for run in mine if run.seed in scores]
    return statistics.fmean(differences) if differences else math.nan


def place(distances: Sequence[float]) -> float:
    """Return the rank, from 1, of a learner given its lead over each of the others; ties share a rank.

    >>> place([-5.0, 0.0, 10.0])
    2.5
    """
    return 1 + sum(distance < 0 for distance in distances) + sum(distance == 0 for distance in distances) / 2


def shared(table: Cells) -> Cells:
    """Return what a fair mean needs: courses that the reference was run on, and learners that were run on them all.

    While runs are missing: the courses that some other learner was run on too and that leave the most cells.
    """
    taken = {name: {course for course in table if name in table[course]} for name in LEARNERS}
    choices = [courses & taken[REFERENCE] for courses in taken.values()]
    everyone = [[name for name in LEARNERS if courses <= taken[name]] for courses in choices]
    courses, learners = max(zip(choices, everyone, strict=True), key=lambda part: len(part[0]) * len(part[1]))
    return {course: {name: table[course][name] for name in learners} for course in table if course in courses}


def leads_without_data(learners: dict[str, list[Run]], name: str) -> dict[str, float]:
    """Return by how much a learner leads every other that keeps no data."""
    found = {
        other: ahead(learners[name], runs)
        for other, runs in learners.items()
        if other != name and not LEARNERS[other].keeps_data
    }
    return {other: lead for other, lead in found.items() if not math.isnan(lead)}


def best_without_data(learners: dict[str, list[Run]]) -> str:
    """Return the best learner on a course among those that keep no data."""
    without = [name for name in learners if not LEARNERS[name].keeps_data]
    return max(without, key=lambda name: mean_accuracy(learners[name]))


def summaries(table: Cells) -> dict[str, Summary]:
    """Return every learner's summary."""
    fair = shared(table)
    in_fair = next(iter(fair.values()), {})
    found = {}
    for name in LEARNERS:
        mine = {course: learners for course, learners in table.items() if name in learners}
        if not mine:
            continue
        scores = {course: mean_accuracy(learners[name]) for course, learners in mine.items()}
        places, distances, ratios = [], [], []
        for course, learners in mine.items():
            leads = list(leads_without_data(learners, name).values())
            places.append(place(leads))
            distances.append((-min(leads, default=math.nan), course))
            if REFERENCE in learners:
                ratios.append(mean_seconds(learners[name]) / mean_seconds(learners[REFERENCE]))
        counted = fair if name in in_fair else mine
        found[name] = Summary(
            courses=len(mine),
            accuracy=statistics.fmean(scores[course] for course in fair) if name in in_fair else math.nan,
            rank=statistics.fmean(places),
            behind=max(distances)[0],
            where=max(distances)[1],
            seconds=geometric([mean_seconds(table[course][name]) for course in counted]),
            ratio=statistics.median(ratios) if ratios else math.nan,
            numbers=geometric([run.numbers for course in counted for run in table[course][name]]),
        )
    return found


def mean_seconds(runs: Sequence[Run]) -> float:
    """Return the mean CPU time, at least a millisecond, the resolution of the measurement."""
    return max(statistics.fmean(run.seconds for run in runs), 0.001)


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; values below a thousandth count as a thousandth.

    >>> geometric([10, 1000])
    100.0
    """
    return round(statistics.geometric_mean(max(value, 0.001) for value in values), 6)


def summary_table(table: Cells) -> str:
    """Return the summaries as Markdown, the best mean first, learners without some courses last."""
    lines = [
        f"| learner | of | courses | mean of {len(shared(table))} | mean rank "
        f"| furthest behind the best without stored data | CPU seconds | CPU time, {REFERENCE} = 1 | numbers kept |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    found = summaries(table)
    for name in sorted(found, key=lambda name: -found[name].accuracy if found[name].accuracy > 0 else math.inf):
        s, entry = found[name], LEARNERS[name]
        kept = " (keeps data)" if entry.keeps_data else ""
        lines.append(
            f"| {name}{mark(name)}{kept} | {entry.family} | {s.courses} | {number(s.accuracy)} | {s.rank:.1f} "
            f"| {s.behind:.1f} ({s.where}) | {s.seconds:.2g} | {number(s.ratio, '.2g')} | {short(s.numbers)} |"
        )
    return "\n".join(lines)


def short_table(table: Cells) -> str:
    """Return the means of some learners as markdown, the best first, for a page about choosing one."""
    found = summaries(table)
    lines = [
        f"Means over {len(shared(table))} courses:",
        "",
        "| learner | accuracy (%) | rank without stored data | numbers kept | CPU time |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in sorted(IN_SHORT, key=lambda name: -found[name].accuracy):
        s, kept = found[name], LEARNERS[name].keeps_data
        shown = f"`{name}`" if LEARNERS[name].family == "relive" else name
        lines.append(
            f"| {shown} | {s.accuracy:.1f} | {'–' if kept else f'{s.rank:.1f}'} "
            f"| {'the data' if kept else short(s.numbers)} | {s.seconds:.2g} s |"
        )
    return "\n".join(lines)


def number(value: float, form: str = ".1f") -> str:
    """Return a number as text; a dash for nan.

    >>> number(12.34), number(math.nan)
    ('12.3', '–')
    """
    return "–" if math.isnan(value) else format(value, form)


def mark(learner: str) -> str:
    """Return a mark for learners that were given only a part of large data sets."""
    return " †" if LEARNERS[learner].most else ""


def short(number: float) -> str:
    """Return a large number with two significant digits.

    >>> [short(n) for n in (950, 12345, 455_000, 2_010_000)]
    ['950', '12 thousand', '460 thousand', '2.0 million']
    """
    digits = float(f"{number:.2g}")
    unit, name = next((u, n) for u, n in ((1e6, " million"), (1e3, " thousand"), (1, "")) if digits >= u or u == 1)
    return f"{digits / unit:.{0 if digits >= 10 * unit or not name else 1}f}{name}"


def course_tables(table: Cells) -> str:
    """Return mean ± SEM of every cell as Markdown, in tables of a few courses of one kind."""
    parts = []
    for kind in dict.fromkeys(course.kind for course in COURSES.values()):
        names = [name for name in table if COURSES[name].kind == kind]
        chunks = [names[start : start + COLUMNS] for start in range(0, len(names), COLUMNS)]
        for k, chunk in enumerate(chunks, 1):
            several = f", {k} of {len(chunks)}" if len(chunks) > 1 else ""
            parts.append(f"**{kind.capitalize()}{several}**\n\n{course_table(table, chunk)}")
    return "\n\n".join(parts)


def course_table(table: Cells, names: Sequence[str]) -> str:
    """Return one table, the best without data in bold."""
    best = {name: best_without_data(table[name]) for name in names}
    lines = [
        "| learner | " + " | ".join(title(name, COURSES[name]) for name in names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for learner in LEARNERS:
        if any(learner in table[name] for name in names):
            values = [cell(table[name].get(learner, []), COURSES[name], learner == best[name]) for name in names]
            lines.append(f"| {learner}{mark(learner)} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def title(name: str, course: Course) -> str:
    """Return a column's title."""
    return f"{name}{' (macro)' if shows_macro(course) else ''}"


def shows_macro(course: Course) -> bool:
    """Return whether classes are so unequal that the mean over classes is worth showing."""
    return course.rare or course.source in ("shuttle", "glass", "soybean", "zoo")


def cell(runs: Sequence[Run], course: Course, best: bool = False) -> str:
    """Return mean ± SEM in %, the mean of macro accuracy where it is shown, and how many seeds if not all."""
    if not runs:
        return "–"
    text = with_error([run.accuracy for run in runs])
    if shows_macro(course):
        text += f" ({100 * statistics.fmean(run.macro for run in runs):.1f})"
    if len(runs) < SEEDS:
        text += f" [{len(runs)}]"
    return f"**{text}**" if best else text


def with_error(values: Sequence[float]) -> str:
    """Return mean ± SEM in %.

    >>> with_error([0.5, 0.52])
    '51.0 ± 1.0'
    """
    sem = f" ± {100 * statistics.stdev(values) / math.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.fmean(values):.1f}{sem}"


def behind_table(table: Cells, learner: str) -> str:
    """Return where a learner is more than a point behind the best without data, as Markdown, the largest gap first."""
    rows = []
    for course, learners in table.items():
        leads = leads_without_data(learners, learner) if learner in learners else {}
        best = min(leads, key=lambda name: leads[name], default="")
        if best and leads[best] < -CLOSE:
            both = {run.seed for run in learners[learner]} & {run.seed for run in learners[best]}
            own, theirs = (
                cell([run for run in learners[name] if run.seed in both], COURSES[course]) for name in (learner, best)
            )
            rows.append((leads[best], f"| {course} | {own} | {theirs} | {best} | {-leads[best]:.1f} |"))
    if not rows:
        return f"`{learner}` is nowhere more than {CLOSE:g} point behind the best learner that keeps no data."
    lines = [f"| course | {learner} | the best | which is | points behind |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(line for _, line in sorted(rows))])


def page(runs: Sequence[Run]) -> str:
    """Return all tables."""
    table = cells(runs)
    parts = [f"### Every learner\n\n{summary_table(table)}"]
    for learner in FOLLOWED:
        if any(learner in learners for learners in table.values()):
            parts.append(f"### Where `{learner}` is behind\n\n{behind_table(table, learner)}")
    legend = (
        f"Mean ± SEM in % over {SEEDS} seeds, or as many as the brackets [ ] say; macro accuracy, where it is shown, "
        "in parentheses; the best learner without data in bold."
    )
    return "\n\n".join([*parts, f"### Every course\n\n{legend}\n\n{course_tables(table)}"])
