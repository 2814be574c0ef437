"""Run directories: one per run, written atomically, so that a run counts only when its result is whole.

A run's directory is named readably, plus a hash of its spec, and holds ``spec.json``, ``result.json`` (with a digest of
itself), the pictures, and while the run is under way ``checkpoint.safetensors``, its state at the last finished task.
Directories of several machines are merged by copying them together.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.errors import ReliveError
from relive.experiments.spec import RunResult, RunSpec
from relive.files import write_atomic

SPEC, RESULT, SAMPLES, CHECKPOINT = "spec.json", "result.json", "samples.npz", "checkpoint.safetensors"
LEASE, DAMAGED = ".lease", "result.json.damaged"


class StoreError(ReliveError):
    """The runs directory cannot be used."""


class DamagedResult(ReliveError):  # noqa: N818
    """A result file is not what was written; it is never read as a number."""


@dataclass(frozen=True)
class Store:
    """The runs below one directory."""

    root: Path

    def directory(self, spec: RunSpec) -> Path:
        """Return where the run of this spec lives."""
        return self.root / spec.name

    def prepare(self, spec: RunSpec) -> Path:
        """Make the run's directory, with its spec in it, and return it."""
        path = self.directory(spec)
        with self._writable():
            path.mkdir(parents=True, exist_ok=True)
            if not (path / SPEC).exists():
                write_atomic(path / SPEC, to_bytes(spec.to_json()))
        return path

    def save(self, result: RunResult, samples: list[npt.NDArray[np.uint8]]) -> Path:
        """Keep a finished run; from the moment the result is there, the run is done."""
        path = self.prepare(result.spec)
        with self._writable():
            if samples:
                named: dict[str, Any] = {f"task{k}": a for k, a in enumerate(samples)}
                arrays = io.BytesIO()
                np.savez_compressed(arrays, **named)
                write_atomic(path / SAMPLES, arrays.getvalue())
            write_atomic(path / RESULT, to_bytes(signed(result.to_json())))
            (path / CHECKPOINT).unlink(missing_ok=True)
        return path

    def load(self, spec: RunSpec) -> RunResult | None:
        """Return the result of this spec, or None if it has not been finished here.

        Raises
        ------
        DamagedResult
            If there is a result but it is not what was written.
        """
        path = self.directory(spec) / RESULT
        return read_result(path) if path.exists() else None

    def set_aside(self, spec: RunSpec) -> None:
        """Take a damaged result out of the way, so that the run can be done again."""
        path = self.directory(spec)
        os.replace(path / RESULT, path / DAMAGED)

    def scan(self) -> tuple[list[RunResult], list[DamagedResult]]:
        """Return all whole results below the root, by name, and what is wrong with the others."""
        results, damaged = [], []
        names = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir()) if self.root.is_dir() else []
        for name in names:
            try:
                results.append(read_result(self.root / name / RESULT))
            except FileNotFoundError:
                continue
            except DamagedResult as error:
                damaged.append(error)
        return results, damaged

    @contextmanager
    def lease(self, spec: RunSpec) -> Iterator[bool]:
        """Hold a run while working on it; gives False if somebody else holds it.

        It is a lock of the operating system: an owner that dies, however, loses it at once.
        """
        handle = acquire(self.prepare(spec) / LEASE)
        try:
            yield handle is not None
        finally:
            if handle is not None:
                release(self.directory(spec) / LEASE, handle)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write to the runs directory {self.root}: {error.strerror}. Choose another with --runs-dir"
            ) from error


def acquire(path: Path) -> int | None:
    """Lock a file and return its handle, or None if another process has it locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(handle), os.stat(path)):
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            pass  # its last owner removed it between our two looks: take the new one
        os.close(handle)


def release(path: Path, handle: int) -> None:
    """Give a lock back."""
    path.unlink(missing_ok=True)
    os.close(handle)


def to_bytes(values: dict[str, Any]) -> bytes:
    """Return JSON as it stands in the files, a key per line at the top."""
    rows = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


def signed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with a digest of them, so that any damage shows."""
    return values | {"sha256": _digest(values)}


def read_signed(path: Path) -> dict[str, Any]:
    """Read what ``signed`` wrote, without the digest."""
    try:
        values = json.loads(path.read_bytes())
        digest = values.pop("sha256")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedResult(f"{path} is damaged: it is not a whole result ({error})") from None
    if digest != _digest(values):
        raise DamagedResult(f"{path} is damaged: its digest is {_digest(values)}, and it says {digest}")
    whole: dict[str, Any] = values
    return whole


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_result(path: Path) -> RunResult:
    """Read one ``result.json``."""
    values = read_signed(path)
    try:
        return RunResult.from_json(values)
    except (ReliveError, KeyError, TypeError, ValueError) as error:
        raise DamagedResult(f"{path} is not a result of this version: {error}") from error


def read_samples(directory: Path) -> list[npt.NDArray[np.uint8]]:
    """Return the replayed pictures of a run, one array per task; empty if its method does not generate."""
    path = directory / SAMPLES
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[f"task{k}"] for k in range(len(arrays.files))]
