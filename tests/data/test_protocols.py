"""Split, permuted and rotated: no sample is lost, duplicated or mislabelled on its way into tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, AS_WRITTEN, FIDELITIES, Fidelity
from relive.core.scenarios import SCENARIOS, scenario_of
from relive.data.catalogue import protocol_facts
from relive.data.datasets.dataset import Dataset
from relive.data.protocols import tasks_of
from relive.data.tasks import Examples, Task
from relive.data.transforms import Permutation, Rotation
from tests.plain import tiny_dataset

Row = tuple[int, bytes]  # a class and its picture
fidelities = st.sampled_from(list(FIDELITIES.values()))
seeds = st.integers(0, 30)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    return tiny_dataset(
        n_classes=draw(st.integers(1, 12)), per_class=draw(st.integers(1, 4)), side=draw(st.integers(1, 3))
    )


def rows(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> list[Row]:
    return sorted((int(label), image.tobytes()) for image, label in zip(images, labels, strict=True))


def rows_of(part: Examples, classes: tuple[int, ...]) -> list[Row]:
    return [
        (classes[label], np.asarray(pixels).tobytes())
        for label, pixels in zip(part.labels.tolist(), part.pixels.numpy(), strict=True)
    ]


@given(data=datasets(), seed=seeds, fidelity=fidelities)
def test_split_divides_classes_and_rows(data: Dataset, seed: int, fidelity: Fidelity) -> None:
    for n_tasks in (n for n in range(1, data.n_classes + 1) if data.n_classes % n == 0):
        tasks = tasks_of("split", data, n_tasks, seed, fidelity)
        assert len(tasks) == n_tasks
        assert {len(task.classes) for task in tasks} == {data.n_classes // n_tasks}
        assert sorted(c for task in tasks for c in task.classes) == list(range(data.n_classes))
        assert [task.names for task in tasks] == [tuple(map(str, task.classes)) for task in tasks]
        assert {task.shape for task in tasks} == {data.train_inputs.shape[1:]}
        # each row, with its label mapped back to its class, is in exactly one task, once
        train = [row for task in tasks for row in rows_of(task.train, task.classes)]
        test = [row for task in tasks for row in rows_of(task.test, task.classes)]
        assert sorted(train) == rows(data.train_inputs, data.train_labels)
        assert sorted(test) == rows(data.test_inputs, data.test_labels)


def order(data: Dataset, seed: int, fidelity: Fidelity) -> list[int]:
    return [c for task in tasks_of("split", data, 5, seed, fidelity) for c in task.classes]


def test_class_order() -> None:
    data = tiny_dataset(n_classes=10, per_class=1)
    in_order = list(range(10))
    assert order(data, 0, AS_RUN) == in_order
    for seed in range(6):
        assert order(data, seed, AS_WRITTEN) == in_order
    shuffled = [order(data, seed, AS_RUN) for seed in range(1, 6)]
    assert in_order not in shuffled
    assert len({tuple(o) for o in shuffled}) == 5
    assert order(data, 3, AS_RUN) == shuffled[2]  # the order of that seed


def test_class_order_of_the_2018_code() -> None:
    data, by_numpy = tiny_dataset(n_classes=10, per_class=1), AS_RUN.choose({"class_order": "shuffled_by_numpy"})
    assert order(data, 0, by_numpy) == list(range(10))
    # numpy.random.seed(1); numpy.random.permutation(10) is [2 9 6 4 0 3 1 7 8 5]: the new label of each digit
    assert order(data, 1, by_numpy) == [4, 6, 0, 5, 3, 9, 2, 7, 8, 1]
    with pytest.raises(InputError, match=r"seed = 4294967296.*needs one below"):
        order(data, 2**32, by_numpy)


@pytest.mark.parametrize(
    ("n_classes", "n_tasks", "fit"),
    [(10, 3, "1, 2, 5, 10"), (6, 4, "1, 2, 3, 6"), (6, 7, "1, 2, 3, 6"), (10, 0, "1, 2, 5, 10"), (7, 2, "1, 7")],
)
def test_a_split_that_does_not_divide(n_classes: int, n_tasks: int, fit: str) -> None:
    with pytest.raises(InputError) as caught:
        tasks_of("split", tiny_dataset(n_classes, per_class=1), n_tasks, seed=0)
    message = str(caught.value)
    assert f"tasks = {n_tasks}" in message
    assert f"{n_classes} classes" in message
    assert message.endswith(f"choose one of {fit}")


def padded(data: Dataset) -> torch.Tensor:
    """Return the training pictures in [0, 1] with 2 zero pixels on every side."""
    return torch.from_numpy(np.pad(data.train_inputs, ((0, 0), (2, 2), (2, 2)))).flatten(1).float() / data.top


def order_of(task: Task) -> list[int]:
    """Return where each input of a task comes from; empty if it is not permuted."""
    transform = task.train.transform
    assert transform is None or isinstance(transform, Permutation)
    return [] if transform is None else transform.order.tolist()


@given(data=datasets(), n_tasks=st.integers(1, 12), seed=seeds, fidelity=fidelities)
def test_permuted_keeps_pictures_and_labels(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity) -> None:
    side = data.train_inputs.shape[1] + 4
    tasks = tasks_of("permuted", data, n_tasks, seed, fidelity)
    assert len(tasks) == n_tasks
    everything = slice(None)
    for k, task in enumerate(tasks):
        assert task.shape == (side, side)
        assert task.n_inputs == side * side
        assert task.train.labels.tolist() == data.train_labels.tolist()
        assert task.test.labels.tolist() == data.test_labels.tolist()
        assert task.classes == tuple(range(k * data.n_classes, (k + 1) * data.n_classes))
        x = task.train.inputs(everything)
        assert x.dtype == torch.float32
        order = order_of(task)
        if order:
            assert sorted(order) == list(range(side * side))
            assert task.test.transform is task.train.transform  # tested with the same permutation
            x = x[:, torch.tensor(order).argsort()]
        assert torch.equal(x, padded(data))
    assert all(task.train.pixels is tasks[0].train.pixels for task in tasks)  # all tasks share the memory of one


@given(seed=seeds, fidelity=fidelities)
def test_which_tasks_are_permuted(seed: int, fidelity: Fidelity) -> None:
    tasks = tasks_of("permuted", tiny_dataset(), 5, seed, fidelity)
    first_unpermuted = seed == 0 or fidelity is AS_WRITTEN
    assert [task.train.transform is None for task in tasks] == [first_unpermuted] + [False] * 4
    assert len({tuple(order_of(task)) for task in tasks}) == 5


def permutations(tasks: list[Task]) -> list[list[int]]:
    return [order_of(task) for task in tasks]


def test_permutations_are_the_seed_s_own() -> None:
    data = tiny_dataset()
    assert permutations(tasks_of("permuted", data, 4, 7)) == permutations(tasks_of("permuted", data, 4, 7))
    assert permutations(tasks_of("permuted", data, 4, 7)) != permutations(tasks_of("permuted", data, 4, 8))
    # the first tasks do not depend on the number of tasks
    assert permutations(tasks_of("permuted", data, 6, 7))[:4] == permutations(tasks_of("permuted", data, 4, 7))


def test_ten_permutations_of_ten_digits_are_a_hundred_classes(digits: Dataset) -> None:
    tasks = tasks_of("permuted", digits, 10, seed=0)
    units = {name: scenario_of(name, [task.classes for task in tasks]).n_units for name in SCENARIOS}
    assert units == {"task": 100, "domain": 10, "class": 100}
    names = [name for task in tasks for name in task.names]
    assert len(set(names)) == 100


@pytest.mark.parametrize("n_tasks", [0, -1])
def test_permuted_needs_a_task(n_tasks: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        tasks_of("permuted", tiny_dataset(), n_tasks, seed=0)


def test_inputs_are_in_0_to_1(digits: Dataset) -> None:
    """Also when the highest grey value is not 255."""
    for protocol in ("split", "permuted"):
        for task in tasks_of(protocol, digits, 5, seed=1):
            for part in (task.train, task.test):
                x = part.inputs(slice(None))
                assert (x.min().item(), x.max().item()) == (0, 1)
                some = torch.tensor([3, 0, 3])
                assert torch.equal(part.inputs(some), x[some])
                assert len(part) == len(x)


def test_drawing_inputs_leaves_the_pixels_alone() -> None:
    task = tasks_of("split", tiny_dataset(), 2, seed=0)[0]
    before = task.train.pixels.clone()
    task.train.inputs(slice(None)).zero_()
    task.train.inputs(torch.arange(3)).zero_()
    assert torch.equal(task.train.pixels, before)


def test_unknown_protocol() -> None:
    with pytest.raises(InputError, match="did you mean 'permuted'"):
        tasks_of("permutted", tiny_dataset(), 2, seed=0)


def colour(n_classes: int = 4) -> Dataset:
    """Colour pictures, wider than high, with named classes."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_classes), 3)
    train, test = (rng.integers(0, 256, (len(labels), 3, 5, 3), dtype=np.uint8) for _ in range(2))
    return Dataset("colour", train, labels, test, labels, classes=tuple("abcdefghij"[:n_classes]))


