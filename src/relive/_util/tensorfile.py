"""Named tensors with a JSON header in one safetensors file, with a digest of all of it. Nothing in it is ever run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from relive._util.errors import ReliveError
from relive._util.files import write_atomic


class FileError(ReliveError):
    """A file is not what it should be; the message says in which way."""


def write_tensors(path: Path, kind: str, version: int, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a file of some kind, atomically."""
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    text = json.dumps(header)
    metadata = {"format": kind, "version": str(version), "header": text}
    metadata["sha256"] = _digest(tensors, metadata)
    write_atomic(path, save(tensors, metadata=metadata))


def read_tensors(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors of a file of that kind.

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
        tensors = load(raw)
        digest = _digest(tensors, metadata)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise FileError(f"{path} is cut short or damaged: {error}") from error
    if metadata.get("sha256") != digest:
        raise FileError(f"{path} was changed since it was written: its digest is not that of its contents")
    try:
        header: dict[str, Any] = json.loads(metadata["header"])
    except (ValueError, KeyError, RecursionError) as error:
        raise FileError(f"{path} has a header that cannot be read: {error}") from error
    return header, tensors


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


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """Return a digest of all tensors and all metadata but itself: the file format has none of its own."""
    told = {name: text for name, text in metadata.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
