"""Model files: training resumes bit-identically, they hold no data, and who can read and write them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import relive
from relive._util.errors import InputError, ReliveError
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.data.datasets.dataset import Dataset
from relive.experiments.execute import run
from relive.experiments.spec import make_spec
from tests.classifier.digits import CELLS, SETTINGS, TINY, X, assert_same, rows


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_going_on_after_loading_gives_the_same_bits(method: str, scenario: str, path: Path) -> None:
    whole, stored = (ContinualClassifier(method, scenario, settings=SETTINGS.get(method), **TINY) for _ in range(2))
    for k, classes in enumerate([(0, 1), (2, 3), (1, 4)]):
        whole.partial_fit(*rows(*classes), task=f"t{k}")
        stored.partial_fit(*rows(*classes), task=f"t{k}")
        stored.save(path)
        stored = load(path)
        assert_same(whole, stored)
        task = "t0" if scenario == "task" else None
        np.testing.assert_array_equal(whole.predict_proba(X[:9], task), stored.predict_proba(X[:9], task))
    assert stored.get_params() == whole.get_params()
    assert stored.classes_.tolist() == whole.classes_.tolist()
    assert [lesson.digest for lesson in stored.lessons_] == [lesson.digest for lesson in whole.lessons_]
    assert [m.kept for m in stored.report()] == [m.kept for m in whole.report()]


def test_all_kinds_of_labels_and_features(path: Path) -> None:
    import pandas as pd

    x, y = rows(0, 1)
    for labels in (y, y == 1, y.astype(float), np.array(["nö", "ye\ns"])[y]):
        frame = pd.DataFrame(x, columns=[f"pixel {i}" for i in range(64)])
        model = ContinualClassifier("ewc", settings={"lam": np.float64(3)}, hidden=int(np.int64(9)), iterations=4)
        model.partial_fit(frame * 100, labels, classes=labels[:1])
        model.notes_["image"] = [8, 8]
        model.save(path)
        again = relive.load(str(path))
        assert again.classes_.dtype == model.classes_.dtype
        assert again.predict(frame * 100).tolist() == model.predict(frame * 100).tolist()
        assert again.feature_names_in_.tolist() == list(frame.columns)
        assert again.notes_ == {"image": [8, 8]}
        assert_same(model.partial_fit(frame, labels), again.partial_fit(frame, labels))


SCRIPT = """
import sys
import numpy as np, torch
import relive
torch.set_num_threads(1)
path, k = sys.argv[1], int(sys.argv[2])
data = relive.load_data("mnist", sys.argv[3])
rows = np.isin(data.train_labels, [2 * k, 2 * k + 1])
if k:
    model = relive.load(path)
else:
    model = relive.ContinualClassifier("rtf", iterations=int(sys.argv[4]), fidelity="as_run", random_state=0)