def vectors() -> Dataset:
    """Features in [0, 1], four classes."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 3)
    train, test = (rng.random((len(labels), 7)).astype(np.float32) for _ in range(2))
    return Dataset("vectors", train, labels, test, labels)


def test_colour_keeps_its_shape_and_its_names() -> None:
    data = colour()
    first, second = tasks_of("split", data, 2, seed=0)
    assert (first.names, second.names) == (("a", "b"), ("c", "d"))
    assert (first.shape, first.n_inputs, first.is_picture) == ((3, 5, 3), 45, True)
    expected = torch.from_numpy(data.train_inputs[:6]).flatten(1).float() / 255
    assert torch.equal(first.train.inputs(slice(None)), expected)
    permuted = tasks_of("permuted", data, 2, seed=0)
    assert [task.shape for task in permuted] == [(7, 9, 3)] * 2
    assert torch.equal(
        permuted[0].train.inputs(slice(None)).reshape(-1, 7, 9, 3)[:, 2:5, 2:7].sum(), expected_sum(data)
    )


def expected_sum(data: Dataset) -> torch.Tensor:
    return (torch.from_numpy(data.train_inputs).float() / 255).sum()


def test_vectors_are_permuted_as_they_are() -> None:
    data = vectors()
    first, second = tasks_of("permuted", data, 2, seed=0)
    assert (first.shape, first.is_picture) == ((7,), False)
    assert torch.equal(first.train.inputs(slice(None)), torch.from_numpy(data.train_inputs))
    assert torch.equal(second.train.inputs(slice(None)), torch.from_numpy(data.train_inputs)[:, order_of(second)])


@given(data=datasets(), n_tasks=st.integers(1, 6), seed=seeds)
def test_rotated_turns_every_task_but_the_first_by_an_angle_of_its_own(data: Dataset, n_tasks: int, seed: int) -> None:
    tasks = tasks_of("rotated", data, n_tasks, seed)
    turns = [task.train.transform for task in tasks]
    assert turns[0] is None
    angles = [turn.degrees for turn in turns if isinstance(turn, Rotation)]
    assert len(set(angles)) == n_tasks - 1
    assert all(0 <= angle < 180 for angle in angles)
    more = [task.train.transform for task in tasks_of("rotated", data, n_tasks + 2, seed)]
    assert [turn.degrees for turn in more if isinstance(turn, Rotation)][: n_tasks - 1] == angles
    for k, task in enumerate(tasks):
        assert task.test.transform is task.train.transform
        assert task.train.pixels is tasks[0].train.pixels
        assert task.classes == tuple(range(k * data.n_classes, (k + 1) * data.n_classes))
        x = task.train.inputs(slice(None))
        assert x.shape == (len(task.train), task.n_inputs)
        assert x.min() >= 0
        assert x.max() <= 1 + 1e-6


def test_only_pictures_are_rotated() -> None:
    with pytest.raises(InputError, match=r"vectors has inputs of shape \(7,\), which cannot be rotated as images"):
        tasks_of("rotated", vectors(), 2, seed=0)


OWN = """
from dataclasses import replace

