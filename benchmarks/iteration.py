"""Milliseconds of one training iteration, one thread: ``python benchmarks/iteration.py [protocol] [scenario]``.

Only the ratio to the machine's own speed means something: the speed of a plain matrix product is measured before and
after each method, and printed beside it. Run it on a quiet machine.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time

import torch

from relive import Learner, load_data, make_method, make_spec, scenario_of, tasks_of
from relive.methods import METHODS

WARM_UP, MEASURED = 10, 100


def gflops(n: int = 50) -> float:
    """Return the speed of a (256, 784) × (784, 400) product."""
    a, b = torch.randn(256, 784), torch.randn(784, 400)
    start = time.perf_counter()
    for _ in range(n):
        a @ b
    return 2 * 256 * 784 * 400 * n / (time.perf_counter() - start) / 1e9


def milliseconds(protocol: str, scenario: str, method: str) -> float:
    """Return the median time of an iteration of the last task; the tasks before it get two iterations each."""
    spec = make_spec(protocol, scenario, method)
    tasks = tasks_of(protocol, load_data("mnist"), spec.tasks, seed=0)
    layout = scenario_of(scenario, [task.classes for task in tasks])
    learner = Learner(make_method(method), layout, tasks[0].n_inputs, hidden=spec.hidden)
    for k in range(1, spec.tasks):
        learner.learn(tasks[:k], 2)
    ticks: list[float] = []
    learner.learn(tasks, WARM_UP + MEASURED, lambda iteration, loss: ticks.append(time.perf_counter()))
    ticks = ticks[WARM_UP:]
    return 1000 * statistics.median(b - a for a, b in itertools.pairwise(ticks))


def main() -> None:
    protocol, scenario = (*sys.argv[1:], *("split", "class")[len(sys.argv) - 1 :])
    torch.set_num_threads(1)
    gflops()
    print(f"{protocol}, {scenario}, last task: median of {MEASURED} iterations, one thread")
    for name, method in METHODS.items():
        if scenario in method.scenarios:
            before = gflops()
            ms = milliseconds(protocol, scenario, name)
            print(f"{name:<12} {ms:7.2f} ms   matrix products at {before:.0f} to {gflops():.0f} GFLOP/s", flush=True)


if __name__ == "__main__":
    main()
