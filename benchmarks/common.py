"""What all parts of the benchmark share: prepared learners, alternated timing, figures with their goals.

The part that compares with an older commit runs this module on that commit's ``relive``, so it imports little.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from relive.core.learner import Learner
from relive.core.method import Method
from relive.core.scenarios import scenario_of
from relive.data.datasets import sources
from relive.data.protocols import tasks_of
from relive.data.tasks import Task
from relive.experiments.spec import make_spec
from relive.methods import make_method

ROOT = Path(__file__).parents[1]
AT_LEAST, AT_MOST = "≥", "≤"
Block = Callable[[int], list[float]]  # does n iterations, and returns the seconds of each


@dataclass(frozen=True)
class Figure:
    """A measured number with its goal.

    Attributes
    ----------
    name
        What was measured.
    value
        The number, of one repeat.
    unit
        The unit after the number: "×" for a ratio, "MB", or nothing.
    goal, sense
        The goal, and whether it is a lower or an upper limit; None if there is no goal.
    note
        What a reader needs to know besides the number.
    """

    name: str
    value: float
    unit: str = "×"
    goal: float | None = None
    sense: str = AT_LEAST
    note: str = ""


@dataclass
class Findings:
    """What a part found: figures for the table, the data of its picture, and how the machine differed from usual."""

    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Effort:
    """How much is done: all of it, or (``quick``) just enough to check that everything works."""

    quick: bool = False
    say: Callable[[str], None] = lambda text: None

    def n(self, full: int, quick: int) -> int:
        """Return how often to do something."""
        return quick if self.quick else full


@functools.cache
def tasks_for(protocol: str, n_tasks: int, rows: int | None = None) -> list[Task]:
    """Return tasks made of MNIST, with only ``rows`` training rows each if given."""
    load = vars(sources).get("load_data") or vars(sources)["load"]  # its name at older commits
    tasks = tasks_of(protocol, load("mnist"), n_tasks, seed=0)
    if rows is None:
        return tasks
    return [
        replace(task, train=replace(task.train, pixels=task.train.pixels[:rows], labels=task.train.labels[:rows]))
        for task in tasks
    ]


@dataclass
class Subject:
    """A learner that is about to learn its last task."""

    learner: Learner
    tasks: Sequence[Task]

    def block(self, n: int) -> list[float]:
        """Do n + 1 iterations of the last task, and return the seconds of each but the first."""
        ticks: list[float] = []

        def on_step(iteration: int, loss: float) -> None:
            ticks.append(time.perf_counter())

        self.learner.seen = len(self.tasks) - 1
        with patch.object(self.learner.method, "after_task", return_value=None):
            self.learner.learn(self.tasks, n + 1, on_step)
        return [b - a for a, b in itertools.pairwise(ticks)]

    def whole_task(self, n: int) -> float:
        """Return the seconds of the whole last task: before it, n iterations, and after it."""
        self.learner.seen = len(self.tasks) - 1
        start = time.perf_counter()
        self.learner.learn(self.tasks, n)
        return time.perf_counter() - start


def subject(
    protocol: str,
    scenario: str,
    method: str | Method,
    *,
    task: int | None = None,
    rows: int | None = None,
    warm: int = 1,
    **changes: Any,
) -> Subject:
    """Return a learner with the paper's sizes that is about to learn a task.

    Parameters
    ----------
    protocol, scenario, method
        What to learn, and how; a method may be one that only the benchmark has.
    task
        The task to measure, from 1; the last one if not given.
    rows
        Training rows per task; all of them if not given.
    warm
        Iterations of each task before.
    changes
        Of the spec: hidden, batch_size, tasks …
    """
    name = method if isinstance(method, str) else "dgr-distill"
    spec = make_spec(protocol, scenario, name, **changes)
    tasks = tasks_for(protocol, spec.tasks, rows)
    layout = scenario_of(scenario, [t.classes for t in tasks])
    learner = Learner(
        make_method(name, **spec.settings) if isinstance(method, str) else method,
        layout,
        tasks[0].n_inputs,
        hidden=spec.hidden,
        batch_size=spec.batch_size,
        learning_rate=spec.learning_rate,
    )
    last = task or spec.tasks
    for k in range(1, last):
        learner.learn(tasks[:k], warm)
    return Subject(learner, tasks[:last])


def in_turns(blocks: Mapping[str, Block], rounds: int, size: int) -> dict[str, list[float]]:
    """Alternate between blocks, ``size`` iterations each, ``rounds`` times; return the seconds of each iteration."""
    seconds: dict[str, list[float]] = {name: [] for name in blocks}
    for block in blocks.values():
        block(2)  # warm up
    for _ in range(rounds):
        for name, block in blocks.items():
            seconds[name] += block(size)
    return seconds


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def milliseconds(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the same in milliseconds, rounded for the record."""
    return {name: round(1000 * value, 3) for name, value in seconds.items()}


def environment(source: Path = ROOT / "src", threads: int = 1) -> dict[str, str]:
    """Return the environment of a fresh process that uses the package at ``source``."""
    return os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def fresh(module: str, *arguments: object, source: Path = ROOT / "src", **variables: str) -> Any:
    """Run a module of the benchmark in a fresh process, with these variables, and return the JSON that it prints."""
    command = [sys.executable, "-m", module, *(json.dumps(a) for a in arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment(source) | variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def one_thread() -> None:
    """Use a single thread in this process."""
    torch.set_num_threads(1)
