"""ContinualClassifier: scikit-learn's own checks, and what its docstrings promise."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from relive._util.errors import InputError, ReliveError
from relive._util.seeds import stream
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.labels import digest_of, joined
from relive.classifier.modelfile import load
from relive.classifier.training import choose_held_out
from relive.methods import METHODS
from relive.networks import Classifier

X, Y = load_digits(return_X_y=True)
X = X / 16
SMALL: dict[str, Any] = {"hidden": 24, "latent": 6, "iterations": 30, "learning_rate": 0.01}
CELLS = [
    (method, scenario)
    for method, facts in METHODS.items()
    for scenario in facts.scenarios
    if not facts.keeps_data and not facts.needs_earlier_tasks
]


def rows(*classes: int, n: int = 40) -> tuple[Any, Any]:
    chosen = np.concatenate([np.flatnonzero(c == Y)[:n] for c in classes])
    return X[chosen], Y[chosen]


def state(model: ContinualClassifier) -> dict[str, Any]:
    """Everything that a model is, comparable."""
    learned = {k: v for k, v in vars(model).items() if k != "learner_"}
    return {"learned": copy.deepcopy(learned), "tensors": model.learner_.state()}


def assert_same(one: ContinualClassifier, other: ContinualClassifier) -> None:
    a, b = one.learner_.state(), other.learner_.state()
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        ContinualClassifier("rtf", hidden=32, latent=8, iterations=60, learning_rate=0.01),
        ContinualClassifier("ewc", hidden=32, iterations=60, learning_rate=0.01),
    ]
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    """All that ``check_estimator`` has, none excepted; scikit-learn itself skips the one of other array libraries."""
    check(estimator)


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_every_method_learns_task_after_task(method: str, scenario: str) -> None:
    settings = {"proportion": 0.5} if method == "xdg" else None
    model = ContinualClassifier(method, scenario, settings=settings, **SMALL | {"iterations": 200})
    for k, classes in enumerate([(0, 1), (2, 3), (4, 5)]):
        x, y = rows(*classes)
        model.partial_fit(x, y % 2 if scenario == "domain" else y, task=f"month {k}")
    assert model.n_tasks_ == 3
    assert model.n_features_in_ == 64
    assert model.classes_.tolist() == ([0, 1] if scenario == "domain" else [0, 1, 2, 3, 4, 5])
    task = "month 2" if scenario == "task" else None
    x, y = rows(4, 5)
    if method != "lwf":  # which holds on to the old classes so strongly that new ones have a hard time
        assert model.score(x, y % 2 if scenario == "domain" else y, task=task) > 0.9
    p = model.predict_proba(x, task)
    assert p.shape == (80, len(model.classes_))
    np.testing.assert_allclose(p.sum(1), 1)
    if scenario == "task":
        assert not p[:, :4].any()


@pytest.mark.parametrize("method", ["none", "ewc", "online-ewc", "si", "lwf", "dgr-distill", "rtf", "bir"])
@pytest.mark.parametrize("scenario", ["class", "task", "domain"])
def test_declaring_the_classes_changes_no_bit(method: str, scenario: str) -> None:
    one, other = (ContinualClassifier(method, scenario, **SMALL) for _ in range(2))
    for k, classes in enumerate([(3, 1), (0, 2), (4, 5)]):
        x, y = rows(*classes)
        one.partial_fit(x, y)
        other.partial_fit(x, y, classes=range(10) if k == 0 else None)
        assert one.classes_.tolist() == sorted({1, 3, *((0, 2) if k else ()), *((4, 5) if k == 2 else ())})
        assert other.classes_.tolist() == list(range(10))
        assert_same(one, other)
        task = 0 if scenario == "task" else None
        p, q = (model.predict_proba(x, task) for model in (one, other))
        np.testing.assert_array_equal(p, q[:, one.classes_])


def test_the_order_of_declared_classes_and_more_than_sixteen_of_them() -> None:
    """Twenty string labels that come two by two, against all of them declared backwards."""
    names = np.array([f"class {c:02}" for c in range(20)])
    rng = np.random.default_rng(0)
    data = {name: rng.random((10, 8)) for name in names}
    one, other = (ContinualClassifier("rtf", **SMALL | {"iterations": 5}) for _ in range(2))
    for k in range(10):
        pair = names[2 * k : 2 * k + 2]
        x, y = np.concatenate([data[name] for name in pair]), np.repeat(pair, 10)
        one.partial_fit(x, y)
        other.partial_fit(x, y, classes=names[::-1] if k == 0 else None)
    assert one.classes_.tolist() == other.classes_.tolist() == names.tolist()
    for name, tensor in one.learner_.state().items():
        assert torch.equal(tensor, other.learner_.state()[name]), name


def test_kinds_of_input_give_the_same_model() -> None:
    import pandas as pd

    chosen = np.flatnonzero(Y < 2)[:60]
    pixels, y = (X[chosen] * 255).round().astype(np.uint8), Y[chosen]
    kinds: list[tuple[Any, Any]] = [
        (pixels, y),
        (torch.from_numpy(pixels), torch.from_numpy(y)),
        (pd.DataFrame(pixels), pd.Series(y)),
        (pixels.tolist(), y.tolist()),
    ]
    models = [ContinualClassifier("rtf", **SMALL).partial_fit(*kind) for kind in kinds[:3]]
    for model in models[1:]:
        assert_same(models[0], model)
    floats = [pixels.astype(kind) / kind(255) for kind in (np.float32, np.float64)]
    for data in floats:
        assert_same(models[0], ContinualClassifier("rtf", **SMALL).partial_fit(data, y))
        assert_same(models[0], ContinualClassifier("rtf", **SMALL).partial_fit(torch.from_numpy(data), y))
    raw = ContinualClassifier("rtf", **SMALL).partial_fit(*kinds[3])  # whole numbers that are not bytes are any numbers
    assert raw.features_.likelihood == "gaussian"


def test_labels_come_back_as_they_were_given() -> None:
    x, y = rows(0, 1)
    for labels in (y, y.astype(float), y == 1, np.array(["no", "yes"])[y], np.array(["no", "yes"], dtype=object)[y]):
        model = ContinualClassifier("rtf", **SMALL).partial_fit(x, labels)
        assert set(model.predict(x).tolist()) == set(labels.tolist())
        assert model.score(x, labels) > 0.9


def test_labels_of_another_kind_are_refused() -> None:
    x, y = rows(0, 1)
    model = ContinualClassifier("rtf", **SMALL).partial_fit(x, y)
    with pytest.raises(InputError, match=r"labels are strings .*, but those known so far are numbers"):
        model.partial_fit(x, np.array(["no", "yes"])[y])
    with pytest.raises(InputError, match="labels of type int, str: they must all be strings"):
        ContinualClassifier("rtf", **SMALL).partial_fit(x[:2], np.array([1, "a"], dtype=object))


class TestTaskIL:
    @pytest.fixture
    def model(self) -> ContinualClassifier:
        model = ContinualClassifier("rtf", scenario="task", **SMALL)
        return model.partial_fit(*rows(0, 1), task="a").partial_fit(*rows(2, 3), task="b")

    def test_needs_the_task(self, model: ContinualClassifier) -> None:
        x, _ = rows(0)
        with pytest.raises(InputError, match="Task-IL needs to know the task: give task=, one of 'a', 'b'"):
            model.predict(x)
        with pytest.raises(InputError, match="task 'c' was never learned: known are 'a', 'b'"):
            model.predict(x, task="c")
        with pytest.raises(InputError, match="task has 2 names for 40 samples"):
            model.predict(x, task=["a", "b"])
        with pytest.raises(InputError, match="task 'a' was learned already"):
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
        with pytest.raises(InputError, match="n_samples = 1, or all the same: the first task of features outside"):
            ContinualClassifier("rtf", likelihood="gaussian", **SMALL).partial_fit(*rows(3, n=1))

    def test_unequal_tasks_in_every_scenario(self) -> None:
        for scenario in ("task", "domain", "class"):
            model = ContinualClassifier("rtf", scenario=scenario, **SMALL)
            model.partial_fit(*rows(0, 1, 2, n=30)).partial_fit(*rows(3, n=5)).partial_fit(*rows(0, 4, 5, 6, n=10))
            assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5, 6]
            assert model.predict(X[:3], task=2 if scenario == "task" else None).shape == (3,)


def test_counts_may_follow_zeros_and_ones_where_only_sums_are_kept() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (60, 4)).astype(float), rng.integers(0, 9, (60, 4)).astype(float)
    model = ContinualClassifier().partial_fit(first, np.zeros(60, int))
    with pytest.warns(UserWarning, match=r"X has values from 0 to 8, and the first task had numbers in \[0, 1\] only"):
        model.partial_fit(second, np.ones(60, int))
    assert model.score(second, np.ones(60)) > 0.8


class TestNothingChangesWhenItFails:
    @pytest.fixture
    def model(self) -> ContinualClassifier:
        return ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1))

    @pytest.mark.parametrize(
        ("x", "y", "arguments", "message"),
        [
            (X[:4, :5], Y[:4], {}, "X has 5 features, but ContinualClassifier is expecting 64"),
            (
                X[:4] * 2,
                Y[:4],
                {},
                r"X has values from 0 to 2, but this model takes inputs for numbers in \[0, 1\]",
            ),
            (X[:4] * np.nan, Y[:4], {}, "contains NaN"),
            (X[:4], Y[:3], {}, "inconsistent numbers of samples"),
            (X[:0], Y[:0], {}, "Found array with 0 sample"),
            (X[:4], [0.5, 0.25, 0.1, 0.7], {}, "Unknown label type"),
            (X[:4], Y[:4], {"task": 1.5}, "task = 1.5: a task's name is a string or a whole number"),
            (X[:4], ["a"] * 4, {}, "labels are strings"),
            (X[:4], Y[:4], {"classes": ["a"]}, "labels are strings"),
        ],
    )
    def test_bad_input(self, model: ContinualClassifier, x: Any, y: Any, arguments: Any, message: str) -> None:
        before = state(model)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(x, y, **arguments)
        after = state(model)
        assert before["learned"].keys() == after["learned"].keys()
        assert all(torch.equal(before["tensors"][n], t) for n, t in after["tensors"].items())
        np.testing.assert_array_equal(model.classes_, [0, 1])
        assert model.n_tasks_ == len(model.lessons_) == 1

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_interrupted_and_going_on(
        self, model: ContinualClassifier, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        untouched = copy.copy(model).partial_fit(*rows(2, 3))
        step = type(model.learner_.optimizer).step
        calls = []

        def failing(self: Any, gradient: Any) -> None:
            calls.append(1)
            if len(calls) == 7:
                raise error
            step(self, gradient)

        with monkeypatch.context() as patch:
            patch.setattr(type(model.learner_.optimizer), "step", failing)
            with pytest.raises(error):
                model.partial_fit(*rows(2, 3))
        assert model.n_tasks_ == 1
        assert_same(model.partial_fit(*rows(2, 3)), untouched)

    def test_a_fit_that_fails_leaves_the_fitted_model(self, model: ContinualClassifier) -> None:
        with pytest.raises(ValueError, match="contains NaN"):
            model.fit(X[:4, :3] * np.nan, Y[:4])
        assert model.n_features_in_ == 64


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "rft"}, "unknown method 'rft': did you mean 'rtf'"),
        ({"method": "offline"}, "method = 'offline' trains on the data of all tasks so far"),
        ({"method": "offline", "allow_stored_data": True}, "method = 'offline' trains on the data of all tasks so far"),
        ({"allow_stored_data": "yes"}, "allow_stored_data = 'yes': it must be True or False"),
        ({"method": "xdg"}, "XdG does not work in scenario 'class'"),
        ({"scenario": "clas"}, "unknown scenario 'clas': did you mean 'class'"),
        ({"settings": {"lam": 1}}, "unknown setting 'lam': RtF has no settings"),
        ({"likelihood": "gauss"}, "unknown likelihood 'gauss': did you mean 'gaussian'"),
        ({"hidden": 0}, "hidden = 0: it must be a whole number of at least 1"),
        ({"iterations": 1.5}, "iterations = 1.5: it must be a whole number"),
        ({"learning_rate": 0}, "learning_rate = 0: it must be a number between 0 and inf"),
        ({"validation_fraction": 1.0}, "validation_fraction = 1.0: it must be a number between 0 and 1"),
        ({"fidelity": "as_wrote"}, "fidelity = 'as_wrote': choose one of as_run, as_written"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContinualClassifier(**{"method": "rtf"} | SMALL | parameters).fit(*rows(0, 1))


class TestFeatures:
    def test_unbounded_features_are_standardised_by_the_first_task(self) -> None:
        rng = np.random.default_rng(0)
        shift, size = np.array([1000.0, -3.0, 0.0, 7.0]), np.array([50.0, 0.1, 1.0, 0.0])
        x = rng.normal(size=(60, 4)) * size + shift
        y = (x[:, 0] > 1000).astype(int)
        model = ContinualClassifier("rtf", **SMALL | {"iterations": 200}).partial_fit(x, y)
        assert model.features_.likelihood == "gaussian"
        np.testing.assert_allclose(model.features_.mean, x.mean(0))
        np.testing.assert_allclose(model.features_.scale, [*x.std(0)[:3], 1])
        assert model.score(x, y) > 0.9
        kept = model.features_
        model.partial_fit(x * 2, y + 2)
        assert model.features_ is kept or np.array_equal(model.features_.mean, kept.mean)

    def test_replay_is_in_the_user_s_own_units(self) -> None:
        rng = np.random.default_rng(0)
        x = np.concatenate([rng.normal([100, 5], [10, 1], (200, 2)), rng.normal([200, 9], [10, 1], (200, 2))])
        y = np.repeat(["low", "high"], 200)
        model = ContinualClassifier("rtf", **SMALL | {"iterations": 600}).partial_fit(x, y)
        samples, labels = model.replay(500)
        assert samples.shape == (500, 2)
        assert set(labels) == {"low", "high"}
        for label in ("low", "high"):
            for j in (0, 1):
                real, dreamt = x[y == label, j], samples[labels == label, j]
                assert abs(dreamt.mean() - real.mean()) < real.std()
                assert 0.4 < dreamt.std() / real.std() < 2.5


class TestMemory:
    def test_replay_needs_a_generator(self) -> None:
        model = ContinualClassifier("ewc", **SMALL).partial_fit(*rows(0, 1))
        with pytest.raises(InputError, match="method 'ewc' generates nothing"):
            model.replay(3)
        assert [m.dreamt for m in model.partial_fit(*rows(2)).report()] == [None] * 3

    def test_replay_does_not_disturb_learning(self) -> None:
        one, other = (ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1)) for _ in range(2))
        samples, labels = one.replay(7)
        assert samples.shape == (7, 64)
        assert set(labels) <= {0, 1}
        assert np.array_equal(samples, one.replay(7)[0])
        assert not np.array_equal(samples, one.replay(7, random_state=1)[0])
        one.report()
        assert_same(one.partial_fit(*rows(2)), other.partial_fit(*rows(2)))

    def test_what_is_dreamt_adds_up(self) -> None:
        model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1, 2)).partial_fit(*rows(3, 4))
        assert sum(m.dreamt for m in model.report() if m.dreamt is not None) == pytest.approx(1)


class TestEcosystem:
    def test_pipeline_clone_cross_validation_and_grid_search(self) -> None:
        x, y = rows(0, 1, 2, n=30)
        model = ContinualClassifier("rtf", **SMALL)
        pipeline = make_pipeline(MinMaxScaler(clip=True), model)
        assert cross_val_score(pipeline, x, y, cv=3).mean() > 0.8
        search = GridSearchCV(clone(model), {"hidden": [8, 24]}, cv=2).fit(x, y)
        assert search.best_score_ > 0.8
        assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
    @pytest.mark.parametrize("method", ["none", "ewc", "online-ewc", "si", "lwf", "dgr", "rtf", "xdg"])
    def test_a_copy_goes_on_by_itself(self, method: str, copied: Any) -> None:
        """Learning in one changes no bit of the other, and both end where a model that is never copied does."""
        alone, model = (ContinualClassifier(method, "task", **SMALL) for _ in range(2))
        model.partial_fit(*rows(0, 1)).partial_fit(*rows(2))
        other = copied(model)
        before = model.learner_.state()
        assert_same(model, other)
        other.partial_fit(*rows(3, 4))
        assert model.classes_.tolist() == [0, 1, 2]
        assert [name for name, tensor in model.learner_.state().items() if not torch.equal(tensor, before[name])] == []
        assert_same(model.partial_fit(*rows(3, 4)), other)
        assert_same(alone.partial_fit(*rows(0, 1)).partial_fit(*rows(2)).partial_fit(*rows(3, 4)), other)

    @pytest.mark.parametrize("method", ["ewc", "rtf", "dgr"])
    def test_how_often_a_network_is_built(self, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Once for each task, and once for a model that is read; not at all for a copy."""
        built: list[int] = []
        build = Classifier.__init__

        def counting(self: Classifier, *args: Any) -> None:
            built.append(1)
            build(self, *args)

        def builds(act: Callable[[], object]) -> int:
            built.clear()
            act()
            return len(built)

        monkeypatch.setattr(Classifier, "__init__", counting)
        model = ContinualClassifier(method, **SMALL | {"iterations": 2})
        assert builds(lambda: model.partial_fit(*rows(0, 1))) == 1
        assert builds(lambda: model.partial_fit(*rows(2))) == 1
        assert builds(lambda: model.fit(*rows(0, 1))) == 1
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            assert builds(lambda act=act: act(model)) == 0  # type: ignore[misc]
        pickled = pickle.dumps(model)
        assert builds(lambda: pickle.loads(pickled)) == 1
        assert builds(lambda: model.save(tmp_path / "model")) == 1  # to read what was written
        assert builds(lambda: load(tmp_path / "model")) == 1
        for ask in (model.report, lambda: model.predict(X[:2])):
            assert builds(ask) == 0


