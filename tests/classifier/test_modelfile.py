"""Model files: going on with the same bits, no data in them, nothing run, and every kind of damage told."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import relive
from relive._util.errors import InputError, ReliveError
from relive._util.tensorfile import FileError, _digest, read_tensors, write_tensors
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION
from relive.data.datasets.dataset import Dataset
from relive.experiments.execute import run
from relive.experiments.spec import make_spec
from tests.classifier.test_estimator import CELLS, SMALL, X, assert_same, rows

TINY = SMALL | {"iterations": 8}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(("method", "scenario"), CELLS)
def test_going_on_after_loading_gives_the_same_bits(method: str, scenario: str, path: Path) -> None:
    whole = ContinualClassifier(method, scenario, **TINY)
    stored = ContinualClassifier(method, scenario, **TINY)
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
        if k < 2:  # a process takes seconds to start: the others learn here
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
    """Rows of random numbers, looked for byte by byte, as they were given and as the network took them."""
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


@pytest.fixture
def saved(path: Path) -> Path:
    ContinualClassifier("rtf", **TINY | {"hidden": 5, "latent": 2}).partial_fit(*rows(0, 1)).partial_fit(*rows(2)).save(
        path
    )
    return path


class TestDamage:
    def test_missing_and_foreign_files(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"there is no model .*nothing"):
            load(tmp_path / "nothing")
        with pytest.raises(ReliveError, match="cannot read"):
            load(tmp_path)
        for name, content in (("text", b"hello, this is no model at all"), ("empty", b""), ("npz", b"PK\3\4" * 99)):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(FileError, match="is not a relive model: it is not a safetensors file"):
                load(tmp_path / name)
        save_file({"a": torch.zeros(3)}, tmp_path / "other")
        with pytest.raises(FileError, match="its header says nothing of relive"):
            load(tmp_path / "other")
        save_file({"a": torch.zeros(3)}, tmp_path / "other", metadata={"format": "pt"})
        with pytest.raises(FileError, match="it is a safetensors file of something else"):
            load(tmp_path / "other")

    def test_cut_short(self, saved: Path) -> None:
        raw = saved.read_bytes()
        for length in (4, 8, 100, len(raw) // 2, len(raw) - 1):
            saved.write_bytes(raw[:length])
            with pytest.raises(FileError, match=r"cut short|is not a relive model"):
                load(saved)

    def test_a_newer_version(self, saved: Path) -> None:
        raw = saved.read_bytes()
        new = VERSION + 1
        saved.write_bytes(raw.replace(f'"version":"{VERSION}"'.encode(), f'"version":"{new}"'.encode()))
        told = rf"has version {new} of the format .*, this relive knows up to {VERSION}: use a newer"
        with pytest.raises(FileError, match=told):
            load(saved)

    def test_changed_numbers_and_a_changed_header(self, saved: Path) -> None:
        raw = saved.read_bytes()
        saved.write_bytes(raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:])
        with pytest.raises(FileError, match="was changed since it was written"):
            load(saved)
        assert raw.count(b"as_written") == 1
        saved.write_bytes(raw.replace(b"as_written", b"as_writtem"))
        with pytest.raises(FileError, match="was changed since it was written"):
            load(saved)

    @pytest.mark.parametrize(
        "change",
        [
            {"parameters": {"hidden": 10**9}},
            {"parameters": {"latent": 10**9}},
            {"parameters": {"method": "offline"}},
            {"parameters": {"surprise": 1}},
            {"n_features": 10**12},
            {"lessons": []},
            {"labels": {"dtype": "O", "values": ["x"]}},
            {"likelihood": "magic"},
            {"seed": "seven"},
            {"labels": {"dtype": "<U20000000", "values": ["a", "b", "c"]}},
            {"labels": {"dtype": "int64", "values": [0, 0, 1]}},
            {"labels": {"dtype": "float64", "values": [0.0, float("nan"), 1.0]}},
            {"declared": {"dtype": "int64", "values": list(range(3000))}},
            {"notes": []},
            {"feature_names": ["one"]},
            {"parameters": {"likelihood": "zzz"}},
            {"parameters": {"encoder": "conv", "shape": [8, 8]}},
            {"parameters": {"allow_stored_data": 1}},
            {"labels": {"dtype": "int64", "values": [0, 1, 2, 3]}},
            {"versions": [1]},
            {"versions": {"torch": 2}},
            {"parameters": {"random_state": -1}},
            {"parameters": {"early_stopping": "yes"}},
            {"parameters": {"batch_size": 10**12}},
            {"parameters": {"learning_rate": 10**400}},
            {"seed": 2**63},
            {"dreamt": {"0": "1"}},
            {"dreamt": {"9": 0.5}},
            {"dreamt": {"0": 0.0}},
            {"changes": [{"what": "explode", "labels": [1], "into": None, "changed_at": ""}]},
            {"changes": [{"what": "rename", "labels": [1], "into": None, "changed_at": ""}]},
            {"changes": [{"what": "forget", "labels": [[]], "into": None, "changed_at": ""}]},
        ],
    )
    def test_a_header_that_lies_with_the_right_digest(self, saved: Path, change: dict[str, Any]) -> None:
        """Whoever can compute the digest can write any header: it must still be refused, and cost no memory."""
        header, tensors = read_tensors(saved, KIND, VERSION)
        for name, value in change.items():
            header[name] = header[name] | value if name == "parameters" else value
        write_tensors(saved, KIND, VERSION, header, tensors)
        with pytest.raises(FileError, match="is not a whole model"):
            load(saved)

    @pytest.mark.parametrize(
        "change",
        [
            {"classes": [7]},
            {"classes": []},
            {"classes": [0, 0]},
            {"classes": [-1, 0]},
            {"counts": [1]},
            {"name": [1]},
            {"name": None},
            {"seconds": "x"},
            {"tested": {"0": [1]}},
            {"tested": {"7": [1, 1]}},
            {"tested": {"0": [1, 2]}},
            {"seconds": float("inf")},
            {"iterations": "x"},
            {"learned_at": 5},
            {"batches": 0},
            {"surprise": 1},
        ],
    )
    def test_a_task_that_lies(self, saved: Path, change: dict[str, Any]) -> None:
        header, tensors = read_tensors(saved, KIND, VERSION)
        header["lessons"][0] |= change
        write_tensors(saved, KIND, VERSION, header, tensors)
        with pytest.raises(FileError, match="is not a whole model"):
            load(saved)

    def test_tensors_that_lie(self, path: Path) -> None:
        ContinualClassifier("ewc", **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        wrong: list[dict[str, torch.Tensor]] = [
            {"learner.net.head.bias": torch.full((16,), torch.nan)},
            {"learner.net.head.bias": torch.zeros(16, dtype=torch.float16)},
            {"learner.net.head.bias": torch.zeros(32)},
            {"learner.method.fisher0": torch.zeros(3)},
            {"learner.adam.v0": torch.full_like(tensors["learner.adam.v0"], -1.0)},
            {"features.scale": torch.zeros(64, dtype=torch.float64)},
            {"features.mean": torch.zeros(64, 64, dtype=torch.float64)},
            {"../../x": torch.zeros(1)},
            {"learner.seen": torch.tensor(3)},
            {"learner.rng.noise": torch.zeros(5, dtype=torch.uint8)},
        ]
        for change in wrong:
            write_tensors(path, KIND, VERSION, header, tensors | change)
            with pytest.raises(FileError, match="is not a whole model"):
                load(path)

    @pytest.mark.parametrize(
        ("method", "name"),
        [("ewc", "fisher2"), ("ewc", "anchor2"), ("online-ewc", "fisher0"), ("si", "Omega3"), ("xdg", "gates")],
    )
    def test_a_method_s_tensors_that_lie(self, method: str, name: str, path: Path) -> None:
        """Other types, shapes, values or names than the method can have written, each refused by its name."""
        ContinualClassifier(method, "task", **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        key = f"learner.method.{name}"
        right = tensors[key]
        dtypes = [torch.bool, torch.uint8, torch.int64, torch.float16]
        dtypes += [torch.float64] if right.dtype == torch.float32 else []  # float32 anchors are those of 0.1
        wrong = [right.to(dtype) for dtype in dtypes]
        wrong += [right[:0], right.unsqueeze(0), torch.cat([right, right]), torch.zeros(0), torch.tensor(1.0)]
        wrong += [torch.full_like(right, value) for value in (torch.nan, torch.inf, -torch.inf)]
        for tensor in wrong:
            write_tensors(path, KIND, VERSION, header, tensors | {key: tensor})
            with pytest.raises(FileError, match=f"is not a whole model: .*{name}"):
                load(path)
        write_tensors(path, KIND, VERSION, header, {n: t for n, t in tensors.items() if n != key})
        with pytest.raises(FileError, match=f"is not a whole model: {name} is not there"):
            load(path)
        write_tensors(path, KIND, VERSION, header, tensors)
        assert load(path).n_tasks_ == 1

    @pytest.mark.parametrize("method", ["none", "lwf", "dgr", "rtf", "ewc", "si"])
    def test_tensors_that_no_method_has_asked_for(self, method: str, path: Path) -> None:
        ContinualClassifier(method, **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        for name in ("method.x", "method.fisher99", "net.encoder.layer3.weight", "adam.m99", "more"):
            write_tensors(path, KIND, VERSION, header, tensors | {f"learner.{name}": torch.zeros(3)})
            with pytest.raises(FileError, match=f"is not a whole model: .*{name.rpartition('method.')[2]} is"):
                load(path)

    def test_numbers_that_no_training_leads_to(self, path: Path) -> None:
        ContinualClassifier("rtf", **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        for name, value in (("adam.m0", torch.inf), ("adam.m0", torch.nan), ("adam.v1", -1.0), ("adam.v1", torch.nan)):
            changed = torch.full_like(tensors[f"learner.{name}"], value)
            write_tensors(path, KIND, VERSION, header, tensors | {f"learner.{name}": changed})
            with pytest.raises(FileError, match=f"{name} has numbers that no training leads to"):
                load(path)

    @pytest.mark.parametrize(
        "metadata",
        [
            {"header": "[" * 100_000},
            {"header": "hello"},
            {"header": '{"seed": ' + "9" * 5000 + "}"},
            {"version": "9" * 5000},
            {"version": "one"},
        ],
    )
    def test_a_header_that_is_no_header(self, saved: Path, metadata: dict[str, str]) -> None:
        tensors = load_file(saved)
        with safe_open(saved, framework="pt") as file:
            told = file.metadata() | metadata
        save_file(tensors, saved, metadata=told | {"sha256": _digest(tensors, told)})
        with pytest.raises(FileError):
            load(saved)

    def test_a_kind_of_number_that_numpy_has_not(self, saved: Path) -> None:
        with safe_open(saved, framework="pt") as file:
            told = file.metadata()
        save_file({"a": torch.zeros(3, dtype=torch.bfloat16)}, saved, metadata=told)
        with pytest.raises(FileError, match="cut short or damaged"):
            load(saved)

    def test_two_thousand_files_with_random_damage(self, saved: Path) -> None:
        """Bytes changed, cut, repeated or shuffled: every one is refused, or was not really changed."""
        raw, dice = saved.read_bytes(), random.Random(0)
        header_end = 8 + int.from_bytes(raw[:8], "little")
        refused = 0
        for _ in range(2000):
            damaged = bytearray(raw)
            end = header_end if dice.random() < 0.6 else len(raw)  # the header is where it is interesting
            for _ in range(dice.choice([1, 1, 2, 10])):
                damaged[dice.randrange(end)] = dice.randrange(256)
            if dice.random() < 0.3:
                start = dice.randrange(len(damaged))
                del damaged[start : start + dice.choice([1, 8, 1000, len(raw)])]
            if dice.random() < 0.1:
                damaged += damaged[: dice.randrange(100)]
            if bytes(damaged) == raw:
                continue
            saved.write_bytes(bytes(damaged))
            try:
                model = load(saved)
            except ReliveError:
                refused += 1
            else:  # e.g. the space between two keys: the same model all the same
                saved.write_bytes(raw)
                assert_same(model, load(saved))
        assert refused > 1900


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


def test_no_pickle_is_loaded_anywhere() -> None:
    """The whole package, for anything that would unpickle a file."""
    forbidden = re.compile(
        r"torch\.load\b|joblib|allow_pickle=True|\b(import|from) (pickle|dill|cloudpickle|shelve|marshal)\b"
    )
    for source in Path(relive.__file__).parent.rglob("*.py"):
        assert not forbidden.search(source.read_text()), source


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
    """The files were written by 0.1, which then learned a third task and answered with these probabilities."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)).astype(np.float32), np.repeat([0, 1, 2, 3], 20)
    X[:, 0] += 2 * y
    X[:, 1] -= y * (y - 3)
    model = load(Path(__file__).parents[1] / "files" / f"{method}-0.1.safetensors")
    model.set_params(calibrate=False)  # which 0.1 did not know
    model.partial_fit(X[::2], y[::2])
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], expected, atol=1e-4)


