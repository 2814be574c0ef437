"""ContinualClassifier: scikit-learn's checks, and what every method must do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.networks import Classifier
from tests.classifier.digits import CELLS, SETTINGS, SMALL, X, assert_same, rows


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        ContinualClassifier("rtf", hidden=32, latent=8, iterations=60, learning_rate=0.01),
        ContinualClassifier("ewc", hidden=32, iterations=60, learning_rate=0.01),
    ]
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    """All of ``check_estimator``, without exceptions; scikit-learn itself skips the one for other array libraries."""
    check(estimator)


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_every_method_learns_task_after_task(method: str, scenario: str) -> None:
    model = ContinualClassifier(method, scenario, settings=SETTINGS.get(method), **SMALL | {"iterations": 100})
    for k, classes in enumerate([(0, 1), (2, 3), (4, 5)]):
        x, y = rows(*classes)
        model.partial_fit(x, y % 2 if scenario == "domain" else y, task=f"month {k}")
    assert model.n_tasks_ == 3
    assert model.n_features_in_ == 64
    assert model.classes_.tolist() == ([0, 1] if scenario == "domain" else [0, 1, 2, 3, 4, 5])
    task = "month 2" if scenario == "task" else None
    x, y = rows(4, 5)
    if method != "lwf":  # which protects old classes so strongly that it hardly learns new ones
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
    """Twenty string labels that come in pairs, against all of them declared in reverse order."""
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
        """Training one changes no bit of the other, and both end where a model that is never copied does."""
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
        """Once for each task, and once when a model is loaded; not at all for a copy."""
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
        assert builds(lambda: model.save(tmp_path / "model")) == 1  # to read back what was written
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
    answers[0] = 9  # the array belongs to the user
    assert not any(name.startswith("classes") for name in vars(model))
    with pytest.raises(AttributeError):
        ContinualClassifier().classes_  # noqa: B018


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
