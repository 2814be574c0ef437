"""Named arrays with a JSON header in one safetensors file, read without torch. Nothing in it is ever run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load

from relive._util.errors import ReliveError

Array = npt.NDArray[Any]


class FileError(ReliveError):
    """A file is not what it should be; the message says in which way."""


def read_arrays(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file of that kind.

    Raises
    ------
    FileError
        If it is another kind of file, of a newer version, cut short, or changed since it was written.
    """
    raw = path.read_bytes()
    metadata = _metadata(path, raw, kind)
    said = metadata.get("version", "")
    if not said.isdecimal() or len(said) > 9 or int(said) > version:
        raise FileError(
            f"{path} has version {said[:9] or '?'} of the format {kind!r}, this relive knows up to {version}: "
            "use a newer relive"
        )
    try:
        arrays: dict[str, Array] = load(raw)
        digest = digest_of(arrays, metadata)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise FileError(f"{path} is cut short or damaged: {error}") from error
    if metadata.get("sha256") != digest:
        raise FileError(f"{path} was changed since it was written: its digest is not that of its contents")
    try:
        header: dict[str, Any] = json.loads(metadata["header"])
    except (ValueError, KeyError, RecursionError) as error:
        raise FileError(f"{path} has a header that cannot be read: {error}") from error
    return header, arrays


def digest_of(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    """Return a digest of all arrays and all metadata but itself: the file format has none of its own."""
    told = {name: text for name, text in metadata.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} torch.{array.dtype} {array.shape}\n".encode())  # the type as torch calls it
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _metadata(path: Path, raw: bytes, kind: str) -> dict[str, str]:
    """Return what a safetensors file says about itself."""
    length = int.from_bytes(raw[:8], "little")
    foreign = f"{path} is not a {kind}: "
    if len(raw) < 8 or not raw[8:9] == b"{" or length > 100_000_000:
        raise FileError(foreign + "it is not a safetensors file")
    if len(raw) < 8 + length:
        raise FileError(f"{path} is cut short: {len(raw)} bytes, and its header alone has {length}")
    try:
        metadata = json.loads(raw[8 : 8 + length])["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(foreign + "its header says nothing of relive, or is damaged") from error
    if not isinstance(metadata, dict) or metadata.get("format") != kind:
        raise FileError(foreign + "it is a safetensors file of something else")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise FileError(f"{path} is damaged: its header has values that are not text")
    return metadata