from relive import Protocol
from relive.data.protocols import transformed

def make(data, n_tasks, seed, fidelity):
    return transformed(data, [None, *(lambda x, k=k: x.roll(k, 1) for k in range(1, n_tasks))], list("abc")[:n_tasks])

def too_few(data, n_tasks, seed, fidelity):
    return make(data, n_tasks - 1, seed, fidelity)

def spoil(spoilt):
    def made(data, n_tasks, seed, fidelity):
        first, second, last = make(data, n_tasks, seed, fidelity)
        return [first, second, replace(last, test=spoilt(last.test))]

    return Protocol("spoilt", made)

NOTHING = Protocol("nothing", lambda data, n_tasks, seed, fidelity: None)
EMPTY = spoil(lambda test: test.take(slice(0)))
ABOVE = spoil(lambda test: replace(test, labels=test.labels + 1))
BELOW = spoil(lambda test: replace(test, labels=test.labels - 1))
WIDER = spoil(lambda test: replace(test, transform=lambda x: x.repeat(1, 2)))
ROLLED = Protocol("rolled", make, title="Rolled", preset={"tasks": 3})
SHORT = Protocol("short", too_few)
WRONG = Protocol("wrong", make, preset={"units": 3})
"""


def test_a_protocol_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    data = vectors()
    tasks = tasks_of(f"{path}:ROLLED", data, 3, seed=0)
    assert torch.equal(tasks[2].train.inputs(slice(None)), torch.from_numpy(data.train_inputs).roll(2, 1))
    assert tasks[1].names[0] == "0 (b)"
    facts = protocol_facts(f"{path}:ROLLED")
    assert (facts.title, facts.preset["tasks"], facts.preset["hidden"]) == ("Rolled", 3, 400)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("make", "a protocol must be a relive.Protocol"),
        ("SHORT", "protocol short made 2 tasks instead of 3"),
        ("NONE", "has no 'NONE'; it has: make, too_few, spoil, NOTHING, EMPTY, ABOVE, BELOW, WIDER, ROLLED, SHORT, WR"),
        ("NOTHING", "protocol nothing made None: it must return a list of relive.Task"),
        ("EMPTY", "protocol spoilt, task 3 of 3: test has no rows"),
        ("ABOVE", "test has labels from 1 to [0-9]*, but they are positions within the task's"),
        ("BELOW", "test has labels from -1 to "),
        ("WIDER", "test has [0-9]* numbers per row, but [0-9]* are expected"),
    ],
)
def test_what_is_no_protocol(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(InputError, match=message):
        tasks_of(f"{tmp_path}/mine.py:{name}", vectors(), 3, seed=0)


def test_a_preset_has_known_fields(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(InputError, match=r"unknown field in the preset of .*'units'"):
        protocol_facts(f"{tmp_path}/mine.py:WRONG")


def test_what_goes_wrong_in_a_protocol_of_one_s_own_is_said_in_one_line(tiny: Dataset, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from relive import Protocol\n"
        "RAISES = Protocol('raises', lambda data, n_tasks, seed, fidelity: [][0])\n"
        "NONE = Protocol('none', lambda data, n_tasks, seed, fidelity: [])\n"
    )
    with pytest.raises(
        InputError, match=r"mine.py:RAISES could not make its tasks: IndexError: list index out of range"
    ):
        tasks_of(f"{tmp_path / 'mine.py'}:RAISES", tiny, 2, 0)
    with pytest.raises(InputError, match=r"made 0 tasks instead of 2: pass --tasks 0, or have it make n_tasks"):
        tasks_of(f"{tmp_path / 'mine.py'}:NONE", tiny, 2, 0)
    with pytest.raises(InputError, match="has no 'MORE'; it has: RAISES, NONE"):
        tasks_of(f"{tmp_path / 'mine.py'}:MORE", tiny, 2, 0)
