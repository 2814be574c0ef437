"""ContinualClassifier: what it refuses, and that a refusal leaves it unchanged."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from relive._util.errors import InputError, ReliveError
from relive.classifier.estimator import ContinualClassifier
from tests.classifier.digits import SMALL, X, Y, assert_same, rows


def state(model: ContinualClassifier) -> dict[str, Any]:
    """The whole state of a model, comparable."""
    learned = {k: v for k, v in vars(model).items() if k != "learner_"}
    return {"learned": copy.deepcopy(learned), "tensors": model.learner_.state()}


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
                r"X has values from 0 to 2, but this model expects inputs in \[0, 1\]",
            ),
            (X[:4] * np.nan, Y[:4], {}, "contains NaN"),
            (X[:4], Y[:3], {}, "inconsistent numbers of samples"),
            (X[:0], Y[:0], {}, "Found array with 0 sample"),
            (X[:4], [0.5, 0.25, 0.1, 0.7], {}, "Unknown label type"),
            (X[:4], Y[:4], {"task": 1.5}, "task = 1.5: a task's name must be a string or a whole number"),
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
        ({"learning_rate": 0}, "learning_rate = 0: it must be above 0 and below inf"),
        ({"validation_fraction": 1.0}, "validation_fraction = 1.0: it must be above 0 and below 1"),
        ({"fidelity": "as_wrote"}, "fidelity = 'as_wrote': choose one of as_run, as_written"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContinualClassifier(**{"method": "rtf"} | SMALL | parameters).fit(*rows(0, 1))


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
            with pytest.raises(InputError, match=f"{name} was .* when this model was created and is now "):
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


def test_a_step_too_far_is_an_error_even_if_it_was_the_last() -> None:
    model = ContinualClassifier("ewc", **SMALL | {"iterations": 1}).partial_fit(*rows(0, 1))
    model.set_params(learning_rate=1e30)
    with pytest.raises(ReliveError, match="training diverged in the task's last step"):
        model.partial_fit(*rows(2))
    assert model.n_tasks_ == 1
    assert np.isfinite(model.predict_proba(X[:5])).all()


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "2"])
def test_a_number_of_threads_that_cannot_be(n_jobs: Any) -> None:
    with pytest.raises(InputError, match=r"n_jobs = .*: it must be a whole number of at least 1, -1 for all cores"):
        ContinualClassifier(n_jobs=n_jobs).partial_fit(*rows(0, 1))


def test_a_method_s_class_is_no_name() -> None:
    with pytest.raises(InputError, match=r"it must be a name, or the address of your own: 'my_file.py:MyMethod'"):
        ContinualClassifier(int).partial_fit(*rows(0, 1))  # type: ignore[arg-type]