def test_what_was_learned_cannot_be_written_to() -> None:
    model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1), classes=[5])
    for name in ("classes_", "labels_", "lessons_", "n_tasks_"):
        with pytest.raises(AttributeError):
            setattr(model, name, getattr(model, name))
    for copied in (model, copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for array in (copied.classes_, copied.labels_):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
        assert copied.classes_.tolist() == [0, 1, 5]
    answers = model.predict(X[:2])
    answers[0] = 9  # which are the user's own
    assert not any(name.startswith("classes") for name in vars(model))
    with pytest.raises(AttributeError):
        ContinualClassifier().classes_  # noqa: B018


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


def test_digest_is_of_rows_and_labels() -> None:
    x, y = rows(0, 1)
    order = np.random.default_rng(0).permutation(len(y))
    assert digest_of(x, y) == digest_of(x[order], y[order])
    assert digest_of(x, y) != digest_of(x[order], y)
    assert digest_of(x, y) != digest_of(x[1:], y[1:])


class TestParametersOfAModelThatIsThere:
    @pytest.mark.parametrize(
        "change", [{"hidden": 20}, {"scenario": "domain"}, {"method": "ewc"}, {"fidelity": "as_run"}, {"latent": 3}]
    )
    def test_what_it_is_made_of_cannot_change(self, change: dict[str, Any], tmp_path: Any) -> None:
        model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1))
        before, answers = model.learner_.state(), model.predict(X[:20])
        was = {name: getattr(model, name) for name in change}
        model.set_params(**change)
        (name,) = change
        for go_on in (lambda: model.partial_fit(*rows(2)), lambda: model.save(tmp_path / "m")):
            with pytest.raises(InputError, match=f"{name} was .* when this model was made and is .* now"):
                go_on()
        assert not (tmp_path / "m").exists()
        assert model.predict(X[:20]).tolist() == copy.copy(model).predict(X[:20]).tolist() == answers.tolist()
        model.set_params(**was)
        assert all(torch.equal(before[n], t) for n, t in model.learner_.state().items())
        assert model.set_params(**change).fit(*rows(0, 1)).n_tasks_ == 1

    def test_how_it_learns_can_change(self) -> None:
        model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1))
        model.set_params(iterations=5, learning_rate=0.5, batch_size=7).partial_fit(*rows(2))
        assert model.lessons_[1].iterations == 5
        assert model.learner_.optimizer.rate == 0.5


