"""Snapshots are model files that predict as the run's network did, and do not change the run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from relive.classifier.modelfile import load
from relive.core.learner import Learner
from relive.data.tasks import Task
from relive.experiments.execute import run
from relive.experiments.spec import RunSpec, make_spec
from relive.inference.opening import opened
from relive.methods import METHODS
from relive.studio.snapshots import Snapshots, snapshot_path, snapshots_in
from tests.plain import tiny_dataset

TINY = tiny_dataset()
CASES = [(method, scenario) for method in METHODS for scenario in METHODS[method].scenarios]


def spec_of(method: str, scenario: str, **changes: Any) -> RunSpec:
    small: dict[str, Any] = {"tasks": 3, "iters": 4, "hidden": 10, "latent": 4, "batch_size": 8, "seed": 2}
    quick = {"numbers": 2e3, "hidden": 4, "samples": 2}
    settings = {name: value for name, value in quick.items() if name in METHODS[method].defaults}
    return make_spec("split", scenario, method, settings=settings, **{"dataset": TINY} | small | changes)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "scenario"), CASES)
def test_every_snapshot_answers_as_the_learner_did(method: str, scenario: str, tmp_path: Path) -> None:
    spec = spec_of(method, scenario)
    keep, answers = Snapshots(spec, tmp_path), {}

    def both(learner: Learner, tasks: list[Task], task: int) -> None:
        x = tasks[task].test.inputs(slice(None))
        called = {
            u: name for k in range(3) for u, name in zip(learner.scenario.unit_numbers(k), tasks[k].names, strict=True)
        }
        if scenario == "domain":
            called = {unit: str(unit) for unit in called}
        answers[task] = x.numpy(), [called[unit] for unit in learner.predict(x, task).tolist()]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            keep(learner, tasks, task)

    kept, plain = run(spec, data=TINY, keep=both), run(spec, data=TINY)
    times = {"train_seconds": 0, "cpu_seconds": 0}
    assert kept.result.to_json() | times == plain.result.to_json() | times
    assert [p.tobytes() for p in kept.samples] == [p.tobytes() for p in plain.samples]
    assert snapshots_in(tmp_path) == [0, 1, 2]
    for task in snapshots_in(tmp_path):
        path, (x, said) = snapshot_path(tmp_path, task), answers[task]
        given = task if scenario == "task" else None
        assert load(path).predict(x, given).tolist() == said
        fast = opened(path, allow_code=False)[1]
        assert fast.classes_[fast.predict_proba(x, given).argmax(1)].tolist() == said
