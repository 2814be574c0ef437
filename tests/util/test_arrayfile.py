"""Array files: read as safetensors reads them, and refused where the header does not match the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from relive._util.arrayfile import FileError, digest_of, read_arrays

KIND, VERSION = "a test", 1
TYPES = ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (3,), (2, 3), (0, 4), (2, 1, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def file_of(arrays: dict[str, Any]) -> bytes:
    metadata = {"format": KIND, "version": str(VERSION), "header": json.dumps({"x": 1})}
    return save(arrays, metadata=metadata | {"sha256": digest_of(arrays, metadata)})


def test_every_type_and_shape_is_read_as_safetensors_reads_it(path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        f"{dtype} {shape}": np.asarray(rng.integers(0, 2, shape)).astype(dtype) for dtype in TYPES for shape in SHAPES
    }
    path.write_bytes(file_of(arrays))
    header, found = read_arrays(path, KIND, VERSION)
    theirs = load_file(path)
    assert header == {"x": 1}
    assert found.keys() == theirs.keys() == arrays.keys()
    for name, array in found.items():
        assert (array.dtype, array.shape) == (theirs[name].dtype, theirs[name].shape)
        np.testing.assert_array_equal(array, theirs[name])


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "F32"},
        {"dtype": "BF16"},
        {"dtype": 5},
        {"shape": [4, 3]},
        {"shape": [-2, -3]},
        {"shape": 6},
        {"shape": [10**30, 0]},
        {"data_offsets": [0, 47]},
        {"data_offsets": [8, 56]},
        {"data_offsets": [-8, 40]},
        {"data_offsets": [0, 48, 0]},
        {"data_offsets": [0, 2**80]},
    ],
)
def test_a_header_that_lies_about_its_arrays(path: Path, change: dict[str, Any]) -> None:
    raw = file_of({"a": np.zeros((2, 3))})
    length = int.from_bytes(raw[:8], "little")
    layout = json.loads(raw[8 : 8 + length])
    layout["a"] |= change
    text = json.dumps(layout).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(FileError, match="cut short or damaged"):
        read_arrays(path, KIND, VERSION)


def test_truth_values_that_are_none(path: Path) -> None:
    path.write_bytes(file_of({"a": np.zeros(3, bool)})[:-1] + b"\2")
    with pytest.raises(FileError, match="booleans other than 0 and 1"):
        read_arrays(path, KIND, VERSION)