OWN_NETWORK = """
from torch import nn

def make(shape, hidden, rng):
    return nn.Sequential(nn.Linear(64, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.2))
"""


def taught(stored: ContinualClassifier, path: Path) -> ContinualClassifier:
    """Teach three tasks, with a file in between, beside a model that is never stored."""
    whole = ContinualClassifier(**stored.get_params())
    for classes in [(0, 1), (2, 3), (1, 4)]:
        whole.partial_fit(*rows(*classes))
        stored.partial_fit(*rows(*classes)).save(path)
        stored = load(path, allow_code=True)
        assert_same(whole, stored)
        np.testing.assert_array_equal(whole.predict_proba(X[:9]), stored.predict_proba(X[:9]))
    assert stored.get_params() == whole.get_params()
    return stored


@pytest.mark.parametrize("method", ["none", "ewc", "si", "lwf", "dgr", "rtf"])
def test_a_convolutional_model(method: str, path: Path) -> None:
    model = taught(ContinualClassifier(method, encoder="conv", shape=(8, 8), **TINY), path)
    assert "net.encoder.conv2.weight" in model.learner_.state()
    assert load(path).shape == (8, 8)
    with pytest.raises(InputError, match=r"shape was \(8, 8\) when this model was made"):
        model.set_params(shape=None).partial_fit(*rows(5))


