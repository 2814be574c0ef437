"""The IDX file format of MNIST: read with every byte accounted for, and written."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relive._util.errors import DataError

_UNSIGNED_BYTE = 0x08


def size(shape: Sequence[int]) -> int:
    """Return how many bytes an IDX file of unsigned bytes takes for an array of this shape.

    >>> size((60_000, 28, 28))
    47040016
    """
    return 4 + 4 * len(shape) + math.prod(shape)


def to_bytes(array: NDArray[np.uint8]) -> bytes:
    """Return the IDX file that holds ``array``.

    Parameters
    ----------
    array : numpy.ndarray
        Unsigned bytes, of 1 to 255 dimensions.

    Returns
    -------
    bytes
        Four bytes of magic number, each dimension as a big-endian 32-bit number, then the values.

    Examples
    --------
    >>> to_bytes(np.array([7, 2, 1], dtype=np.uint8)).hex(" ", -4)
    '00000801 00000003 070201'
    """
    if array.dtype != np.uint8 or array.ndim == 0:
        raise DataError(
            f"only uint8 arrays with at least 1 dimension can be written as IDX, not {array.dtype} with {array.ndim}"
        )
    head = struct.pack(f">HBB{array.ndim}I", 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    return head + array.tobytes()


def from_bytes(raw: bytes, name: str) -> NDArray[np.uint8]:
    """Return the array that an IDX file holds.

    Parameters
    ----------
    raw : bytes
        The whole file.
    name : str
        What to call the file in an error.

    Returns
    -------
    numpy.ndarray
        Unsigned bytes, a copy that may be written to.

    Raises
    ------
    DataError
        If the magic number is not that of unsigned bytes, or the file is shorter or longer than its
        dimensions say.

    Examples
    --------
    >>> from_bytes(bytes.fromhex("00000801 00000003 070201"), "labels")
    array([7, 2, 1], dtype=uint8)
    >>> from_bytes(bytes.fromhex("00000801 00000003 0702"), "labels")
    Traceback (most recent call last):
        ...
    relive._util.errors.DataError: labels: too short: 10 bytes, but an IDX file of shape (3,) has 11
    """
    if len(raw) < 4:
        raise DataError(f"{name}: too short: {len(raw)} bytes, but an IDX file starts with 4 bytes of magic")
    zero, kind, ndim = struct.unpack(">HBB", raw[:4])
    if zero != 0 or kind != _UNSIGNED_BYTE or ndim == 0:
        raise DataError(
            f"{name}: wrong magic number 0x{raw[:4].hex()}: an IDX file of unsigned bytes starts with "
            f"0x000008NN, NN being the number of dimensions"
        )
    data = 4 + 4 * ndim
    if len(raw) < data:
        raise DataError(f"{name}: too short: {len(raw)} bytes, but its {ndim} dimensions alone end at {data}")
    shape = struct.unpack(f">{ndim}I", raw[4:data])
    if len(raw) != size(shape):
        wrong = "short" if len(raw) < size(shape) else "long"
        raise DataError(f"{name}: too {wrong}: {len(raw)} bytes, but an IDX file of shape {shape} has {size(shape)}")
    return np.frombuffer(raw, dtype=np.uint8, offset=data).reshape(shape).copy()
