"""ContinualClassifier: kinds of samples and labels, their features, and what is replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from relive._util.errors import InputError
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.labels import digest_of, joined
from tests.classifier.digits import SMALL, X, Y, assert_same, rows


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
    raw = ContinualClassifier("rtf", **SMALL).partial_fit(*kinds[3])  # integers other than bytes are ordinary numbers
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
    with pytest.raises(InputError, match="labels have types int, str: they must be all strings"):
        ContinualClassifier("rtf", **SMALL).partial_fit(x[:2], np.array([1, "a"], dtype=object))


def test_counts_may_follow_zeros_and_ones_where_only_sums_are_kept() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (60, 4)).astype(float), rng.integers(0, 9, (60, 4)).astype(float)
    model = ContinualClassifier().partial_fit(first, np.zeros(60, int))
    with pytest.warns(UserWarning, match=r"X has values from 0 to 8, but the first task only had numbers in \[0, 1\]"):
        model.partial_fit(second, np.ones(60, int))
    assert model.score(second, np.ones(60)) > 0.8


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
        assert [m.replayed for m in model.partial_fit(*rows(2)).report()] == [None] * 3

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
        assert sum(m.replayed for m in model.report() if m.replayed is not None) == pytest.approx(1)


def test_digest_is_of_rows_and_labels() -> None:
    x, y = rows(0, 1)
    order = np.random.default_rng(0).permutation(len(y))
    assert digest_of(x, y) == digest_of(x[order], y[order])
    assert digest_of(x, y) != digest_of(x[order], y)
    assert digest_of(x, y) != digest_of(x[1:], y[1:])


class TestLabels:
    def test_large_whole_numbers_stay_apart(self) -> None:
        import pandas as pd

        x, y = rows(0, 1)
        ids = y.astype(np.int64) + 2**60
        for labels in (ids, pd.Series(ids).astype("Int64"), ids.astype(np.uint64), pd.Series(ids, dtype=object)):
            model = ContinualClassifier("none", **SMALL).partial_fit(x, labels)
            assert [int(c) for c in model.classes_] == [2**60, 2**60 + 1]
        with pytest.raises(InputError, match="cannot be combined exactly with"):
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


def test_pixels_that_are_no_bytes_are_warned_of() -> None:
    x, y = rows(0, 1)
    pixels = (x * 255).round()
    with pytest.warns(UserWarning, match=r"whole numbers from 0 to 255 that are not bytes, .* X.astype\('uint8'\)"):
        ContinualClassifier("none", shape=(8, 8), **SMALL).partial_fit(pixels, y)
    ContinualClassifier("none", shape=(8, 8), **SMALL).partial_fit(pixels.astype(np.uint8), y)  # without a warning
    ContinualClassifier("none", **SMALL).partial_fit(pixels, y)  # a plain row may be anything
