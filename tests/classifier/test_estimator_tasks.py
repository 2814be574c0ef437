"""ContinualClassifier: tasks that are named, unequal or of a single sample, and how long each is trained."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.training import choose_held_out
from tests.classifier.digits import SMALL, X, assert_same, rows


class TestTaskIL:
    @pytest.fixture
    def model(self) -> ContinualClassifier:
        model = ContinualClassifier("rtf", scenario="task", **SMALL)
        return model.partial_fit(*rows(0, 1), task="a").partial_fit(*rows(2, 3), task="b")

    def test_needs_the_task(self, model: ContinualClassifier) -> None:
        x, _ = rows(0)
        with pytest.raises(InputError, match="Task-IL needs the task: pass task=, one of 'a', 'b'"):
            model.predict(x)
        with pytest.raises(InputError, match="task 'c' was never learned; known tasks: 'a', 'b'"):
            model.predict(x, task="c")
        with pytest.raises(InputError, match="task has 2 names for 40 samples"):
            model.predict(x, task=["a", "b"])
        with pytest.raises(InputError, match="task 'a' was already learned"):
            model.partial_fit(*rows(4), task="a")

    def test_a_task_for_each_sample(self, model: ContinualClassifier) -> None:
        (x, y), (x2, y2) = rows(0, 1), rows(2, 3)
        names = ["b", "a"] * 80
        mixed, answers = np.empty((160, 64)), np.empty(160)
        mixed[::2], mixed[1::2], answers[::2], answers[1::2] = x2, x, y2, y
        assert model.score(mixed, answers, task=names) > 0.9
        one_by_one = [model.predict(mixed[i : i + 1], task=names[i])[0] for i in range(20)]
        assert model.predict(mixed[:20], task=names[:20]).tolist() == one_by_one

    def test_names_and_numbers_of_tasks_side_by_side(self) -> None:
        model = ContinualClassifier("rtf", scenario="task", **SMALL)
        model.partial_fit(*rows(0, 1)).partial_fit(*rows(2, 3), task="b")
        assert model.predict(X[:2], task=[0, "b"]).tolist() == [
            model.predict(X[:1], task=0)[0],
            model.predict(X[1:2], task="b")[0],
        ]

    def test_others_do_not_take_it(self) -> None:
        model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1))
        with pytest.raises(InputError, match="in Class-IL the task is not given"):
            model.predict(X[:2], task=0)


class TestUnusualTasks:
    def test_a_class_again(self) -> None:
        model = (
            ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1)).partial_fit(*rows(1, 2)).partial_fit(*rows(0))
        )
        assert model.classes_.tolist() == [0, 1, 2]
        assert [lesson.classes for lesson in model.lessons_] == [(0, 1), (1, 2), (0,)]
        memory = {m.label: m for m in model.report()}
        assert memory[0].tasks == (0, 2)
        assert memory[0].n_samples == 80
        assert memory[1].tasks == (0, 1)

    def test_one_class_one_sample_and_imbalance(self) -> None:
        model = ContinualClassifier("rtf", **SMALL | {"iterations": 200})
        model.partial_fit(*rows(0)).partial_fit(*rows(1, n=1)).partial_fit(*rows(2))
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.score(*rows(2)) > 0.9
        first_one = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(3, n=1))
        assert first_one.predict(X[:5]).tolist() == [3] * 5
        alone = ContinualClassifier("ewc", **SMALL).partial_fit(*rows(3, n=1))
        assert alone.partial_fit(*rows(4)).score(*rows(4)) > 0.9
        with pytest.raises(InputError, match="the first task has only one sample, or all samples are equal: outside"):
            ContinualClassifier("rtf", likelihood="gaussian", **SMALL).partial_fit(*rows(3, n=1))

    def test_unequal_tasks_in_every_scenario(self) -> None:
        for scenario in ("task", "domain", "class"):
            model = ContinualClassifier("rtf", scenario=scenario, **SMALL)
            model.partial_fit(*rows(0, 1, 2, n=30)).partial_fit(*rows(3, n=5)).partial_fit(*rows(0, 4, 5, 6, n=10))
            assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5, 6]
            assert model.predict(X[:3], task=2 if scenario == "task" else None).shape == (3,)


def test_steps_can_be_watched() -> None:
    steps: list[tuple[int, int]] = []
    one = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1), on_step=lambda i, n, loss: steps.append((i, n)))
    assert steps == [(i, 30) for i in range(1, 31)]
    assert_same(one, ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1)))


def test_early_stopping_is_off_by_default_and_stops_early() -> None:
    x, y = rows(0, 1)
    full = ContinualClassifier("rtf", **SMALL | {"iterations": 900}).partial_fit(x, y)
    assert full.lessons_[0].iterations == 900
    early = ContinualClassifier(
        "rtf", **SMALL | {"iterations": 900}, early_stopping=True, n_iter_no_change=3
    ).partial_fit(x, y)
    assert early.lessons_[0].iterations < 900
    assert early.lessons_[0].iterations % 50 == 0
    assert early.score(x, y) > 0.9


@pytest.mark.parametrize(("n", "iterations"), [(1, 500), (3200, 500), (6400, 1000), (60_000, 5000)])
def test_default_iterations(n: int, iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from relive.core.learner import Learner

    asked: list[int] = []

    def learn(self: Learner, tasks: Any, iterations: int, on_step: Any) -> None:
        asked.append(iterations)
        self.seen = 1

    monkeypatch.setattr(Learner, "learn", learn)
    ContinualClassifier("none").partial_fit(np.zeros((n, 2)), np.zeros(n, dtype=int))
    assert asked == [iterations]


class TestTaskNames:
    def test_numbers_of_numpy_and_the_next_free_one(self) -> None:
        model = ContinualClassifier("rtf", scenario="task", **SMALL).partial_fit(*rows(0, 1), task=np.int64(1))  # type: ignore[arg-type]
        model.partial_fit(*rows(2, 3)).partial_fit(*rows(4, 5))
        assert [lesson.name for lesson in model.lessons_] == [1, 2, 3]
        for task in (np.int64(2), torch.tensor(2), np.array(2), 2):
            assert set(model.predict(X[:5], task=task)) <= {2, 3}


@pytest.mark.parametrize(("n_jobs", "used"), [(None, 1), (1, 1), (2, 2), (-1, os.cpu_count())])
def test_as_many_threads_as_asked_for_and_then_as_before(
    n_jobs: int | None, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    before = torch.get_num_threads()
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    model = ContinualClassifier("rtf", n_jobs=n_jobs, **SMALL)
    model.partial_fit(*rows(0, 1)).partial_fit(*rows(2))
    for ask in (lambda: model.predict(X[:3]), lambda: model.replay(3), model.report):
        seen.clear()
        ask()
        assert seen[0] == used
        assert seen[-1] == before


def test_early_stopping_leaves_every_class_something_to_learn_from() -> None:
    y = torch.tensor([0] * 20 + [1] * 20 + [2])
    for seed in range(8):
        held_out = choose_held_out(y, 0.3, stream(seed, "test"))
        assert int(held_out.sum()) == int(0.3 * 41)
        assert not held_out[-1]
