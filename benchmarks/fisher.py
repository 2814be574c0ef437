"""The exact Fisher information in one batched pass, against one sample at a time."""

from __future__ import annotations

import statistics
import time

import torch

from benchmarks.common import Effort, Figure, Findings, Subject, subject
from benchmarks.floor import Floor, recorded
from benchmarks.plain import Plain, one_by_one
from relive.networks.fisher import fisher_sum
from relive.report.style import PROTOCOL_TITLES

SAMPLES = 10_000
GOAL = 60.0
SHARE_GOAL = 0.9  # of its own matrix products


def plain_copy(of: Subject) -> Plain:
    """Return a plain learner with the subject's parameters."""
    problem = of.learner.method.problem
    other = Plain("ewc", problem.scenario, problem.sizes.inputs, hidden=problem.sizes.hidden)
    other.load(of.learner.net.state_dict())
    return other


def compare(protocol: str, few: int, rounds: int) -> dict[str, float]:
    """Return the seconds of both for 10,000 samples; one at a time is measured on a few samples and scaled."""
    of = subject(protocol, "domain", "ewc", task=1)
    of.block(20)  # parameters after some training
    train, active = of.tasks[0].train, of.learner.scenario.active(0, 1)
    other = plain_copy(of)
    columns = other.columns(0)

    def batched(n: int) -> dict[str, torch.Tensor]:
        chunks = [slice(start, min(start + 1000, n)) for start in range(0, n, 1000)]
        pairs = ((train.inputs(rows), train.labels[rows]) for rows in chunks)
        return fisher_sum(of.learner.net, pairs, active, "predicted")

    same = batched(few)
    for (name, _), slow in zip(
        other.net.named_parameters(), one_by_one(other.net, train.inputs(slice(0, few)), columns), strict=True
    ):
        torch.testing.assert_close(slow, same[name][: len(slow)], rtol=1e-3, atol=float(slow.max()) * 1e-5)
    floor = Floor(recorded(lambda: batched(SAMPLES)))
    ours, theirs, floors = [], [], []
    for _ in range(rounds):
        start = time.perf_counter()
        one_by_one(other.net, train.inputs(slice(0, few)), columns)
        middle = time.perf_counter()
        batched(SAMPLES)
        theirs.append((middle - start) * SAMPLES / few)
        ours.append(time.perf_counter() - middle)
        floors.append(floor())
    return {
        "batched": statistics.median(ours),
        "its matrix products alone": statistics.median(floors),
        "one at a time": statistics.median(theirs),
        "measured on": few,
    }


def measure(effort: Effort) -> Findings:
    """Compare on both architectures."""
    found = Findings()
    for protocol in ("split", "permuted"):
        effort.say(PROTOCOL_TITLES[protocol])
        seconds = compare(protocol, effort.n(200, 50), effort.n(3, 1))
        found.data[protocol] = seconds
        few, most = seconds["measured on"], seconds["one at a time"] / seconds["its matrix products alone"]
        found.figures.append(
            Figure(
                f"{PROTOCOL_TITLES[protocol]}'s network, {SAMPLES:,} samples",
                seconds["one at a time"] / seconds["batched"],
                goal=GOAL,
                note=f"one at a time measured on {few} samples and scaled; the bare products would give {most:.0f}",
            )
        )
        share = seconds["its matrix products alone"] / seconds["batched"]
        found.figures.append(
            Figure(f"{PROTOCOL_TITLES[protocol]}'s network, share of its products", share, "", SHARE_GOAL)
        )
    return found
