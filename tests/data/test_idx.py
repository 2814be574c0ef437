"""IDX files: what is written is read back, and a missing, extra or wrong byte is always detected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from relive._util.errors import DataError
from relive.data.datasets import idx

shapes = arrays_of.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)
arrays = arrays_of.arrays(np.uint8, shapes)


@given(array=arrays)
def test_written_arrays_are_read_again(array: NDArray[np.uint8]) -> None:
    raw = idx.to_bytes(array)
    again = idx.from_bytes(raw, "file")
    np.testing.assert_array_equal(again, array)
    assert again.dtype == np.uint8
    assert again.flags.writeable
    assert len(raw) == idx.size(array.shape)


@given(array=arrays, data=st.data())
def test_every_cut_is_noticed(array: NDArray[np.uint8], data: st.DataObject) -> None:
    raw = idx.to_bytes(array)
    kept = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(DataError, match=rf"^file: too short: {kept} bytes, but"):
        idx.from_bytes(raw[:kept], "file")


@given(array=arrays, extra=st.binary(min_size=1, max_size=9))
def test_every_excess_is_noticed(array: NDArray[np.uint8], extra: bytes) -> None:
    raw = idx.to_bytes(array) + extra
    with pytest.raises(DataError, match=rf"too long: {len(raw)} bytes, .* has {len(raw) - len(extra)}$"):
        idx.from_bytes(raw, "file")


@pytest.mark.parametrize("magic", ["00000800", "00000d03", "00010803", "1f8b0808"])
def test_a_wrong_magic_number_is_named(magic: str) -> None:
    with pytest.raises(DataError, match=f"images.gz: wrong magic number 0x{magic}"):
        idx.from_bytes(bytes.fromhex(magic) + bytes(100), "images.gz")


def test_slices_are_written_in_the_order_of_their_values() -> None:
    columns = np.arange(6, dtype=np.uint8).reshape(2, 3)[:, 1:]
    assert idx.to_bytes(columns)[-4:] == bytes([1, 2, 4, 5])


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros(3, np.int8), np.uint8(7).reshape(())])
def test_only_arrays_of_unsigned_bytes_are_written(array: NDArray[np.uint8]) -> None:
    with pytest.raises(DataError, match="only uint8 arrays"):
        idx.to_bytes(array)
