"""Accuracy counted by hand, and the metrics of the accuracy matrix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from relive.core.evaluation import accuracy, average_accuracy, backward_transfer, forgetting
from relive.core.scenarios import scenario_of
from tests import plain

#          on task 1    2     3
MATRIX = [[0.90, 0.10, 0.20],  # after task 1
          [0.95, 0.80, 0.30],  # after task 2
          [0.60, 0.70, 0.99]]  # after task 3  # fmt: skip


def test_by_hand() -> None:
    assert average_accuracy(MATRIX) == pytest.approx((0.60 + 0.70 + 0.99) / 3)
    assert forgetting(MATRIX) == pytest.approx(((0.95 - 0.60) + (0.80 - 0.70)) / 2)  # from the best
    assert backward_transfer(MATRIX) == pytest.approx(((0.60 - 0.90) + (0.70 - 0.80)) / 2)  # from the diagonal


def test_one_task_cannot_be_forgotten() -> None:
    assert (average_accuracy([[0.7]]), forgetting([[0.7]]), backward_transfer([[0.7]])) == (0.7, 0, 0)


def square(n: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=n, max_size=n)


@given(st.integers(2, 5).flatmap(square))
def test_bounds(matrix: list[list[float]]) -> None:
    assert -1 <= -forgetting(matrix) <= backward_transfer(matrix) + 1e-12 <= 1 + 1e-12
    assert min(matrix[-1]) <= average_accuracy(matrix) + 1e-12
    assert average_accuracy(matrix) <= max(matrix[-1]) + 1e-12


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_accuracy(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("none", scenario, tasks)
    learner.learn(tasks[:1], 4)
    learner.learn(tasks[:2], 4)
    theta = plain.double(plain.parameters(learner.net))
    seen_between = False
    for k in range(2):
        test, columns = tasks[k].test, layout.columns(k, seen=2)
        out = plain.logits(theta, test.inputs(slice(None)))[:, columns]
        hits = (out.argmax(1) == layout.answer(k, test.labels)).tolist()
        assert len(hits) == 8
        assert accuracy(learner, tasks[k], k) == sum(hits) / 8
        assert accuracy(learner, tasks[k], k, limit=5) == sum(hits[:5]) / 5
        assert accuracy(learner, tasks[k], k, limit=100) == sum(hits) / 8
        for chunk in (1, 3, 8):
            assert accuracy(learner, tasks[k], k, chunk=chunk) == sum(hits) / 8
            assert accuracy(learner, tasks[k], k, limit=5, chunk=chunk) == sum(hits[:5]) / 5
        seen_between |= 0 < sum(hits) < 8
    assert seen_between, "all right or all wrong: this test would detect little"


def test_classes_that_are_still_unknown_are_not_right_and_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", "class", tasks)
    learner.learn(tasks[:1], 4)
    right = (
        learner.predict(tasks[1].test.inputs(slice(None)), 1) == learner.scenario.units(1)[tasks[1].test.labels]
    ).sum()
    monkeypatch.setattr(learner, "predict", pytest.fail)
    assert accuracy(learner, tasks[1], 1) == right == 0


@pytest.mark.parametrize("scenario", ["task", "domain"])
def test_tasks_not_yet_learned_are_asked_where_their_classes_are_known(scenario: str) -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", scenario, tasks)
    for _ in range(2):  # before anything is learned, and after the first task
        predicted = learner.predict(tasks[1].test.inputs(slice(None)), 1)
        hits = (predicted == learner.scenario.units(1)[tasks[1].test.labels]).sum()
        assert hits > 0, "nothing right: this test would detect nothing"
        assert accuracy(learner, tasks[1], 1) == hits / len(predicted)
        if not learner.seen:
            learner.learn(tasks[:1], 4)


def test_a_task_with_classes_beyond_the_known_ones_is_asked() -> None:
    learner: Any = SimpleNamespace(
        scenario=scenario_of("domain", [range(2), range(3)]),
        seen=1,
        predict=lambda x, _: torch.zeros(len(x), dtype=torch.long),
    )
    task = plain.split_tasks()[1]
    assert accuracy(learner, task, 1) == (task.test.labels == 0).double().mean() > 0


def test_an_untrained_network_is_asked_about_the_first_task() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", "class", tasks)
    predicted = learner.predict(tasks[0].test.inputs(slice(None)), 0)
    hits = (predicted == learner.scenario.units(0)[tasks[0].test.labels]).sum()
    assert 0 < hits == round(accuracy(learner, tasks[0], 0) * len(predicted))


def test_looking_changes_nothing() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("rtf", "class", tasks)
    learner.learn(tasks[:1], 2)
    before = {name: t.clone() for name, t in learner.state().items()}
    accuracy(learner, tasks[0], 0)
    assert all((before[name] == t).all() for name, t in learner.state().items())
