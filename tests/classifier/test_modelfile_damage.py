"""Damaged or forged model files: every kind is refused with its reason, and costs no memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from relive._util.errors import InputError, ReliveError
from relive._util.tensorfile import FileError, _digest, read_tensors, write_tensors
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION
from tests.classifier.digits import TINY, assert_same, rows
from tests.forks import in_a_fork


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
        with pytest.raises(FileError, match="its header is damaged, or not from relive"):
            load(tmp_path / "other")
        save_file({"a": torch.zeros(3)}, tmp_path / "other", metadata={"format": "pt"})
        with pytest.raises(FileError, match="it is a safetensors file of another kind"):
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
        told = rf"has version {new} of the format .*, but this relive only reads up to version {VERSION}: use a newer"
        with pytest.raises(FileError, match=told):
            load(saved)

    def test_changed_numbers_and_a_changed_header(self, saved: Path) -> None:
        raw = saved.read_bytes()
        saved.write_bytes(raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:])
        with pytest.raises(FileError, match="was changed after it was written"):
            load(saved)
        assert raw.count(b"as_written") == 1
        saved.write_bytes(raw.replace(b"as_written", b"as_writtem"))
        with pytest.raises(FileError, match="was changed after it was written"):
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
        """Anyone can compute the digest of a forged header: it must still be refused, and cost no memory."""
        header, tensors = read_tensors(saved, KIND, VERSION)
        for name, value in change.items():
            header[name] = header[name] | value if name == "parameters" else value
        write_tensors(saved, KIND, VERSION, header, tensors)
        with pytest.raises(FileError, match="is not a valid model"):
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
        with pytest.raises(FileError, match="is not a valid model"):
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
            with pytest.raises(FileError, match="is not a valid model"):
                load(path)

    @pytest.mark.parametrize(
        ("method", "name"),
        [("ewc", "fisher2"), ("ewc", "anchor2"), ("online-ewc", "fisher0"), ("si", "Omega3"), ("xdg", "gates")],
    )
    def test_a_method_s_tensors_that_lie(self, method: str, name: str, path: Path) -> None:
        """Types, shapes, values or names that the method cannot have written, each refused by its name."""
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
            with pytest.raises(FileError, match=f"is not a valid model: .*{name}"):
                load(path)
        write_tensors(path, KIND, VERSION, header, {n: t for n, t in tensors.items() if n != key})
        with pytest.raises(FileError, match=f"is not a valid model: {name} is not there, but should be"):
            load(path)
        write_tensors(path, KIND, VERSION, header, tensors)
        assert load(path).n_tasks_ == 1

    @pytest.mark.parametrize("method", ["none", "lwf", "dgr", "rtf", "ewc", "si"])
    def test_tensors_that_no_method_has_asked_for(self, method: str, path: Path) -> None:
        ContinualClassifier(method, **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        for name in ("method.x", "method.fisher99", "net.encoder.layer3.weight", "adam.m99", "more"):
            write_tensors(path, KIND, VERSION, header, tensors | {f"learner.{name}": torch.zeros(3)})
            with pytest.raises(FileError, match=f"is not a valid model: .*{name.rpartition('method.')[2]} is"):
                load(path)

    def test_numbers_that_no_training_leads_to(self, path: Path) -> None:
        ContinualClassifier("rtf", **TINY | {"hidden": 5}).partial_fit(*rows(0, 1)).save(path)
        header, tensors = read_tensors(path, KIND, VERSION)
        for name, value in (("adam.m0", torch.inf), ("adam.m0", torch.nan), ("adam.v1", -1.0), ("adam.v1", torch.nan)):
            changed = torch.full_like(tensors[f"learner.{name}"], value)
            write_tensors(path, KIND, VERSION, header, tensors | {f"learner.{name}": changed})
            with pytest.raises(FileError, match=f"{name} has impossible values"):
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
        """Bytes changed, cut, repeated or shuffled: every file is refused, or has the same contents."""
        raw, dice = saved.read_bytes(), random.Random(0)
        header_end = 8 + int.from_bytes(raw[:8], "little")
        refused = 0
        for _ in range(2000):
            damaged = bytearray(raw)
            end = header_end if dice.random() < 0.6 else len(raw)  # most damage goes to the header
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
            else:  # e.g. a space between two keys: still the same model
                saved.write_bytes(raw)
                assert_same(model, load(saved))
        assert refused > 1900


def peak() -> float:
    """Return the peak memory of this process, in MB."""
    import resource  # which not every system has

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth(path: Path, lies: dict[str, int]) -> float:
    """Return by how many MB this process grows when a file lies about each of these sizes."""
    load(path)
    header, tensors = read_tensors(path, KIND, VERSION)
    before = peak()
    for name, value in lies.items():
        write_tensors(path, KIND, VERSION, header | {"parameters": header["parameters"] | {name: value}}, tensors)
        with pytest.raises(FileError):
            load(path)
    return peak() - before


@pytest.mark.slow
@pytest.mark.parametrize("method", ["none", "ewc", "xdg", "dgr", "rtf", "conv"])
def test_a_header_that_lies_costs_no_memory(method: str, path: Path) -> None:
    """A small file that declares a network of a gigabyte is refused before the process has grown by a tenth of that."""
    conv: dict[str, Any] = {"encoder": "conv", "shape": (8, 8)} if method == "conv" else {}
    model = ContinualClassifier("rtf" if conv else method, "task", **TINY | {"hidden": 5, "latent": 2} | conv)
    model.partial_fit(*rows(0, 1)).save(path)
    lies = {"hidden": 10_000} | ({"latent": 3_000_000} if conv or method in ("dgr", "rtf") else {})
    assert in_a_fork(growth, path, lies) < 100  # MB