class TestLabels:
    def test_large_whole_numbers_stay_apart(self) -> None:
        import pandas as pd

        x, y = rows(0, 1)
        ids = y.astype(np.int64) + 2**60
        for labels in (ids, pd.Series(ids).astype("Int64"), ids.astype(np.uint64), pd.Series(ids, dtype=object)):
            model = ContinualClassifier("none", **SMALL).partial_fit(x, labels)
            assert [int(c) for c in model.classes_] == [2**60, 2**60 + 1]
        with pytest.raises(InputError, match="cannot be kept exactly beside"):
            ContinualClassifier("none", **SMALL).partial_fit(x, -ids).partial_fit(x, ids.astype(np.uint64) + 2**63)

    def test_whole_numbers_of_any_type_are_the_same_labels(self) -> None:
        x, y = rows(0, 1)
        model = ContinualClassifier("none", **SMALL).partial_fit(x, y)
        for kind in (np.uint8, np.int32, np.uint64, np.float64):
            model.partial_fit(x, y.astype(kind))
        assert model.classes_.tolist() == [0, 1]
        assert model.partial_fit(x, y + 2.0).classes_.dtype.kind == "i"

    @pytest.mark.parametrize("known", [np.array([1, 2]), np.array([1.5]), np.array(["a"]), np.array([True])])
    def test_joining_nothing(self, known: Any) -> None:
        assert joined(known, known[:0]).tolist() == joined(known[:0], known).tolist() == known.tolist()

    def test_no_class_declared(self) -> None:
        x, y = rows(0, 1)
        assert ContinualClassifier("none", **SMALL).partial_fit(x, y, classes=[]).classes_.dtype.kind == "i"