@pytest.mark.parametrize("method", ["ewc", "rtf"])
def test_a_network_of_one_s_own(method: str, path: Path, tmp_path: Path) -> None:
    """Its buffers are kept; its code runs only if the caller says so."""
    (tmp_path / "mine.py").write_text(OWN_NETWORK)
    address = f"{tmp_path / 'mine.py'}:make"
    model = taught(ContinualClassifier(method, encoder=address, **TINY), path)
    assert int(model.learner_.state()["net.encoder.1.num_batches_tracked"]) == 24
    with pytest.raises(InputError, match=r"names code of your own, .*mine.py:make, which .* allow_code=True"):
        load(path)


@pytest.mark.parametrize("parameter", ["method", "encoder"])
def test_a_file_cannot_have_code_run(parameter: str, path: Path, tmp_path: Path) -> None:
    ContinualClassifier("none", **TINY).partial_fit(*rows(0, 1)).save(path)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    header, tensors = read_tensors(path, KIND, VERSION)
    wrong: list[Any] = [f"{tmp_path / 'evil.py'}:make", "os:abort", 3, ["os:abort"], {}]
    for value in wrong:
        changed = header | {"parameters": header["parameters"] | {parameter: value}}
        write_tensors(path, KIND, VERSION, changed, tensors)
        with pytest.raises(ReliveError):
            load(path)
        assert not (tmp_path / "ran").exists()


