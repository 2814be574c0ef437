"""Time and memory of ``partial_fit`` against the number of tasks learned before: 50 tasks of two new classes each.

    python benchmarks/many_tasks.py [--tasks 50] [--iterations 200]

Prints the time of an early and of a late task, medians of five, and the process's peak memory, with their ratios.
"""

from __future__ import annotations

import argparse
import resource
import statistics

import numpy as np
import torch

from relive import ContinualClassifier


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--methods", nargs="+", default=["none", "ewc", "si", "rtf"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    centres = rng.random((2 * options.tasks, 784))
    for method in options.methods:
        model = ContinualClassifier(method, iterations=options.iterations, likelihood="bernoulli")
        seconds, memory = [], []
        for k in range(options.tasks):
            y = np.repeat([2 * k, 2 * k + 1], 500)
            model.partial_fit(np.clip(centres[y] + rng.normal(0, 0.1, (1000, 784)), 0, 1), y)
            seconds.append(model.lessons_[-1].seconds)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        early, late = statistics.median(seconds[1:6]), statistics.median(seconds[-5:])
        print(f"{method:<8} time   {early:.2f} s (tasks 2 to 6), {late:.2f} s (last five): ratio {late / early:.2f}")
        print(f"{'':<8} memory {memory[1]:.0f} MB, {memory[-1]:.0f} MB: ratio {memory[-1] / memory[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
