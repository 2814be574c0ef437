"""Times iterations of Avalanche and of relive alternately: a block of theirs, a block of ours, and again.

Avalanche's training loop runs unchanged; a plugin in it reads the clock, and lets relive do its block every ``size``
iterations.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from avalanche.core import SupervisedPlugin

from benchmarks.common import Block, Subject
from benchmarks.peers import avalanche_split, relive_split
from relive import Learner
from relive.core.sources import Part
from relive.methods.ewc import fisher

Seconds = dict[str, list[float]]


class Turns(SupervisedPlugin):  # type: ignore[misc]
    """Records how long each iteration takes, and after every ``size`` of them lets relive do as many."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.others: dict[str, Block] = {}
        self.begin({})

    def begin(self, others: dict[str, Block]) -> None:
        """Start a new task."""
        self.others = others
        self.seconds: Seconds = {name: [] for name in ("theirs", *others)}
        self.ticks: list[float] = []

    def after_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.ticks.append(time.perf_counter())
        if len(self.ticks) == self.size + 2:  # the first iteration after a change does not count, as in ours
            self.seconds["theirs"] += [b - a for a, b in zip(self.ticks[1:], self.ticks[2:], strict=False)]
            for name, block in self.others.items():
                self.seconds[name] += block(self.size)
            self.ticks = []


def compare(theirs: str, ours: Sequence[str], tasks: Sequence[Any], rounds: int, size: int) -> dict[str, Any]:
    """Return the median milliseconds of an iteration of each task of Class-IL.

    Avalanche trains its generator in a separate loop after the classifier's, with as many iterations; relive in the
    same loop. So a generator's iteration and a classifier's are added.
    """
    iterations = rounds * (size + 2)
    torch.manual_seed(0)
    stream = avalanche_split.stream_of(tasks, "class", normalise=theirs == "generative_replay")
    strategy = getattr(avalanche_split, theirs)(avalanche_split.single_head(), iterations)
    clocks = [Turns(size)]
    strategy.plugins.insert(0, clocks[0])
    if hasattr(strategy, "generator_strategy"):
        clocks.append(Turns(size))
        strategy.generator_strategy.plugins.insert(0, clocks[1])
    learners = {method: relive_split.learner_of(method, "class", tasks, seed=0) for method in ours}
    found: dict[str, Any] = {"tasks": []}
    for k, experience in enumerate(stream.train_stream, start=1):
        blocks: dict[str, Block] = {method: Subject(learner, tasks[:k]).block for method, learner in learners.items()}
        for clock in clocks:
            clock.begin(blocks)
        strategy.train(experience, drop_last=True)
        medians = {"theirs": sum(statistics.median(clock.seconds["theirs"]) for clock in clocks)}
        for method, learner in learners.items():
            medians[method] = statistics.median(s for clock in clocks for s in clock.seconds[method])
            learner.seen = k - 1
            learner.learn(tasks[:k], 1)
        found["tasks"].append({name: round(1000 * value, 3) for name, value in medians.items()})
    if theirs == "ewc":
        found["fisher"] = fishers(strategy, experience, learners["ewc"], tasks)
    return found


def fishers(strategy: Any, experience: Any, learner: Learner, tasks: Sequence[Any]) -> dict[str, float]:
    """Return the milliseconds of the Fisher information of the last task."""
    plugin = next(p for p in strategy.plugins if hasattr(p, "compute_importances"))
    start = time.perf_counter()
    plugin.compute_importances(
        strategy.model, strategy._criterion, strategy.optimizer, experience.dataset, strategy.device, 128
    )
    middle = time.perf_counter()
    fisher(learner.net, [Part(len(tasks) - 1, tasks[-1].train)], len(tasks), learner.method.problem)
    end = time.perf_counter()
    return {"theirs": round(1000 * (middle - start), 1), "ewc": round(1000 * (end - middle), 1)}


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Return how many times as long the peer's iterations take as relive's, all five tasks together."""
    total = {name: sum(task[name] for task in found["tasks"]) for name in found["tasks"][0]}
    return {name: round(total["theirs"] / value, 3) for name, value in total.items() if name != "theirs"}
