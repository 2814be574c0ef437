"""Features are standardised with the first task's statistics, the same way in all tasks and as in the classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from relive._util.errors import InputError
from relive.classifier.features import Features
from relive.data.datasets.dataset import Dataset
from relive.data.protocols import tasks_of

N_CLASSES, PER_CLASS = 6, 8


def features(shape: tuple[int, ...] = (5,), seed: int = 0) -> Dataset:
    """Six classes, each around its own centre, one feature so large that float32 would lose its variation."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(N_CLASSES), PER_CLASS)
    x = rng.normal(size=(N_CLASSES, *shape))[y] * 30 + rng.normal(size=(len(y), *shape))
    x.reshape(len(y), -1)[:, 0] += 1e9
    return Dataset("mine", x, y, x[: len(y) // 2] + 0.5, y[: len(y) // 2])


def flat(x: Any) -> Any:
    return x.reshape(len(x), -1)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_every_task_of_a_split_is_standardised_as_the_classifier_does_it(seed: int, n_tasks: int) -> None:
    data = features()
    tasks = tasks_of("split", data, n_tasks, seed)
    first = data.train_inputs[np.isin(data.train_labels, tasks[0].classes)]
    expected = Features.of(first, "gaussian")
    for task in tasks:
        for part, x, y in (
            (task.train, data.train_inputs, data.train_labels),
            (task.test, data.test_inputs, data.test_labels),
        ):
            rows = x[np.isin(y, task.classes)]
            torch.testing.assert_close(part.inputs(slice(None)), expected.inputs(rows), atol=1e-6, rtol=1e-6)
            assert part.pixels.dtype == torch.float32
    inputs = tasks[0].train.inputs(slice(None)).double()
    torch.testing.assert_close(inputs.mean(0), torch.zeros(5, dtype=torch.float64), atol=1e-4, rtol=0)


def test_classes_that_come_later_have_no_say() -> None:
    data = features()
    tasks = tasks_of("split", data, 3, seed=0)
    later = np.isin(data.train_labels, tasks[0].classes, invert=True)
    changed = data.train_inputs.copy()
    changed[later] *= 7
    again = tasks_of("split", replace(data, train_inputs=changed), 3, seed=0)
    assert torch.equal(again[0].train.pixels, tasks[0].train.pixels)
    assert torch.equal(again[1].test.pixels, tasks[1].test.pixels)
    assert not torch.equal(again[1].train.pixels, tasks[1].train.pixels)


@pytest.mark.parametrize(("protocol", "shape"), [("permuted", (5,)), ("permuted", (3, 4)), ("rotated", (3, 4))])
def test_tasks_with_all_classes_share_one_standardised_copy(protocol: str, shape: tuple[int, ...]) -> None:
    data = features(shape)
    tasks = tasks_of(protocol, data, 3, seed=1)
    assert len({id(task.train.pixels) for task in tasks}) == len({id(task.test.pixels) for task in tasks}) == 1
    x = flat(data.train_inputs)
    varying = tasks[0].train.pixels.std(0) > 0  # permuted pictures have a constant margin
    expected = torch.from_numpy((x - x.mean(0)) / x.std(0)).float()
    torch.testing.assert_close(tasks[0].train.pixels[:, varying], expected, atol=1e-5, rtol=1e-5)
    assert not tasks[0].train.pixels[:, ~varying].any()


def test_a_feature_that_does_not_vary_in_the_first_task_keeps_its_unit() -> None:
    y = np.array([0, 0, 1, 1])
    data = Dataset("mine", np.array([[1.0, 5.0], [3.0, 5.0], [1.0, 6.0], [3.0, 900.0]]), y, np.ones((4, 2)), y)
    first, second = tasks_of("split", data, 2, seed=0)
    assert first.train.pixels.tolist() == [[-1, 0], [1, 0]]
    assert second.train.pixels[0].tolist() == [-1, 1]
    assert second.train.pixels[1, 1] == pytest.approx(10 + 10 * np.log(895 / 10))  # far away, as a logarithm


def test_what_is_in_0_1_and_bytes_stay_as_they_are(digits: Dataset) -> None:
    x, y = digits.train_inputs, digits.train_labels
    unit = Dataset("mine", x / 16, y, x / 16, y)
    for data in (digits, unit):
        kept = tasks_of("split", data, 1, seed=0)[0].train.pixels
        np.testing.assert_array_equal(kept.numpy(), flat(data.train_inputs))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e308, r"mine has values up to 1e\+308: too large to standardise"),
    ],
)
def test_values_that_are_too_large_are_refused(value: float, message: str) -> None:
    y = np.array([0, 0, 1, 1])
    data = Dataset("mine", np.array([[1.0], [-value], [value], [2.0]]), y, np.ones((4, 1)), y)
    with pytest.raises(InputError, match=message):
        tasks_of("split", data, 1, seed=0)


def test_a_later_task_that_is_too_far_from_the_first_is_refused() -> None:
    y = np.array([0, 0, 1, 1])
    data = Dataset("mine", np.array([[0.0], [1e-150], [1e200], [2.0]]), y, np.ones((4, 1)), y)
    with pytest.raises(
        InputError, match=r"feature 1 of mine has values up to 1e\+200, too far from those of the first"
    ):
        tasks_of("split", data, 2, seed=0)
