"""Named arrays with a JSON header in one safetensors file, read without torch. Nothing in it is ever executed.

A file is eight bytes with the length of its header, the header, and the arrays. It is read in that order, and nothing
is read or allocated before its size is known to be right.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from relive._util import schema
from relive._util.errors import ReliveError

Array = npt.NDArray[Any]

LONGEST = 100_000_000  # bytes of a header, as in safetensors itself
TYPES = {
    "BOOL": "?",
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    **{f"I{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
}


class FileError(ReliveError):
    """A file is not what it should be; the message says why."""


def read_arrays(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file of that kind; the arrays are views of the file: copy them.

    Raises
    ------
    FileError
        If it is another kind of file, of a newer version, cut short, or modified.
    """
    with open(path, "rb", opener=_opened_at_once) as file:
        layout = _layout(path, file, kind)
        metadata: dict[str, str] = layout.pop("__metadata__")
        said = metadata.get("version", "")
        if not said.isdecimal() or len(said) > 9 or int(said) > version:
            raise FileError(
                f"{path} has version {said[:9] or '?'} of the format {kind!r}, but this relive only reads up "
                f"to version {version}: use a newer relive"
            )
        try:
            arrays = _arrays(file, layout)
        except (ReliveError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise FileError(f"{path} is cut short or damaged: {error}") from error
    if metadata.get("sha256") != digest_of(arrays, metadata):
        raise FileError(f"{path} was changed after it was written: its digest does not match its contents")
    try:
        header: dict[str, Any] = schema.record(json.loads(metadata["header"]), "header")
    except (ReliveError, ValueError, KeyError, RecursionError) as error:
        raise FileError(f"{path} has an unreadable header: {error}") from error
    return header, arrays


def digest_of(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    """Return a digest of all arrays and all metadata except itself: the file format has none."""
    told = {name: text for name, text in metadata.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} torch.{array.dtype} {array.shape}\n".encode())  # the type as torch calls it
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _opened_at_once(path: str, flags: int) -> int:
    """Open a file without blocking on something that is not one, such as a pipe that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _layout(path: Path, file: IO[bytes], kind: str) -> dict[str, Any]:
    """Return a safetensors file's metadata and the layout of its arrays."""
    about = os.fstat(file.fileno())
    foreign = f"{path} is not a {kind}: "
    if not stat.S_ISREG(about.st_mode):
        raise FileError(foreign + "it is not a regular file")
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > LONGEST:
        raise FileError(foreign + "it is not a safetensors file")
    if about.st_size < 8 + length:
        raise FileError(f"{path} is cut short: it has {about.st_size} bytes, but its header alone takes {length}")
    try:
        layout: dict[str, Any] = json.loads(start[8:] + file.read(length - 1))
        metadata = layout["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(foreign + "its header is damaged, or not from relive") from error
    if not isinstance(metadata, dict) or metadata.get("format") != kind:
        raise FileError(foreign + "it is a safetensors file of another kind")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise FileError(f"{path} is damaged: its header has values that are not text")
    return layout


def _arrays(file: IO[bytes], layout: dict[str, Any]) -> dict[str, Array]:
    """Return the arrays that a header describes; they must be contiguous and end with the file."""
    start, size = file.tell(), os.fstat(file.fileno()).st_size
    places = [(name, *_place(name, about)) for name, about in layout.items()]
    places.sort(key=lambda place: place[-2:])
    end = 0
    for name, _, _, first, last in places:
        if first != end:
            raise ValueError(f"{name} starts at byte {first} instead of {end}")
        end = last
    if start + end != size:
        raise ValueError(f"it has {size} bytes, but its header describes {start + end}")
    raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays = {}
    for name, dtype, shape, first, last in places:
        array = np.frombuffer(raw, dtype, (last - first) // dtype.itemsize, start + first).reshape(shape)
        if dtype.kind == "b" and bool((array.view(np.uint8) > 1).any()):
            raise ValueError(f"{name} has booleans other than 0 and 1")
        arrays[name] = array
    return arrays


def _place(name: str, about: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Return an array's type and shape, and where it starts and ends."""
    dtype = np.dtype(TYPES[schema.text(about["dtype"], f"the type of {name}")])
    shape = tuple(schema.whole(n, f"the shape of {name}") for n in schema.items(about["shape"], f"the shape of {name}"))
    first, last = (schema.whole(n, f"the place of {name}") for n in about["data_offsets"])
    if last - first != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} has {last - first} bytes, which do not fit {shape} of {dtype}")
    return dtype, shape, first, last
