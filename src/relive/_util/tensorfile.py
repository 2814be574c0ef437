"""Reading and writing files of ``relive._util.arrayfile`` as tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from relive._util.arrayfile import FileError, digest_of, read_arrays
from relive._util.files import write_atomic

__all__ = ["FileError", "read_tensors", "write_tensors"]


def write_tensors(
    path: Path,
    kind: str,
    version: int,
    header: dict[str, Any],
    tensors: dict[str, Tensor],
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a file of some kind atomically; ``check`` reads it before it replaces the old one."""
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    metadata = {"format": kind, "version": str(version), "header": json.dumps(header)}
    metadata["sha256"] = _digest(tensors, metadata)
    write_atomic(path, save(tensors, metadata=metadata), check)


def read_tensors(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors of a file of that kind; errors are those of ``read_arrays``."""
    header, arrays = read_arrays(path, kind, version)
    return header, {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    return digest_of({name: tensor.numpy() for name, tensor in tensors.items()}, metadata)
