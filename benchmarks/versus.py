"""Each of the ten methods against its plain PyTorch version: split MNIST, Task-IL, five tasks."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Effort, Figure, Findings, Subject, in_turns, medians, milliseconds, tasks_for
from benchmarks.plain import Plain, PlainSubject
from relive.learner import Learner
from relive.methods import METHODS, make_method
from relive.methods.ewc import fisher
from relive.report.style import METHOD_TITLES
from relive.scenarios import scenario_of

N_TASKS = 5
ITERATIONS_PER_FISHER = 2000  # what the paper does on split MNIST
GOAL, RTF_GOAL, EWC_GOAL = 1.2, 1.6, 8.0
FISHER_ROWS = 200  # samples that the plain Fisher is measured on; its time is scaled to the task's


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
    fisher(ours.net, task, len(plain.tasks), ours.method.problem)
    return {"ours": time.perf_counter() - middle, "plain": (middle - start) * len(task.train) / few}


def whole_run(result: dict[str, Any], iterations: int) -> float:
    """Return how many times as long the plain version takes for a run with so many iterations per task."""
    total: dict[str, float] = {
        who: sum(iterations * task[who] + result.get("fisher", {}).get(who, 0.0) for task in result["tasks"])
        for who in ("ours", "plain")
    }
    return total["plain"] / total["ours"]


def measure(effort: Effort) -> Findings:
    """Compare the ten methods."""
    found = Findings()
    for method in METHODS:
        effort.say(METHOD_TITLES[method])
        result = compare(method, effort.n(4, 1), effort.n(6, 3))
        title = METHOD_TITLES[method]
        result["speed-up"] = whole_run(result, ITERATIONS_PER_FISHER)
        found.data[method] = result
        if method == "ewc":
            note = f"a Fisher of 12,000 samples every {ITERATIONS_PER_FISHER} iterations, as in the paper"
            found.figures.append(Figure(f"{title} with its Fisher", result["speed-up"], goal=EWC_GOAL, note=note))
            for fewer in (200, 500):
                note = f"a Fisher every {fewer} iterations"
                found.figures.append(Figure(f"{title} with its Fisher", whole_run(result, fewer), note=note))
            iterations_alone = whole_run(result | {"fisher": {}}, ITERATIONS_PER_FISHER)
            found.figures.append(Figure(f"{title} without its Fisher", iterations_alone, goal=GOAL))
        else:
            found.figures.append(Figure(title, result["speed-up"], goal=GOAL, note="whole run"))
        if method == "rtf":
            last = result["tasks"][-1]
            found.figures.append(Figure(f"{title} at task 5", last["plain"] / last["ours"], goal=RTF_GOAL))
    return found