class TestTaskNames:
    def test_numbers_of_numpy_and_the_next_free_one(self) -> None:
        model = ContinualClassifier("rtf", scenario="task", **SMALL).partial_fit(*rows(0, 1), task=np.int64(1))  # type: ignore[arg-type]
        model.partial_fit(*rows(2, 3)).partial_fit(*rows(4, 5))
        assert [lesson.name for lesson in model.lessons_] == [1, 2, 3]
        for task in (np.int64(2), torch.tensor(2), np.array(2), 2):
            assert set(model.predict(X[:5], task=task)) <= {2, 3}


def test_a_step_too_far_is_an_error_even_if_it_was_the_last() -> None:
    model = ContinualClassifier("ewc", **SMALL | {"iterations": 1}).partial_fit(*rows(0, 1))
    model.set_params(learning_rate=1e30)
    with pytest.raises(ReliveError, match="training diverged in the task's last step"):
        model.partial_fit(*rows(2))
    assert model.n_tasks_ == 1
    assert np.isfinite(model.predict_proba(X[:5])).all()


def test_copies_share_nothing() -> None:
    model = ContinualClassifier("rtf", **SMALL).partial_fit(*rows(0, 1))
    model.notes_["a"] = [1]
    other = copy.copy(model)
    other.notes_["a"].append(2)
    assert model.notes_ == {"a": [1]}


