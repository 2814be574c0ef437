"""Reading the user's arrays: NPZ files, and everything that can be wrong with them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive._util.errors import DataError, InputError, ReliveError
from relive.data.readers.formats import read_any


def npy(header: str) -> bytes:
    """An array in NumPy's format with this header, and no data."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


class TestArrays:
    def test_arrays_and_pictures(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.arange(12, dtype=np.int32).reshape(3, 4), y=np.array([[1], [2], [1]]), t=["a", "b", "a"])
        samples = read_any(path, task_column="t")
        assert (samples.x.dtype.name, samples.x.shape, samples.image) == ("float64", (3, 4), None)
        assert samples.y is not None
        assert samples.y.tolist() == [1, 2, 1]
        assert samples.tasks == ("a", "b", "a")
        np.savez(path, pictures=np.zeros((3, 4, 5), np.uint8), answers=["x", "y", "x"])
        samples = read_any(path, x="pictures", y="answers")
        assert (samples.x.dtype.name, samples.x.shape, samples.image) == ("uint8", (3, 20), (4, 5))
        np.savez(path, X=np.zeros((3, 4, 5, 3), np.uint8))
        samples = read_any(path, needed=False)
        assert (samples.x.shape, samples.image, samples.y) == ((3, 60), (4, 5, 3), None)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"data": np.eye(2), "y": [0, 1]}, "has no array 'X': it has 'data', 'y'; name the samples 'X', or pass"),
            ({"X": np.eye(2)}, "has no array 'y': it has 'X'; name the labels 'y', or pass"),
            (
                {"X": np.eye(2), "y": [0, 1, 2]},
                r"array 'y' of .* has shape \(3,\): it must have one value for each of the 2",
            ),
            (
                {"X": np.ones((2, 3, 4, 5)), "y": [0, 1]},
                r"is \(2, 3, 4, 5\): colours come last, X.transpose\(0, 2, 3, 1\)",
            ),
            ({"X": np.ones((2, 4, 5, 4)), "y": [0, 1]}, r"is \(2, 4, 5, 4\): an image has at most 3 channels"),
            ({"X": np.ones((2, 3, 4, 5, 1)), "y": [0, 1]}, r"is \(2, 3, 4, 5, 1\): give \(n, features\)"),
            ({"X": np.ones(2), "y": [0, 1]}, r"array 'X' of .* has shape \(2,\)"),
            ({"X": np.array([["a"], ["b"]]), "y": [0, 1]}, "array 'X' of .* has type <U1: features must be numbers"),
            ({"X": np.eye(2), "y": [b"a", b"b"]}, r"array 'y' of .* has type \|S1: labels must be numbers or strings"),
            ({"X": np.array([[1.0, np.nan]]), "y": [0]}, "missing or infinite value, first in row 1, feature 2: fill"),
            ({"X": np.array([{}, {}]), "y": [0, 1]}, "array 'X' of .* holds Python objects, which are never loaded"),
            ({"X": np.eye(2), "y": np.array(["a", 1], object)}, r"array 'y' of .* store strings with y\.astype\(str\)"),
            ({"X": np.eye(2), "y": ["a", ""]}, "array 'y' of .* has a missing value in row 2"),
            ({"X": np.eye(2), "y": [0.5, 1.5]}, "array 'y' of .* has 0.5 in row 1"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(ReliveError, match=message):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"not zipped", b"a,label\n1,2\n"])
    def test_what_is_no_npz(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"is damaged or not a NumPy file: (?!.*pickle)"):
            read_any(tmp_path / "a.npz")

    def test_a_single_array_is_no_npz(self, tmp_path: Path) -> None:
        with open(tmp_path / "a.npz", "wb") as file:
            np.save(file, np.eye(2))
        with pytest.raises(
            InputError, match=r"is a single array, as numpy.save writes it: .*savez\('a.npz', X=…, y=…\)"
        ):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize(
        ("name", "member", "compression", "message"),
        [
            ("X", b"text", zipfile.ZIP_STORED, "'X' in it is not an array"),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, "), zipfile.ZIP_STORED, ""),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 999)}"), 0, "more memory"),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}"), zipfile.ZIP_LZMA, ""),
        ],
    )
    def test_odd_members(self, tmp_path: Path, name: str, member: bytes, compression: int, message: str) -> None:
        with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as file:
            file.writestr(name, member)
            file.writestr("y.npy", b"")
        with pytest.raises(DataError, match=f"is damaged or .*{message}"):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize(("at", "byte", "message"), [(8, 99, "compression"), (6, 1, "encrypted")])
    def test_unknown_compression_and_encryption(self, tmp_path: Path, at: int, byte: int, message: str) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(2), y=[0, 1])
        content = bytearray(path.read_bytes())
        content[at] = byte
        content[content.index(b"PK\x01\x02") + at + 2] = byte
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"is damaged or not a NumPy file: .*{message}"):
            read_any(path)

    @pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_damage_in_every_compression(self, tmp_path: Path, compression: int) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(20), y=np.arange(20))
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, content in members.items():
                file.writestr(name, content)
        assert read_any(path).x.shape == (20, 20)
        whole = path.read_bytes()
        for start in range(35, 110, 5):
            path.write_bytes(whole[:start] + b"\xff" * 9 + whole[start + 9 :])
            with pytest.raises(DataError, match="is damaged or not a NumPy file"):
                read_any(path)
