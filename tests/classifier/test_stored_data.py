"""Methods that keep data: refused unless the user allows real samples in the model."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from relive._util.errors import InputError
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION
from relive.cli import models
from tests.classifier.digits import SMALL, X, assert_same, rows

REPLAY = f"{Path(__file__).parents[2] / 'examples' / 'own_method.py'}:ExperienceReplay"
ALL_TASKS = """
from relive import Method
from relive.core.sources import Together

class AllTasks(Method):
    '''Does not declare the data that it uses.'''

    def source(self, stream):
        return Together(stream.scenario, stream.tasks, stream.size, stream.rng, [range(len(stream.tasks))])

class Honest(AllTasks):
    '''Declares them.'''

    needs_earlier_tasks = True
"""


SILENT = """
import torch
from relive import Method

class Silent(Method):
    '''Keeps the first samples of each task as it gets them, and does not declare it.'''

    def __init__(self):
        self.kept = torch.empty(0)

    def after_task(self, net, learned, seen):
        x = learned[0].examples.KEPT
        self.kept = torch.cat([self.kept.reshape(-1, *x.shape[1:]), x])

    def state(self):
        return {"kept": self.kept}

    def load_state(self, state):
        self.kept = state["kept"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def replay(allow_stored_data: bool = False) -> ContinualClassifier:
    return ContinualClassifier(REPLAY, settings={"size": 20}, allow_stored_data=allow_stored_data, **SMALL)


def test_a_method_that_keeps_data_is_refused_by_default() -> None:
    model = replay()
    with pytest.raises(InputError, match=r"stores samples of earlier tasks, in the model and in its f"):
        model.partial_fit(*rows(0, 1))
    assert not hasattr(model, "learner_")


def test_it_works_if_it_is_allowed() -> None:
    forgetful = ContinualClassifier("none", **SMALL)
    model = replay(allow_stored_data=True)
    for classes in [(0, 1), (2, 3)]:
        model.partial_fit(*rows(*classes))
        forgetful.partial_fit(*rows(*classes))
    assert model.score(*rows(0, 1)) > 0.8 > 0.2 > forgetful.score(*rows(0, 1))


def test_its_file_holds_real_samples_and_goes_on_with_the_same_bits(path: Path) -> None:
    whole, stored = replay(allow_stored_data=True), replay(allow_stored_data=True)
    for classes in [(0, 1), (2, 3), (1, 4)]:
        whole.partial_fit(*rows(*classes))
        stored.partial_fit(*rows(*classes)).save(path)
        stored = load(path, allow_code=True)
        assert_same(whole, stored)
        for other in (copy.deepcopy(stored), pickle.loads(pickle.dumps(stored))):
            assert_same(whole, other)
    kept = read_tensors(path, KIND, VERSION)[1]["learner.method.x"].numpy()
    given = X.astype(np.float32)
    assert len(kept) == 18
    assert all((given == row).all(1).any() for row in kept)
    np.testing.assert_array_equal(whole.predict_proba(X[:9]), stored.predict_proba(X[:9]))


def test_a_forgotten_class_leaves_no_samples(path: Path) -> None:
    model = replay(allow_stored_data=True).partial_fit(*rows(0, 1)).partial_fit(*rows(2, 3))
    model.forget(1).save(path)
    kept = read_tensors(path, KIND, VERSION)[1]["learner.method.x"].numpy()
    held = [any((row == kept).all(1).any() for row in rows(c)[0].astype(np.float32)) for c in range(4)]
    assert held == [True, False, True, True]
    assert len(model.partial_fit(*rows(1, 4)).classes_) == 5


def test_a_method_that_keeps_data_and_cannot_delete_them_does_not_forget(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        SILENT.replace("KEPT", "inputs(slice(3))").replace(
            "    def __init__", "    keeps_data = True\n\n    def __init__"
        )
    )
    model = ContinualClassifier(f"{tmp_path / 'mine.py'}:Silent", allow_stored_data=True, **SMALL)
    model.partial_fit(*rows(0, 1))
    before = copy.deepcopy(model)
    with pytest.raises(
        InputError, match=r"Silent keeps samples, but .* nothing was forgotten: override forget\(net, g"
    ):
        model.forget(1)
    assert_same(before, model)
    assert model.classes_.tolist() == [0, 1]
    assert model.changes_ == ()


def test_real_samples_are_not_saved_once_that_is_no_longer_allowed(path: Path) -> None:
    model = replay(allow_stored_data=True).partial_fit(*rows(0, 1))
    model.set_params(allow_stored_data=False)
    for go_on in (lambda: model.save(path), lambda: model.partial_fit(*rows(2))):
        with pytest.raises(InputError, match="allow_stored_data=True"):
            go_on()
    assert not path.exists()


def test_a_file_cannot_say_of_itself_that_it_holds_none(path: Path) -> None:
    replay(allow_stored_data=True).partial_fit(*rows(0, 1)).save(path)
    header, tensors = read_tensors(path, KIND, VERSION)
    header["parameters"]["allow_stored_data"] = False
    write_tensors(path, KIND, VERSION, header, tensors)
    with pytest.raises(FileError, match="stores samples of earlier tasks"):
        load(path, allow_code=True)


def test_the_buffer_of_a_file_is_checked(path: Path) -> None:
    replay(allow_stored_data=True).partial_fit(*rows(0, 1)).save(path)
    header, tensors = read_tensors(path, KIND, VERSION)
    label, x = tensors["learner.method.label"], tensors["learner.method.x"]
    wrong = [
        {"learner.method.label": label[:3]},
        {"learner.method.label": label + 100},
        {"learner.method.task": label - 1},
        {"learner.method.x": x[:, :7]},
        {"learner.method.x": x > 0},
        {"learner.method.x": torch.full_like(x, torch.nan)},
    ]
    for change in wrong:
        write_tensors(path, KIND, VERSION, header, tensors | change)
        with pytest.raises(FileError, match="is not a valid model"):
            load(path, allow_code=True)


def test_a_method_that_needs_all_tasks_at_once(tmp_path: Path) -> None:
    """It is refused before training if it declares it, otherwise as soon as it uses data that are gone."""
    (tmp_path / "mine.py").write_text(ALL_TASKS)
    for method in ("offline", f"{tmp_path / 'mine.py'}:Honest"):
        with pytest.raises(InputError, match="trains on the data of all tasks so far, but partial_fit only gets"):
            ContinualClassifier(method, allow_stored_data=True, **SMALL).partial_fit(*rows(0, 1))
    model = ContinualClassifier(f"{tmp_path / 'mine.py'}:AllTasks", **SMALL).partial_fit(*rows(0, 1))
    with pytest.raises(InputError, match=r"uses data of earlier tasks, .* must declare needs_earlier_tasks = True"):
        model.partial_fit(*rows(2))
    assert model.n_tasks_ == 1


@pytest.mark.parametrize(
    ("kept", "scale", "dtype"),
    [("inputs(slice(3))", 1, float), ("inputs(slice(3)).reshape(3, 8, 8)", 50, float), ("pixels[:3]", 255, np.uint8)],
)
def test_a_method_that_keeps_samples_and_does_not_say_so_is_found_out(
    tmp_path: Path, kept: str, scale: int, dtype: type
) -> None:
    """In whatever form it keeps them: standardised, as pictures, or as the given bytes."""
    (tmp_path / "mine.py").write_text(SILENT.replace("KEPT", kept))
    x, y = rows(0, 1)
    model = ContinualClassifier(f"{tmp_path / 'mine.py'}:Silent", **SMALL)
    with pytest.raises(
        InputError,
        match=r"stores samples without declaring it: state\(\) has rows of the data in kept, .* keeps_data = True",
    ):
        model.partial_fit((x * scale).astype(dtype), y)
    assert not hasattr(model, "learner_")
    model.set_params(allow_stored_data=True).partial_fit((x * scale).astype(dtype), y)


def test_a_method_that_keeps_sums_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SILENT.replace("KEPT", "inputs(slice(None)).sum(0, keepdim=True)"))
    model = ContinualClassifier(f"{tmp_path / 'mine.py'}:Silent", **SMALL).partial_fit(*rows(0, 1))
    assert (
        models.data_note(model.choice_.method, models.holds_data(model))
        == "data      the method declares that it stores no samples; it is not one of relive's own"
    )
    assert models.data_note("none", False).endswith("no samples are stored in this file")
