"""How much of a worker's time is training: what a run of split MNIST does besides its iterations, method by method.

A run is executed as a worker does it, with checkpoints, samples and result, but with few iterations per task; the
rest does not depend on their number. The share is that of a run with the paper's 2,000 iterations per task.
``python -m benchmarks.whole_run '"si"' 200`` prints one method's seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.common import Effort, Figure, Findings, fresh, one_thread
from relive._util.versions import versions
from relive.core.learner import Learner
from relive.data.datasets.sources import load_data
from relive.experiments import execute
from relive.experiments.checkpoint import FileCheckpoint
from relive.experiments.observer import Observer
from relive.experiments.spec import RunResult, make_spec
from relive.experiments.store import Store
from relive.experiments.worker import Job, execute_job
from relive.paper.comparison import METHODS
from relive.report.style import method_title

GOAL = 0.97
PLACES: dict[str, tuple[object, str]] = {
    "tasks": (execute, "tasks_of"),
    "network and optimizer": (execute, "_learner"),
    "probes and accuracy matrix": (execute, "accuracy"),
    "samples": (execute, "_samples"),
    "checkpoints": (FileCheckpoint, "save"),
    "state for checkpoints": (Learner, "state"),
    "end of task": (Learner, "end"),
}


def profile(method: str, iterations: int) -> dict[str, float]:
    """Return the seconds of a run of split MNIST: of its iterations, and of everything else by kind."""
    data = load_data("mnist", quiet=True)
    spec = make_spec("split", "task" if method == "xdg" else "class", method, seed=1, iters=iterations)
    spent: dict[str, float] = defaultdict(float)

    def timed(kind: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                spent[kind] += time.perf_counter() - start

        return call

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for kind, (place, name) in PLACES.items():
            stack.enter_context(patch.object(place, name, timed(kind, getattr(place, name))))
        start = time.perf_counter()
        values, samples = execute_job(Job(spec.to_json(), versions(), folder), data, Observer(), print)
        result = RunResult.from_json(values)
        Store(Path(folder)).save(result, samples)
        total = time.perf_counter() - start
    iterating = result.train_seconds - spent["end of task"]
    known = iterating + sum(spent.values())
    return {"iterations": iterating, **spent, "other": total - known}


def share(seconds: dict[str, float], factor: float, also: str = "") -> float:
    """Return the share of iterations, and of one more kind, in a run with ``factor`` times as many iterations."""
    longer = seconds | {"iterations": factor * seconds["iterations"]}
    return (longer["iterations"] + longer.get(also, 0)) / sum(longer.values())


def measure(effort: Effort) -> Findings:
    """Measure all methods of the paper."""
    found = Findings()
    for method in METHODS:
        effort.say(method_title(method))
        iterations = effort.n(50, 10)
        seconds = fresh("benchmarks.whole_run", method, iterations)
        rest = {kind: value for kind, value in seconds.items() if kind != "iterations"}
        most = max(rest, key=lambda kind: rest[kind])
        note = f"beside the iterations {sum(rest.values()):.2f} s, most of it {most}: {rest[most]:.2f} s"
        if most == "end of task":
            note += f"; with that counted as training: {share(seconds, 2000 / iterations, most):.3f}"
        found.figures.append(Figure(method_title(method), share(seconds, 2000 / iterations), "", GOAL, note=note))
        found.data[method] = seconds
    return found


if __name__ == "__main__":
    one_thread()
    print(json.dumps(profile(*map(json.loads, sys.argv[1:]))))