def test_a_generator_as_random_state_goes_on() -> None:
    rng = np.random.RandomState(3)
    one, other = (ContinualClassifier("none", random_state=rng, **SMALL).fit(*rows(0, 1)) for _ in range(2))
    assert one.seed_ != other.seed_
    assert one.random_state is rng


def test_rounding_does_not_decide_what_features_are() -> None:
    x, y = rows(0, 1)
    assert ContinualClassifier("none", **SMALL).partial_fit(x * (1 + 1e-9), y).features_.likelihood == "bernoulli"


def test_bytes_that_are_only_0_and_1_are_warned_of() -> None:
    x, y = rows(0, 1)
    with pytest.warns(UserWarning, match="X is uint8 with no value above 1"):
        ContinualClassifier("none", **SMALL).partial_fit((x > 0.5).astype(np.uint8), y)


def test_features_far_from_the_first_task_stay_different() -> None:
    rng = np.random.default_rng(0)
    first, later = (
        rng.normal(5, 0.01, (40, 2)),
        np.concatenate([rng.normal(6, 0.01, (40, 2)), rng.normal(7, 0.01, (40, 2))]),
    )
    model = ContinualClassifier("none", **SMALL).partial_fit(first, np.zeros(40, int))
    model.set_params(iterations=200).partial_fit(later, np.repeat([1, 2], 40))
    assert model.score(later, np.repeat([1, 2], 40)) > 0.95


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


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "2"])
def test_a_number_of_threads_that_cannot_be(n_jobs: Any) -> None:
    with pytest.raises(InputError, match=r"n_jobs = .*: it must be a whole number of at least 1, -1 for all cores"):
        ContinualClassifier(n_jobs=n_jobs).partial_fit(*rows(0, 1))