model.partial_fit(data.train_inputs[rows].reshape(rows.sum(), -1), data.train_labels[rows])
model.save(path)
"""


def test_split_mnist_in_several_processes_gives_the_bits_of_a_run(
    path: Path, mnist_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(5):
        words = [str(path), str(k), str(mnist_home), "6"]
        if k == 0:  # a process takes seconds to start: the other tasks are trained here
            subprocess.run([sys.executable, "-c", SCRIPT, *words], check=True, timeout=300)
        else:
            monkeypatch.setattr(sys, "argv", ["", *words])
            exec(SCRIPT, {})
    spec = make_spec("split", "class", "rtf", iters=6, seed=0)
    seen: dict[str, Any] = {}

    from unittest.mock import patch

    from relive.core.learner import Learner

    learn = Learner.learn

    def watched(self: Learner, *args: Any) -> None:
        learn(self, *args)
        seen["state"] = self.state()

    with patch.object(Learner, "learn", watched):
        result = run(spec, data_dir=mnist_home).result
    model = load(path)
    ours = model.learner_.state()
    assert ours.keys() == seen["state"].keys()
    assert [name for name in ours if not torch.equal(ours[name], seen["state"][name])] == []
    data: Dataset = relive.load_data("mnist", mnist_home)
    accuracies = []
    for k in range(5):
        rows_ = np.isin(data.test_labels, [2 * k, 2 * k + 1])
        accuracies.append(model.score(data.test_inputs[rows_].reshape(rows_.sum(), -1), data.test_labels[rows_]))
    assert np.mean(accuracies) == pytest.approx(result.average_accuracy, abs=1e-4)


@pytest.mark.parametrize("method", ["rtf", "dgr", "ewc", "si", "lwf", "bir", "generative-classifier"])
@pytest.mark.parametrize("kind", ["bytes", "unit", "any"])
def test_no_training_input_is_in_the_file(method: str, kind: str, path: Path) -> None:
    """Rows of random numbers, searched for byte by byte, as they were given and as the network's inputs."""
    rng = np.random.default_rng(0)
    x: Any = rng.random((60, 24)) if kind == "unit" else rng.normal(50, 9, (60, 24))
    if kind == "bytes":
        x = rng.integers(0, 256, (60, 24), dtype=np.uint8)
    y = np.arange(60) % 2
    model = ContinualClassifier(method, **TINY).partial_fit(x[:30], y[:30]).partial_fit(x[30:], y[30:] + 2)
    model.save(path)
    raw = path.read_bytes()
    forms = [x, x.astype(np.float32), x.astype(np.float64), model.features_.inputs(x).numpy()]
    for form in forms:
        assert not any(row.tobytes() in raw for row in form)
        assert not any(row[:8].tobytes() in raw for row in form)


def test_a_model_that_learned_nothing_is_not_saved(path: Path) -> None:
    with pytest.raises(InputError, match="has not learned anything yet"):
        ContinualClassifier().save(path)
    with pytest.raises(InputError, match="there is no directory"):
        ContinualClassifier("rtf", **TINY).partial_fit(*rows(0, 1)).save(path.parent / "no" / "model")


def test_saving_on_a_full_disk_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, model = saved.read_bytes(), load(saved).partial_fit(*rows(3))

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ReliveError, match=r"cannot write .*: No space left on device"):
        model.save(saved)
    assert saved.read_bytes() == raw
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_other_programs_can_read_the_file(saved: Path) -> None:
    with safe_open(saved, framework="np") as file:
        header = json.loads(file.metadata()["header"])
        assert file.get_tensor("learner.net.head.weight").shape == (16, 5)
    assert header["labels"]["values"] == [0, 1, 2]
    assert header["lessons"][1]["counts"] == [40]


def test_who_may_read_it_stays_as_it_was(path: Path) -> None:
    model = ContinualClassifier("rtf", **TINY).partial_fit(*rows(0, 1))
    before = os.umask(0o077)
    try:
        model.save(path)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    path.chmod(0o640)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    ContinualClassifier("rtf", **TINY).partial_fit(*rows(0, 1)).save(link)
    assert link.is_symlink()
    assert load(path).n_tasks_ == 1


def test_notes_that_are_not_json_are_refused(path: Path) -> None:
    model = ContinualClassifier("rtf", **TINY).partial_fit(*rows(0, 1))
    model.notes_["a"] = np.float32(1)
    with pytest.raises(InputError, match="notes_ must be plain JSON values"):
        model.save(path)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("ewc", [0.177943, 0.191077, 0.316286, 0.314693]),
        ("rtf", [0.199185, 0.222262, 0.278036, 0.300517]),
        ("si", [0.182058, 0.182736, 0.316355, 0.318851]),
    ],
)
def test_a_model_of_version_0_1_goes_on_learning(method: str, expected: list[float]) -> None:
    """The files were written by 0.1, which then learned a third task and predicted these probabilities."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)).astype(np.float32), np.repeat([0, 1, 2, 3], 20)
    X[:, 0] += 2 * y
    X[:, 1] -= y * (y - 3)
    model = load(Path(__file__).parents[1] / "files" / f"{method}-0.1.safetensors")
    model.set_params(calibrate=False)  # which 0.1 did not have
    model.partial_fit(X[::2], y[::2])
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], expected, atol=1e-4)
