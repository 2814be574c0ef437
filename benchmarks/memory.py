"""Peak memory of one permuted run in a fresh process, MNIST included.

``python -m benchmarks.memory '"class"' '"rtf"' 5 null '{"tasks": 10}'`` prints megabytes. It does what a run
does, a checkpoint included, but tests on 1,000 images only; a run tests on all, 1,000 at a time.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from benchmarks.common import AT_MOST, Effort, Figure, Findings, fresh, one_thread, subject
from relive.core.evaluation import accuracy

GOAL = 700.0


def peak(scenario: str, method: str, iterations: int, rows: int | None, changes: dict[str, Any]) -> float:
    """Do a run, and return the peak memory of this process.

    Each task trains on ``rows`` samples; all of MNIST is in memory all the same.
    """
    of = subject("permuted", scenario, method, warm=iterations, rows=rows, **changes)
    of.learner.learn(of.tasks, iterations)
    for k in {0, len(of.tasks) - 1}:
        accuracy(of.learner, of.tasks[k], k, limit=1000)
    with tempfile.TemporaryDirectory() as folder:
        save_file(of.learner.state(), Path(folder) / "state.safetensors")
    return high_water()


def high_water() -> float:
    """Return the peak memory in megabytes; ``ru_maxrss`` would also count what the parent process had at the start."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def measure(effort: Effort) -> Findings:
    """Return the peak memory of ten tasks of permuted MNIST with RtF, Class-IL."""
    effort.say("ten tasks in a fresh process")
    megabytes = fresh("benchmarks.memory", "class", "rtf", effort.n(5, 1), None, {})
    name = "RtF, permuted MNIST, ten tasks, MNIST included"
    return Findings([Figure(name, megabytes, "MB", GOAL, AT_MOST)])


if __name__ == "__main__":
    one_thread()
    print(json.dumps(peak(*map(json.loads, sys.argv[1:]))))
