"""Training times of RtF, DGR, DGR+distill and SI: ``python -m benchmarks.training_times``, on a quiet machine.

For every task, the methods take turns at training a block of iterations. A run's time is the sum over the tasks of the
median iteration, times the paper's number of iterations. ``relive report`` compares these times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import ROOT, Subject, in_turns, medians, one_thread, subject
from benchmarks.machine import machine
from relive._util.files import write_atomic
from relive._util.versions import versions
from relive.experiments.spec import SCENARIO_NAMES
from relive.paper.published import PRESETS, PROTOCOL_NAMES
from relive.report.times import TIMES

METHODS = ("rtf", "dgr-distill", "dgr", "si")
ROUNDS = {"split": 4, "permuted": 1}
SIZE = 5


def seconds_of_runs(protocol: str, scenario: str, methods: Sequence[str], rounds: int, size: int) -> dict[str, float]:
    """Return the seconds that a whole run of each method takes."""
    learners = {method: subject(protocol, scenario, method, task=1) for method in methods}
    tasks = subject(protocol, scenario, methods[0], warm=0).tasks
    total = dict.fromkeys(methods, 0.0)
    for k in range(1, len(tasks) + 1):
        subjects = {method: Subject(of.learner, tasks[:k]) for method, of in learners.items()}
        found = medians(in_turns({method: of.block for method, of in subjects.items()}, rounds, size))
        for method, of in subjects.items():
            total[method] += PRESETS[protocol]["iters"] * found[method]
            of.whole_task(1)
    return total


def main() -> None:
    """Measure, and write the file that the report reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--protocol", choices=PROTOCOL_NAMES, action="append")
    parser.add_argument("--into", type=Path, default=ROOT / "reproduction", help="a runs directory or ledger")
    options = parser.parse_args()
    one_thread()
    path = options.into / TIMES
    stored = json.loads(path.read_text()) if path.exists() else {}
    for protocol in options.protocol or PROTOCOL_NAMES:
        for scenario in SCENARIO_NAMES:
            repeats = [
                seconds_of_runs(protocol, scenario, METHODS, ROUNDS[protocol], SIZE) for _ in range(options.repeats)
            ]
            found = {method: [round(seconds[method], 2) for seconds in repeats] for method in METHODS}
            about = {"machine": machine(), "versions": versions(), "load_average": round(os.getloadavg()[0], 2)}
            stored[f"{protocol}/{scenario}"] = {"seconds": found, **about}
            write_atomic(path, (json.dumps(stored, indent=1) + "\n").encode())
            means = [f"{method} {statistics.fmean(seconds):.0f} s" for method, seconds in found.items()]
            print(protocol, scenario, ", ".join(means))


if __name__ == "__main__":
    main()