HUNGRY = """
import resource, sys
from pathlib import Path
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB

path = Path(sys.argv[1])
load(path)
header, tensors = read_tensors(path, KIND, VERSION)
before = peak()
for change in sys.argv[2:]:
    name, value = change.split("=")
    lying = header | {"parameters": header["parameters"] | {name: int(value)}}
    write_tensors(path, KIND, VERSION, lying, tensors)
    try:
        load(path)
    except FileError:
        continue
    raise AssertionError(change)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["none", "ewc", "xdg", "dgr", "rtf", "conv"])
def test_a_header_that_lies_costs_no_memory(method: str, path: Path) -> None:
    """A network of a gigabyte, asked for by a small file: refused before the process has grown by a tenth of that."""
    conv: dict[str, Any] = {"encoder": "conv", "shape": (8, 8)} if method == "conv" else {}
    model = ContinualClassifier("rtf" if conv else method, "task", **TINY | {"hidden": 5, "latent": 2} | conv)
    model.partial_fit(*rows(0, 1)).save(path)
    lies = ["hidden=10000", *(["latent=3000000"] if conv or method in ("dgr", "rtf") else [])]
    command = [sys.executable, "-c", HUNGRY, str(path), *lies]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100  # MB


def test_a_function_cannot_be_stored(path: Path) -> None:
    from relive.networks import mlp_of

    model = ContinualClassifier("rtf", encoder=mlp_of(20, 10), **TINY).partial_fit(*rows(0, 1))
    with pytest.raises(InputError, match="cannot be saved: a file holds no code"):
        model.save(path)
    assert not path.exists()


def test_a_convolution_needs_the_shape() -> None:
    with pytest.raises(InputError, match=r"shape is \(64,\): say what it is, such as shape=\(28, 28\)"):
        ContinualClassifier(encoder="conv", **TINY).partial_fit(*rows(0, 1))
    wrong: list[Any] = [5, "8x8", (8.0, 8)]
    for shape in wrong:
        with pytest.raises(InputError, match="it must be whole numbers"):
            ContinualClassifier(shape=shape, **TINY).partial_fit(*rows(0, 1))
    with pytest.raises(InputError, match="an input of this shape has 49 numbers, not 64"):
        ContinualClassifier(shape=(7, 7), **TINY).partial_fit(*rows(0, 1))


def test_code_beside_a_model_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "own.py").write_text(
        "from torch import nn\ndef make(shape, hidden, rng):\n    return nn.Linear(shape[0], hidden)\n"
    )
    monkeypatch.chdir(home)
    ContinualClassifier("none", encoder="own.py:make", iterations=2).partial_fit(*rows(0, 1)).save("m.safetensors")
    monkeypatch.chdir(elsewhere)
    model = load("../home/m.safetensors", allow_code=True)
    model.partial_fit(*rows(2)).save("again.safetensors")
    assert load("again.safetensors", allow_code=True).n_tasks_ == 2
    (home / "own.py").rename(home / "other.py")
    with pytest.raises(
        FileError, match=r"there is no file own.py, neither from .*elsewhere nor beside the model, .*own"
    ):
        load("../home/m.safetensors", allow_code=True)