def test_values_beyond_all_bounds_are_refused_by_feature() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.1, (20, 3))
    model = ContinualClassifier("none", **SMALL).partial_fit(x, np.repeat([0, 1], 10))
    x[7, 1] = -1e308
    with pytest.raises(
        InputError, match=r"feature 2 of X has values up to 1e\+308, too far from those of the first task"
    ):
        model.partial_fit(x, np.repeat([2, 3], 10))
    assert model.n_tasks_ == 1


def test_early_stopping_leaves_every_class_something_to_learn_from() -> None:
    y = torch.tensor([0] * 20 + [1] * 20 + [2])
    for seed in range(8):
        held_out = choose_held_out(y, 0.3, stream(seed, "test"))
        assert int(held_out.sum()) == int(0.3 * 41)
        assert not held_out[-1]


def test_pixels_that_are_no_bytes_are_warned_of() -> None:
    x, y = rows(0, 1)
    pixels = (x * 255).round()
    with pytest.warns(UserWarning, match=r"whole numbers from 0 to 255 that are no bytes, .* X.astype\('uint8'\)"):
        ContinualClassifier("none", shape=(8, 8), **SMALL).partial_fit(pixels, y)
    ContinualClassifier("none", shape=(8, 8), **SMALL).partial_fit(pixels.astype(np.uint8), y)  # without a word
    ContinualClassifier("none", **SMALL).partial_fit(pixels, y)  # a plain row may be anything


def test_a_method_s_class_is_no_name() -> None:
    with pytest.raises(InputError, match=r"it must be a name, or where your own is: 'my_file.py:MyMethod'"):
        ContinualClassifier(int).partial_fit(*rows(0, 1))  # type: ignore[arg-type]
