"""How time and memory grow: with the number of tasks (a task at 100 over one at 2), with width, with the batch size."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common import AT_MOST, Effort, Figure, Findings, fresh, in_turns, medians, milliseconds, subject
from benchmarks.plain import Plain, PlainSubject
from relive.report.style import method_title

FEW_ROWS = 128  # training rows per task where a hundred tasks are learned: the Fisher information is one batch
EARLY, LATE = 2, 100
GOAL = 1.1
CONSTANT = ("none", "online-ewc", "si", "rtf", "ewc")
WIDTH, BATCH = 400, 128  # held fixed while something else grows
TASKS, WIDTHS, BATCHES = (2, 20, 100), (100, 400, 1000, 2000), (32, 128, 512, 1024)
CURVES = ("none", "ewc", "rtf")


def late_over_early(method: str, late: int, rounds: int, iterations: int) -> dict[str, float]:
    """Return the milliseconds of a whole task, early and late: permuted MNIST, Domain-IL, the paper's sizes."""
    subjects = {str(k): subject("permuted", "domain", method, task=k, tasks=late, rows=FEW_ROWS) for k in (EARLY, late)}
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for of in subjects.values():
        of.whole_task(2)
    for _ in range(rounds):
        for name, of in subjects.items():
            seconds[name].append(of.whole_task(iterations))
    early, last = (statistics.median(values) for values in seconds.values())
    return {"early": 1000 * early, "late": 1000 * last}


def plain_ewc(late: int) -> dict[str, float]:
    """Return the milliseconds of an iteration of plain EWC, which has a term per task, early and late."""
    of = subject("permuted", "domain", "ewc", task=1, tasks=late, rows=FEW_ROWS)
    problem = of.learner.method.problem
    found = {}
    for name, task in (("early", EARLY), ("late", late)):
        plain = Plain("ewc", problem.scenario, problem.sizes.inputs, hidden=problem.sizes.hidden, fisher_rows=2)
        plain.seen = task - 1
        term = (plain.fisher(of.tasks[0]), [p.detach().clone() for p in plain.net.parameters()])
        plain.terms = [([t.clone() for t in term[0]], [t.clone() for t in term[1]]) for _ in range(task - 1)]
        block = PlainSubject(plain, list(of.tasks) * late).begin(task)
        found[name] = 1000 * statistics.median(block(2))
    return found


def measure_tasks(effort: Effort) -> Findings:
    """Return the time of a task at 100 over that of one at 2."""
    found, late = Findings(), effort.n(LATE, 10)
    for method in CONSTANT:
        effort.say(method_title(method))
        result = late_over_early(method, late, effort.n(5, 2), effort.n(10, 3))
        found.data[method] = result
        name = f"{method_title(method)}, task {late} over task {EARLY}"
        found.figures.append(Figure(name, result["late"] / result["early"], goal=GOAL, sense=AT_MOST))
    effort.say("plain EWC")
    result = found.data["plain ewc"] = plain_ewc(late)
    name = f"plain EWC (a term per task), task {late} over task {EARLY}"
    found.figures.append(Figure(name, result["late"] / result["early"], note="per iteration; no goal: not ours"))
    return found


def _points(effort: Effort) -> list[tuple[str, str, int, dict[str, Any]]]:
    """Return what is measured: which curve, which method, which value, and what to change for it."""
    tasks, widths, batches = (values[:2] if effort.quick else values for values in (TASKS, WIDTHS, BATCHES))
    points: list[tuple[str, str, int, dict[str, Any]]] = []
    for method in CURVES:
        points += [("tasks", method, n, {"tasks": n, "hidden": WIDTH}) for n in tasks]
        points += [("width", method, n, {"tasks": 2, "hidden": n}) for n in widths]
        points += [("batch", method, n, {"tasks": 2, "hidden": WIDTH, "batch_size": n}) for n in batches]
    return points


def measure_curves(effort: Effort) -> Findings:
    """Return milliseconds per iteration and peak megabytes against tasks, width and batch size."""
    found = Findings()
    curves: dict[str, Any] = {}
    for curve in ("tasks", "width", "batch"):
        for method in CURVES:
            points = [(n, changes) for c, m, n, changes in _points(effort) if (c, m) == (curve, method)]
            effort.say(f"{method_title(method)}, {curve}")
            subjects = {
                str(n): subject("permuted", "domain", method, rows=max(FEW_ROWS, n), **changes) for n, changes in points
            }
            times = medians(in_turns({n: of.block for n, of in subjects.items()}, effort.n(3, 1), 3))
            line: dict[str, Any] = {"milliseconds": milliseconds(times)}
            if method == "rtf" or (method == "ewc" and curve == "tasks"):
                line["megabytes"] = {
                    str(n): fresh("benchmarks.memory", "domain", method, 1, FEW_ROWS, changes) for n, changes in points
                }
            curves[f"{curve} {method}"] = line
    found.data = curves
    many = curves["tasks rtf"]["megabytes"]
    first, *_, last = many
    found.figures.append(
        Figure(f"RtF's peak memory with {last} tasks over {first}", many[last] / many[first], note="all of MNIST in it")
    )
    return found
