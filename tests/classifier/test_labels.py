"""Labels: what counts as one, when two are the same, and when data are the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from relive._util.errors import InputError
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.labels import digest_of, joined, label_array

SMALL: dict[str, Any] = {"hidden": 4, "iterations": 1}


def objects(*values: Any) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5, 1.5], "Unknown label type: continuous.* Labels are whole numbers, booleans or strings"),
        ([1.0, np.nan], "Input y contains NaN. Labels are whole numbers, booleans or strings, one per sample"),
        ([1.0, np.inf], "Input y contains infinity .* Labels are whole numbers"),
        (["a", ""], "a label is an empty string: label every sample"),
        (["a", " "], "a label is an empty string"),
        (objects(True, 2), "labels have types bool, int: they must be all strings, all numbers or all booleans"),
        (objects(1, "a"), "labels have types int, str: they must be all strings"),
        (objects(None, "a"), "labels have types NoneType, str"),
        (objects(1, 2**64), "labels have more than 64 bits, such as 18446744073709551616: give them as strings"),
    ],
)
def test_what_is_no_label(y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        label_array(y)


def test_python_objects_are_kept_exactly() -> None:
    for values in ([2**63, 1], [2**60 + 1, -5], [True, False], [1.0, 2.0], ["x", "yy"]):
        labels = label_array(pd.Series(values, dtype=object))
        assert labels.tolist() == values
        assert [type(label) for label in labels.tolist()] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("known", "new", "message"),
    [
        (
            [True, False],
            [2, 3],
            r"labels are numbers \(2\), but those known so far are booleans \(True\): give booleans",
        ),
        ([0, 1], [True, False], r"labels are booleans \(True\), but those known so far are numbers \(0\)"),
        (
            [1, 2],
            ["1", "A1"],
            r"labels are strings \('A1'\), but those .* are numbers \(1\): give numbers, or start a new",
        ),
        (["A1"], [1, 2], r"labels are numbers \(1\), but those known so far are strings \('A1'\)"),
    ],
)
def test_labels_of_two_kinds_are_never_the_same(known: list[Any], new: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        joined(np.array(known), np.array(new))


class TestDigest:
    @pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32])
    def test_the_same_values_are_the_same_data(self, kind: Any) -> None:
        data, y = np.arange(12.0).reshape(4, 3), np.arange(4)
        assert digest_of(data.astype(kind), y) == digest_of(data, y)
        assert digest_of(np.array([[-0.0]]), y[:1]) == digest_of(np.array([[0.0]]), y[:1])

    def test_every_digit_counts(self) -> None:
        time, y = np.array([[1753900000.0], [1753900100.0]]), np.arange(2)
        assert digest_of(time, y) != digest_of(time + 1, y)

    def test_large_values_are_no_trouble(self) -> None:
        assert digest_of(np.array([[1e300]]), np.array([1])) != digest_of(np.array([[1e301]]), np.array([1]))


def test_more_classes_than_half_the_samples_are_warned_of() -> None:
    x, y = np.random.default_rng(0).random((30, 2)), np.arange(30)
    with pytest.warns(UserWarning, match="y has 30 different labels for 30 samples: are these classes"):
        ContinualClassifier("none", **SMALL).partial_fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ContinualClassifier("none", **SMALL).partial_fit(x, y % 2, classes=y)  # classes that are only declared


@pytest.mark.parametrize("name", ["", " "])
def test_a_task_without_a_name_has_a_number(name: str) -> None:
    with pytest.raises(InputError, match="a task's name cannot be empty; leave it out to use a number"):
        ContinualClassifier("none", **SMALL).partial_fit(np.eye(2), [0, 1], task=name)
