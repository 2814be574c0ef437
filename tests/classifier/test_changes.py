"""Classes that change: forgetting leaves only what is documented, renaming changes no prediction, merging adds up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive import ContinualClassifier, load
from relive._util.errors import InputError
from tests.classifier.digits import X, Y

NAMES = np.array(["nil", "one", "two", "three", "four", "five"])
CLOSED = ["ncm", "slda", "analytic", "discriminant"]
SCENARIOS = ["class", "task", "domain"]
SMALL = {"numbers": 3e4}
NETWORK: dict[str, Any] = {"hidden": 16, "latent": 4, "iterations": 6, "learning_rate": 0.01}
TASKS = [(0, 1, 2), (2, 3, 4)]


def rows(*classes: int, n: int = 40, skip: int = 0) -> tuple[Any, Any]:
    chosen = np.concatenate([np.flatnonzero(c == Y)[skip : skip + n] for c in classes])
    return X[chosen], NAMES[Y[chosen]]


def closed(method: str, scenario: str, *, forgettable: bool = False) -> ContinualClassifier:
    settings = SMALL if method in ("analytic", "discriminant", "domains") else None
    return ContinualClassifier(method, scenario, settings=settings, forgettable=forgettable, calibrate=False)


def taught(
    model: ContinualClassifier,
    tasks: Sequence[tuple[int, ...]],
    without: str = "",
    called: dict[str, str] | None = None,
) -> ContinualClassifier:
    """Train on the digits of each task except one of them; some may have other names."""
    names = [f"t{k}" for k in range(model.n_tasks_ if "learner_" in vars(model) else 0, 9)]
    for name, classes in zip(names, tasks, strict=False):
        x, y = rows(*classes)
        y = np.array([(called or {}).get(label, label) for label in y.tolist()])
        model.partial_fit(x[y != without], y[y != without], task=name)
    return model


def asked(model: ContinualClassifier, task: str = "t1") -> Any:
    """Return probabilities of held-out digits, by class: a dictionary, so that the order of classes does not matter."""
    x, _ = rows(0, 1, 2, 3, 4, n=20, skip=60)
    p = model.predict_proba(x, task if model.scenario == "task" else None)
    return dict(zip(model.classes_.tolist(), p.T, strict=True))


def assert_close(found: dict[str, Any], expected: dict[str, Any], atol: float = 1e-5) -> None:
    assert found.keys() == expected.keys()
    for label, p in expected.items():
        np.testing.assert_allclose(found[label], p, atol=atol, err_msg=label)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("method", CLOSED)
def test_a_forgettable_class_leaves_a_model_that_never_saw_it(method: str, scenario: str) -> None:
    model = taught(closed(method, scenario, forgettable=True), TASKS).forget("three")
    never = taught(closed(method, scenario, forgettable=True), TASKS, without="three")
    assert_close(asked(model), asked(never))
    assert_close(asked(taught(model, [(5, 0)])), asked(taught(never, [(5, 0)])))


def test_without_sums_per_class_a_forgotten_one_leaves_only_its_share_of_the_spread() -> None:
    model = taught(closed("slda", "class"), TASKS)
    spread = _within(model)
    model.forget("three")
    np.testing.assert_allclose(_within(model), spread, atol=1e-9)
    assert model.learner_.method.sums.n == sum(sum(lesson.counts) for lesson in model.lessons_)  # type: ignore[attr-defined]
    assert "three" not in model.classes_.tolist()
    x, y = rows(0, 1, 2, 4, n=20, skip=60)
    assert model.score(x, y) > 0.9


def _within(model: ContinualClassifier) -> Any:
    """Return the within-class covariance computed from the sums."""
    sums = model.learner_.method.sums  # type: ignore[attr-defined]
    means = sums.means
    return ((sums.products - (means.T * sums.count) @ means) / sums.n).numpy()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_closed_forms_of_domains_forget_too(scenario: str, tmp_path: Path) -> None:
    """Tasks of few samples are one domain, a closed form; what it keeps to tell domains apart is forgotten as well."""
    one, other = (taught(closed(m, scenario), TASKS).forget("three") for m in ("domains", "discriminant"))
    assert asked(one).keys() == asked(other).keys()
    method = one.learner_.method
    moments = [domain.moments for domain in method.domains_]  # type: ignore[attr-defined]
    assert sum(int(m.n) for m in moments) == sum(sum(lesson.counts) for lesson in one.lessons_)
    one.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert_close(asked(taught(again, [(3, 5)])), asked(taught(one, [(3, 5)])), atol=1e-7)


def test_nearest_means_forget_exactly_as_they_are() -> None:
    model = taught(closed("ncm", "class"), TASKS).forget("three")
    assert_close(asked(model), asked(taught(closed("ncm", "class"), TASKS, without="three")))


def test_what_a_forgettable_model_keeps_is_counted() -> None:
    plain, forgettable = (taught(closed("slda", "class", forgettable=f), [(0, 1)]) for f in (False, True))
    d, cells = 64, 16
    more = (cells - 1) * d * (d + 1) // 2
    counts = [m.learner_.method.stored_numbers([]) for m in (plain, forgettable)]
    assert counts[1] - counts[0] == more


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    ("method", "forgettable"), [("domains", False), *((m, f) for m in CLOSED for f in (False, True))]
)
def test_merging_in_closed_form_is_having_learned_one_class(method: str, scenario: str, forgettable: bool) -> None:
    both = {"one": "some", "two": "some", "three": "some"}
    tasks = [(0, 1, 2, 3), (0, 2, 4)]
    model = taught(closed(method, scenario, forgettable=forgettable), tasks).merge(["two", "one", "three"], "some")
    at_once = taught(closed(method, scenario, forgettable=forgettable), tasks, called=both)
    assert_close(asked(model), asked(at_once))
    assert [sorted(lesson.counts) for lesson in model.lessons_] == [sorted(o.counts) for o in at_once.lessons_]
    assert_close(asked(taught(model, [(1, 4)], called=both)), asked(taught(at_once, [(1, 4)], called=both)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "scenario"),
    [(m, s) for m in ("rtf", "bir", "dgr", "ewc", "lwf", "generative-classifier", "er", "icarl") for s in SCENARIOS],
)
def test_a_network_forgets_and_merges_and_goes_on(method: str, scenario: str, tmp_path: Path) -> None:
    stores = method in ("er", "icarl")
    model = ContinualClassifier(method, scenario, allow_stored_data=stores, calibrate=False, **NETWORK)
    taught(model, TASKS)
    before = asked(model)
    model.merge(["two", "four"], "even")
    merged = asked(model)
    np.testing.assert_allclose(merged["even"], before["two"] + before["four"], atol=1e-6)
    model.forget("three")
    assert "three" not in asked(model)
    left = {label: p for label, p in merged.items() if label != "three"}
    total = sum(left.values())
    if method != "icarl":  # whose exemplar means depend on all classes
        assert_close(asked(model), {label: p / total for label, p in left.items()}, atol=1e-5)
    if method in ("er", "icarl"):
        x, _ = rows(3)
        kept = model.learner_.method.buffer_.x.numpy()  # type: ignore[attr-defined]
        assert not any((np.abs(kept - row).sum(1) < 1e-6).any() for row in x)
    model.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert_close(asked(again), asked(model), atol=1e-7)
    again, model = taught(again, [(5,), (3, 0)]), taught(model, [(5,), (3, 0)])
    assert_close(asked(again), asked(model), atol=1e-7)
    assert set(model.classes_) == {"nil", "one", "even", "five", "three"}, "what was forgotten may come again"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rtf", "bir", "dgr-distill"])
def test_replay_of_a_forgotten_class_stops(method: str) -> None:
    model = ContinualClassifier(method, hidden=64, latent=16, iterations=400)
    x, y = rows(0, 1, 2, n=100)
    model.partial_fit(x, y)
    dreamt = {label: (model.replay(300)[1] == label).mean() for label in ("nil", "one", "two")}
    assert dreamt["one"] > 0.1
    x, y = rows(3, n=100)
    model.forget("one").partial_fit(x, y)
    judge = ContinualClassifier("discriminant", settings=SMALL).fit(*rows(0, 1, 2, 3, n=100))
    replayed, _ = model.replay(300)
    assert (judge.predict(replayed.clip(0, 1)) == "one").mean() < 0.05


def test_renaming_changes_nothing_else(tmp_path: Path) -> None:
    model = taught(closed("discriminant", "class"), TASKS)
    before = asked(model)
    model.rename("three", "the number three").save(tmp_path / "m.safetensors")
    model = load(tmp_path / "m.safetensors")
    before["the number three"] = before.pop("three")
    assert_close(asked(model), before, atol=0)
    assert [(c.what, c.labels, c.into) for c in model.changes_] == [("rename", ("three",), "the number three")]
    x, y = rows(3)
    model.partial_fit(x, np.full(len(y), "the number three"))
    assert len(model.classes_) == 5


def test_numbers_stay_numbers() -> None:
    x, y = rows(0, 1, 2)
    numbers = np.array([NAMES.tolist().index(label) for label in y], dtype=np.uint8)
    model = closed("ncm", "class").partial_fit(x, numbers).rename(1, 1000)
    assert model.classes_.tolist() == [0, 2, 1000]
    assert (model.predict(x)[y == "one"] == 1000).mean() > 0.8


def test_a_forgotten_label_may_be_learned_again_and_its_data_too() -> None:
    model = taught(closed("discriminant", "class", forgettable=True), TASKS)
    model.forget("three", "two")
    assert [lesson.digest for lesson in model.lessons_] == ["", ""], (
        "no longer the digest of the data it was computed from"
    )
    taught(model, [(3, 2)])
    assert model.labels_.tolist() == ["nil", "one", "four", "three", "two"]
    x, y = rows(0, 1, 2, 3, 4, n=20, skip=60)
    assert model.score(x, y) > 0.9


@pytest.mark.parametrize(
    ("change", "what", "message"),
    [
        ("forget", ("thre",), "unknown class 'thre': did you mean 'three'"),
        ("forget", (3,), "labels are strings"),
        ("forget", ("nil", "one", "two", "three", "four"), "at least one class"),
        ("forget", (), "no class given"),
        ("forget", ("nine",), "declared but never learned"),
        ("rename", ("one", "two"), "there is already a class 'two'"),
        ("rename", ("one", "nine"), "there is already a class 'nine'"),
        ("rename", ("one", 1), "labels are numbers"),
        ("rename", ("one", "one"), "already has that name"),
        ("merge", (["one"], "some"), "at least two different classes"),
        ("merge", (["one", "one"], "some"), "at least two different classes"),
        ("merge", (["one", "two"], "three"), "there is already a class 'three'"),
        ("merge", (["one", "five"], "some"), "unknown class 'five'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(change: str, what: Any, message: str) -> None:
    model = closed("ncm", "class")
    model.partial_fit(*rows(0, 1, 2, 3, 4), classes=["nine"])
    before, books = asked(model), model.bookkeeping_
    with pytest.raises(InputError, match=message):
        getattr(model, change)(*what)
    assert model.bookkeeping_ is books
    assert_close(asked(model), before, atol=0)


def test_a_task_keeps_a_class_in_task_il() -> None:
    model = taught(closed("ncm", "task"), [(0, 1), (2,)])
    with pytest.raises(InputError, match="task 't1' would have no class left"):
        model.forget("two")


def test_networks_cannot_be_forgettable() -> None:
    with pytest.raises(InputError, match="cannot erase a class completely"):
        ContinualClassifier("rtf", forgettable=True).fit(*rows(0, 1))
    assert ContinualClassifier(scenario="domain", forgettable=True).fit(*rows(0, 1)).choice_.method == "discriminant"


def test_a_failed_change_of_the_learner_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = taught(closed("discriminant", "class"), TASKS)
    before, classes = asked(model), model.classes_.tolist()
    monkeypatch.setattr("relive.core.learner.Learner.grow", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.forget("three")
    monkeypatch.undo()
    assert model.classes_.tolist() == classes
    assert_close(asked(model), before, atol=0)
