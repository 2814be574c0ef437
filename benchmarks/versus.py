"""Each of the ten methods against its plain PyTorch version: split MNIST, Task-IL, five tasks."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Effort, Figure, Findings, Subject, in_turns, medians, milliseconds, tasks_for
from benchmarks.plain import Plain, PlainSubject
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.core.sources import Part
from relive.methods import make_method
from relive.methods.ewc import fisher
from relive.paper.comparison import METHODS
from relive.report.style import method_title

N_TASKS = 5
FEW, PAPER_S = 100, 2000  # iterations per task: a short run, and the paper's on split MNIST
GOAL, RTF_GOAL, EWC_GOAL = 1.2, 1.6, 8.0
FISHER_ROWS = 200  # samples that the plain Fisher is timed on, scaled to the task's number of samples


def compare(method: str, rounds: int, size: int) -> dict[str, Any]:
    """Return milliseconds per iteration of each task, ours and plain, and of the Fisher information if there is one."""
    tasks = tasks_for("split", N_TASKS)
    scenario = scenario_of("task", [task.classes for task in tasks])
    ours = Learner(make_method(method), scenario, tasks[0].n_inputs)
    plain = PlainSubject(Plain(method, scenario, tasks[0].n_inputs, fisher_rows=10), tasks)
    plain.learner.load(ours.net.state_dict())
    result: dict[str, Any] = {"tasks": []}
    for k in range(1, N_TASKS + 1):
        blocks = {"ours": Subject(ours, tasks[:k]).block, "plain": plain.begin(k)}
        result["tasks"].append(milliseconds(medians(in_turns(blocks, rounds, size))))
        ours.seen = k - 1
        ours.learn(tasks[:k], 1)
        plain.learner.after_task(tasks[k - 1])
    if "ewc" in method:
        result["fisher"] = milliseconds(_fisher_seconds(ours, plain, FISHER_ROWS))
    return result


def _fisher_seconds(ours: Learner, plain: PlainSubject, few: int) -> dict[str, float]:
    """Return the seconds of the Fisher information of the last task's training set."""
    task = plain.tasks[-1]
    plain.learner.fisher_rows = few
    start = time.perf_counter()
    plain.learner.fisher(task)
    middle = time.perf_counter()
    fisher(ours.net, [Part(len(plain.tasks) - 1, task.train)], len(plain.tasks), ours.method.problem)
    return {"ours": time.perf_counter() - middle, "plain": (middle - start) * len(task.train) / few}


def whole_run(result: dict[str, Any], iterations: int) -> float:
    """Return the plain version's time over ours for a run with so many iterations per task."""
    total: dict[str, float] = {
        who: sum(iterations * task[who] + result.get("fisher", {}).get(who, 0.0) for task in result["tasks"])
        for who in ("ours", "plain")
    }
    return total["plain"] / total["ours"]


def measure(effort: Effort) -> Findings:
    """Compare the ten methods."""
    found = Findings()
    for method in METHODS:
        effort.say(method_title(method))
        result = compare(method, effort.n(4, 1), effort.n(6, 3))
        title = method_title(method)
        result["speed-up"] = whole_run(result, FEW)
        found.data[method] = result
        if "fisher" in result:
            for iterations, goal in ((FEW, EWC_GOAL), (PAPER_S, GOAL)):
                note = f"{iterations} iterations and a Fisher of {len(tasks_for('split', N_TASKS)[-1].train):,} samples"
                speed_up = whole_run(result, iterations)
                found.figures.append(Figure(f"{title} with its Fisher", speed_up, goal=goal, note=f"{note} per task"))
        else:
            found.figures.append(Figure(title, result["speed-up"], goal=GOAL, note=f"{FEW} iterations per task"))
        if method == "rtf":
            last = result["tasks"][-1]
            found.figures.append(Figure(f"{title} at task 5", last["plain"] / last["ours"], goal=RTF_GOAL))
    return found
