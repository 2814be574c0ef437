"""Time and memory of ``partial_fit`` against the number of tasks learned before: fifty tasks.

    python benchmarks/many_tasks.py [--tasks 50] [--iterations 60] [--output FILE]

A model is kept after two tasks and after fifty. Then both learn one more task, alternately, each from a copy, so that
other load on the machine affects both alike; the ratio is of medians of CPU time, on one thread. In one experiment
every task brings two new classes, and the output layer grows from 6 units to 102; in the other all tasks have the same
ten. Memory is the peak of a fresh process.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relive import ContinualClassifier
from relive._util.versions import versions

Rows = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
EARLY = 2
TURNS = 7


def rows(labels: list[int], rng: np.random.Generator) -> Rows:
    """Return 1000 samples of these classes, each class around its own centre."""
    y = np.resize(labels, 1000)
    centres = np.stack([np.random.default_rng(label).random(784) for label in labels])
    return np.clip(centres[np.arange(1000) % len(labels)] + rng.normal(0, 0.1, (1000, 784)), 0, 1), y


def peak() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method: str, new_classes: bool, tasks: int, iterations: int) -> dict[str, float]:
    """Return the seconds of one more task early and late, the peak memory at both times, and both ratios."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)

    def task(k: int) -> Rows:
        return rows([2 * k, 2 * k + 1] if new_classes else list(range(10)), rng)

    model = ContinualClassifier(method, iterations=iterations, likelihood="bernoulli")
    models, memory = [], []
    for k in range(tasks):
        model.partial_fit(*task(k))
        if k + 1 in (EARLY, tasks):
            models.append(copy.deepcopy(model))
            memory.append(peak())
    seconds: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for known, times in zip(models, seconds, strict=True):
            pupil, data = copy.deepcopy(known), task(known.n_tasks_)
            start = time.process_time()
            pupil.partial_fit(*data)
            times.append(time.process_time() - start)
    early, late = map(statistics.median, seconds)
    return {
        "early_seconds": early,
        "late_seconds": late,
        "time": late / early,
        "early_megabytes": memory[0],
        "late_megabytes": memory[1],
        "memory": memory[1] / memory[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--methods", nargs="+", default=["none", "ewc", "online-ewc", "si", "lwf", "dgr", "rtf"])
    parser.add_argument("--output", type=Path, help="write the figures here, as JSON")
    options = parser.parse_args()
    fresh = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1)
    found: dict[str, Any] = {}
    for new_classes in (True, False):
        print(f"task {options.tasks + 1} over task {EARLY + 1}, {'new' if new_classes else 'the same'} classes")
        for method in options.methods:
            figures = fresh.submit(measure, method, new_classes, options.tasks, options.iterations).result()
            found[f"{method}, {'new' if new_classes else 'same'} classes"] = figures
            print(
                f"  {method:<12} time {figures['time']:.2f} ({figures['early_seconds']:.2f} s, "
                f"{figures['late_seconds']:.2f} s), memory {figures['memory']:.2f} "
                f"({figures['early_megabytes']:.0f} MB, {figures['late_megabytes']:.0f} MB)",
                flush=True,
            )
    if options.output:
        about = {"tasks": options.tasks, "iterations": options.iterations, "turns": TURNS}
        about |= {"load": os.getloadavg()[0], "versions": versions()}
        options.output.write_text(json.dumps(about | {"figures": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
