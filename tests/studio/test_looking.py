"""Snapshots in Task-IL, where the task is given: each prediction is one of that task's classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive import load
from relive._util.errors import InputError
from relive.data.datasets.sources import load_data
from relive.data.protocols import tasks_of
from relive.experiments.execute import run
from relive.experiments.spec import make_spec
from relive.studio.drawing import prepared
from relive.studio.looking import Looker, Seen
from relive.studio.snapshots import Snapshots, snapshot_path, snapshots_in

PIXELS = np.zeros((64, 64), np.uint8)
PIXELS[10:50, 30:36] = 255


@pytest.fixture(scope="module", params=["rtf", "xdg"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder: Path = tmp_path_factory.mktemp(request.param)
    spec = make_spec("split", "task", request.param, dataset="digits", iters=20, hidden=40, latent=5, seed=3)
    run(spec, keep=Snapshots(spec, folder))
    return Seen(spec, folder)


@pytest.mark.filterwarnings("ignore:no snapshot of")
def test_a_drawing_is_one_of_the_given_tasks_classes_and_nothing_before_it_is_learned(seen: Seen) -> None:
    tasks = tasks_of("split", load_data("digits"), 5, 3)
    looker, x = Looker(None), prepared(PIXELS, (8, 8)).reshape(1, -1)
    assert 4 in snapshots_in(seen.directory)
    for on in range(5):
        (steps,) = looker.draw(PIXELS, [seen], on)["runs"]
        assert [step["task"] for step in steps] == snapshots_in(seen.directory)
        for step in steps:
            assert step["classes"] == list(tasks[on].names)
            if step["task"] < on:
                assert (step["known"], step["p"]) == ([], [0.0, 0.0])
                continue
            model = load(snapshot_path(seen.directory, step["task"]))
            slow = dict(zip(model.classes_.tolist(), model.predict_proba(x, on)[0], strict=True))
            assert step["known"] == list(tasks[on].names)
            assert step["p"] == pytest.approx([slow[name] for name in tasks[on].names], abs=2e-5)
            assert sum(step["p"]) == pytest.approx(1, abs=2e-5)
    with pytest.raises(InputError, match="there is no task 6: the run has 5"):
        looker.draw(PIXELS, [seen], 5)


@pytest.mark.filterwarnings("ignore:no snapshot of")
def test_dreams_are_taken_for_the_given_tasks_classes(seen: Seen) -> None:
    looker, tasks = Looker(None), tasks_of("split", load_data("digits"), 5, 3)
    if seen.spec.method == "xdg":
        with pytest.raises(InputError, match="generates nothing"):
            looker.dreams(seen, 4, 0)
        return
    for on in (0, 4):
        found: dict[str, Any] = looker.dreams(seen, 4, on)
        assert [c["label"] for c in found["classes"]] == list(tasks[on].names)
        assert sum(c["share"] for c in found["classes"]) == pytest.approx(1)
        assert set(found["map"]["dreamt_labels"]) <= set(tasks[on].names)
    with pytest.raises(InputError, match="task 3 was not learned yet"):
        looker.dreams(seen, 1, 2)
