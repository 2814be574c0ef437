"""The plain baseline must be the same algorithm as ``relive``, or the comparison means nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from benchmarks import training_times
from benchmarks.bench import rows
from benchmarks.common import Block, Subject
from benchmarks.false_alarms import false_alarms
from benchmarks.floor import Floor, flop, products_of
from benchmarks.machine import machine
from benchmarks.plain import Part, Plain, one_by_one
from benchmarks.whole_run import share

from relive._util.seeds import stream
from relive._util.statistics import holm, mean_and_sem, welch
from relive.core.batch import Batch
from relive.core.learner import Learner
from relive.core.scenarios import Scenario, scenario_of
from relive.data.tasks import Task
from relive.methods import make_method
from relive.methods.xdg import XdG
from relive.networks.fisher import fisher_sum
from relive.paper.comparison import METHODS
from relive.paper.published import PUBLISHED
from tests.plain import record, split_tasks

# Noise drawn for all heads at once equals noise drawn head by head if each head draws a multiple of 16 numbers.
HIDDEN, LATENT, BATCH = 12, 8, 16
CELLS = [(method, "task") for method in METHODS] + [(method, "domain") for method in ("none", "ewc", "si", "rtf")]


def ours(method: str, scenario: Scenario, tasks: list[Task]) -> Learner:
    return Learner(
        make_method(method), scenario, tasks[0].n_inputs, hidden=HIDDEN, latent=LATENT, batch_size=BATCH, seed=3
    )


def plain(method: str, scenario: Scenario, learner: Learner, tasks: list[Task]) -> Plain:
    sizes = {"hidden": HIDDEN, "latent": LATENT, "batch_size": BATCH}
    other = Plain(method, scenario, tasks[0].n_inputs, **sizes, rng=stream(3, "noise"))
    other.load(learner.net.state_dict())
    if isinstance(learner.method, XdG):
        other.gates = learner.method.gates_
        other.rng = stream(3, "noise")
    return other


def parts(current: Batch, scenario: Scenario) -> list[Part]:
    """Return the rows of a step task by task."""
    unit = current.target.argmax(1)
    found = []
    for k in sorted(set(current.task.tolist())):
        mine = current.task == k
        found.append((k, current.x[mine], unit[mine] - int(scenario.units(k)[0])))
    return found


@pytest.mark.parametrize(("method", "scenario_name"), CELLS)
def test_the_plain_version_is_the_same_algorithm(method: str, scenario_name: str) -> None:
    tasks = split_tasks()
    scenario = scenario_of(scenario_name, [task.classes for task in tasks])
    learner = ours(method, scenario, tasks)
    other = plain(method, scenario, learner, tasks)
    for k in range(1, len(tasks) + 1):
        steps = record(learner, tasks[:k], 3)
        other.before_task()
        for step in steps:
            loss = other.step(parts(step.current, scenario))
            assert math.isclose(loss, step.loss, rel_tol=2e-4), (k, loss, step.loss)
        other.after_task(tasks[k - 1])


def test_one_sample_at_a_time_gives_the_exact_fisher() -> None:
    tasks = split_tasks()
    scenario = scenario_of("task", [task.classes for task in tasks])
    learner = ours("ewc", scenario, tasks)
    learner.learn(tasks[:1], 5)
    other = plain("ewc", scenario, learner, tasks)
    x, units = tasks[0].train.inputs(slice(None)), tasks[0].train.labels
    batched = fisher_sum(learner.net, [(x, units)], scenario.active(0, 1), "predicted")
    for total, (name, _) in zip(one_by_one(other.net, x, other.columns(0)), other.net.named_parameters(), strict=True):
        torch.testing.assert_close(total, batched[name][: len(total)], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("onednn", [False, True])
def test_the_products_of_an_iteration_are_all_found(onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relive.networks.products.uses_onednn", lambda: onednn)
    monkeypatch.setattr("relive.networks.products.WORTHWHILE", 0)
    tasks = split_tasks()
    scenario = scenario_of("class", [task.classes for task in tasks])
    products = products_of(Subject(ours("none", scenario, tasks), tasks[:1]))
    # forward: three layers; backward: three for the weights, two for the layers' inputs
    assert len(products) == 8
    assert sum(product.onednn for product in products) == (5 if onednn else 0)  # not those of the head
    inputs, width = tasks[0].n_inputs, scenario.width
    assert flop(products) == 2 * BATCH * (2 * inputs * HIDDEN + 3 * HIDDEN**2 + 3 * HIDDEN * width)
    assert Floor(products)() > 0


def test_a_block_is_iterations_of_the_last_task_and_nothing_after_them() -> None:
    tasks = split_tasks(2)
    learner = ours("ewc", scenario_of("class", [task.classes for task in tasks]), tasks)
    assert len(Subject(learner, tasks).block(3)) == 3
    assert (learner.seen, learner.method.state()) == (2, {})  # no Fisher information was computed


def test_a_goal_is_reached_or_not_or_there_is_none() -> None:
    figure = {"name": "speed", "unit": "×", "value": 36.02, "values": [36.02, 35.0], "note": ""}
    part = {"figures": [figure | goal for goal in GOAL_CASES]}
    assert [(goal, measured) for _, goal, measured, _, _ in rows(part)] == [
        ("≥ 30×", "36.0× ✓"),
        ("≤ 30×", "36.0× ✗"),
        ("", "36.0×"),
    ]


GOAL_CASES: list[dict[str, object]] = [
    {"goal": 30.0, "sense": "≥"},
    {"goal": 30.0, "sense": "≤"},
    {"goal": None, "sense": "≥"},
]


def test_the_time_of_a_run_is_that_of_all_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = []

    def in_turns(blocks: dict[str, Block], rounds: int, size: int) -> dict[str, list[float]]:
        learned.append([block.__self__.learner.seen for block in blocks.values()])  # type: ignore[attr-defined]
        return dict(zip(blocks, ([0.001 * len(learned)] * 3, [0.002]), strict=True))

    monkeypatch.setattr(training_times, "in_turns", in_turns)
    seconds = training_times.seconds_of_runs("split", "class", ("none", "si"), rounds=1, size=2)
    assert seconds == pytest.approx({"none": 2000 * 0.001 * (1 + 2 + 3 + 4 + 5), "si": 2000 * 0.002 * 5})
    assert learned == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]


@pytest.mark.parametrize(("onednn", "name"), [(True, "oneDNN"), (False, "MKL")])
def test_figures_name_the_library_of_their_products(onednn: bool, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.machine.uses_onednn", lambda: onednn)
    assert machine()["products"] == name


def test_false_alarms_are_those_of_the_tables_own_tests() -> None:
    rng, wrong = np.random.default_rng(3), 0
    cells = {key: cell for key, cell in PUBLISHED.items() if key[0] == "split"}
    drawn = {k: [rng.normal(c.mean, c.sem * 20**0.5, (n, 50)) for n in (3, 20)] for k, c in cells.items()}
    for table in range(50):
        columns = {key: [runs[:, table].tolist() for runs in both] for key, both in drawn.items()}
        p = {}
        for key, both in columns.items():
            (mean, sem), (mean2, sem2) = map(mean_and_sem, both)
            assert sem is not None
            assert sem2 is not None
            p[key] = welch(mean, sem, 3, mean2, sem2, 20)
        wrong += min(holm(p).values()) <= 0.05
    assert 5 < wrong < 30
    assert false_alarms(3, tables=50) == wrong / 50


def test_the_share_of_training_is_that_of_a_run_of_full_length() -> None:
    assert share({"iterations": 2.0, "samples": 1.0, "other": 3.0}, 10) == 20 / 24
    assert share({"iterations": 2.0, "samples": 1.0, "other": 3.0}, 10, "samples") == 21 / 24
