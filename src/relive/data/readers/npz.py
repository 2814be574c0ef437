"""Samples and labels from arrays in an NPZ file; nothing in it is ever executed."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from relive._util.errors import DataError, InputError
from relive._util.files import memory
from relive.data.readers.samples import (
    FIT,
    Array,
    Samples,
    answers_in,
    check_shape,
    in_one_line,
    listed,
    numbers,
    tasks_in,
)


def read_npz(path: Path, x: str, y: str, needed: bool, task_array: str | None = None) -> Samples:
    """Read samples (n, features), or images (n, height, width[, 3]), and labels (n,) from a NumPy file.

    Parameters
    ----------
    path
        Written by ``numpy.savez``; nothing in it is ever executed.
    x, y
        Names of the two arrays.
    needed
        Whether the labels must be there.
    task_array
        An array with each sample's task.
    """
    arrays = _arrays(path, x, y, [x, *([y] if needed else []), *([task_array] if task_array else [])])
    data = numbers(arrays[x], f"array {x!r} of {path}")
    if data.ndim < 2 or not len(data):
        raise InputError(f"array {x!r} of {path} has shape {data.shape}: it must be (samples, features)")
    check_shape(data.shape, f"array {x!r} of {path}")
    data = data[..., 0] if data.ndim == 4 and data.shape[3] == 1 else data  # one channel is grey
    image = data.shape[1:] if data.ndim == 3 or (data.ndim == 4 and data.shape[3] == 3) else None
    flat = data.reshape(len(data), -1)
    if not np.isfinite(flat).all():
        row, column = np.argwhere(~np.isfinite(flat))[0]
        raise InputError(
            f"array {x!r} of {path} has a missing or infinite value, first in row {row + 1}, feature "
            f"{column + 1}: fill it in or leave the row out"
        )
    found = {name: _column_of(array, len(flat), name, path) for name, array in arrays.items() if name != x}
    return Samples(
        flat,
        answers_in(found.get(y), f"array {y!r} of {path}", needed),
        image=image,
        tasks=tasks_in(found[task_array], f"array {task_array!r} of {path}") if task_array else None,
    )


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an NPZ file; empty if it cannot be read, which reading it explains."""
    try:
        with zipfile.ZipFile(path) as file:
            return [name.removesuffix(".npy") for name in file.namelist()]
    except (OSError, zipfile.BadZipFile):
        return []


def _arrays(path: Path, x: str, y: str, wanted: list[str]) -> dict[str, Array]:
    """Return the wanted arrays of an NPZ file, and the labels if they are there."""
    with path.open("rb") as opened:
        start = opened.read(6)
    if start.startswith(b"\x93NUMPY"):
        raise InputError(
            f"{path} is a single array, as numpy.save writes it: store samples and labels together, with "
            f"numpy.savez({path.name!r}, {x}=…, {y}=…)"
        )
    if not start.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # NumPy would offer to run it as a pickle
        raise DataError(f"{path} is damaged or not a NumPy file: it does not start like a file written by numpy.savez")
    try:
        # opened here, since NumPy leaves a file open that is not an archive
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            size = sum(about.file_size for about in file.zip.infolist())
            if size > memory() // 2:
                raise InputError(f"{path} unpacks to {size / 1e9:.1f} GB, which does not fit into memory")
            for name in wanted:
                if name not in file.files:
                    raise InputError(f"{path} has no array {name!r}: it has {listed(file.files)}{_hint(name, x, y)}")
            return {name: _array(file, name, path) for name in [*wanted, y] if name in file.files}
    except InputError:
        raise
    except MemoryError as error:
        raise DataError(f"{path} is damaged or needs more memory than there is: {error}") from error
    except Exception as error:  # zipfile, NumPy and each kind of compression have their own errors
        raise DataError(f"{path} is damaged or not a NumPy file: {in_one_line(error)}") from error


def _array(file: Any, name: str, path: Path) -> Array:
    try:
        array = file[name]
    except ValueError as error:
        if not str(error).startswith("Object arrays"):
            raise
        raise InputError(
            f"array {name!r} of {path} holds Python objects, which are never loaded: store strings with "
            f"{name}.astype(str), numbers with {name}.astype(float)"
        ) from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name!r} in it is not an array")
    return array


def _column_of(array: Array, n: int, name: str, path: Path) -> Array:
    if array.shape not in ((n,), (n, 1)):
        raise InputError(
            f"array {name!r} of {path} has shape {array.shape}: it must have one value for each of the {n} samples"
        )
    return array.reshape(n)


def _hint(name: str, x: str, y: str) -> str:
    hints = {x: f"; name the samples {x!r}, or pass their name to {FIT} with --x"}
    hints[y] = f"; name the labels {y!r}, or pass their name to {FIT} with --y"
    return hints.get(name, "")
