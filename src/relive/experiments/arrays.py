"""Images made by generators: named arrays in one compressed NPZ file, read without pickle."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.files import write_atomic
from relive.experiments.resultfile import DamagedResult

Pictures = npt.NDArray[np.uint8]  # (n, height, width), or (n, height, width, 3) in colour


def write_arrays(path: Path, arrays: Mapping[str, Pictures]) -> None:
    """Write the arrays, atomically."""
    named: dict[str, Any] = dict(arrays)
    raw = io.BytesIO()
    np.savez_compressed(raw, **named)
    write_atomic(path, raw.getvalue(), check=read_arrays)


def read_arrays(path: Path, only: Collection[str] | None = None) -> dict[str, Pictures]:
    """Return the arrays in a file, or only the named ones; empty if there is no file."""
    if not path.exists():
        return {}
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if only is None or name in only}
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedResult(f"{path} is damaged: {error}") from error
