"""Run directories: one per run, written atomically, so that a run counts only when its result is whole.

A run's directory is named readably, plus a hash of its spec, and holds ``spec.json``, ``result.json`` (with a digest of
itself), the pictures, and while the run is under way ``checkpoint.safetensors``, its state at the last finished task.
Directories of several machines are merged by copying them together.
"""

from __future__ import annotations

import gc
import hashlib
import io
import itertools
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from relive.errors import ReliveError
from relive.experiments.spec import RunResult, RunSpec
from relive.files import acquire, release, write_atomic

SPEC, RESULT, SAMPLES, CHECKPOINT = "spec.json", "result.json", "samples.npz", "checkpoint.safetensors"
LEASE, DAMAGED = ".lease", "result.json.damaged"
_SIGNATURE = b',\n "sha256": "'  # begins the last line of a signed file


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
        with self.writable():
            path.mkdir(parents=True, exist_ok=True)
            said, wanted = path / SPEC, to_bytes(spec.to_json())
            if not said.exists() or said.read_bytes() != wanted:
                write_atomic(said, wanted)
        return path

    def save(self, result: RunResult, samples: list[npt.NDArray[np.uint8]]) -> Path:
        """Keep a finished run; from the moment the result is there, the run is done."""
        path = self.prepare(result.spec)
        with self.writable():
            if samples:
                named: dict[str, Any] = {f"task{k}": a for k, a in enumerate(samples)}
                arrays = io.BytesIO()
                np.savez_compressed(arrays, **named)
                write_atomic(path / SAMPLES, arrays.getvalue())
            write_atomic(path / RESULT, to_bytes(signed(result.to_json())))
        self.tidy(result.spec)
        return path

    def has_checkpoint(self, spec: RunSpec) -> bool:
        """Return whether the state of this run is kept: it is under way, or was when it was killed."""
        return (self.directory(spec) / CHECKPOINT).exists()

    def tidy(self, spec: RunSpec) -> None:
        """Remove what a killed process left half-written, and the checkpoint of a run that is done.

        Only for who holds the run: another's file would be taken from under its hands.
        """
        path = self.directory(spec)
        with self.writable():
            for name in (SPEC, RESULT, SAMPLES, CHECKPOINT):
                for leftover in path.glob(f".{name}.*.tmp"):
                    leftover.unlink(missing_ok=True)
            if (path / RESULT).exists():
                (path / CHECKPOINT).unlink(missing_ok=True)

    def load(self, spec: RunSpec) -> RunResult | None:
        """Return the result of this spec, or None if it has not been finished here.

        Raises
        ------
        DamagedResult
            If there is a result but it is not what was written.
        StoreError
            If it cannot be read, or is of a version of relive with other results.
        """
        try:
            return self._read(spec.name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def load_or_set_aside(self, spec: RunSpec, warn: Callable[[str], None]) -> RunResult | None:
        """Return the result of this spec; a damaged one is taken out of the way, so that the run can be done again.

        Only for who holds the run.
        """
        try:
            return self.load(spec)
        except DamagedResult as error:
            path = self.directory(spec)
            places = (path / (DAMAGED if k == 1 else f"{DAMAGED}-{k}") for k in itertools.count(1))
            with self.writable():
                os.replace(path / RESULT, next(place for place in places if not place.exists()))
            warn(f"{error}; set aside, and run again")
            return None

    def scan(self) -> tuple[list[RunResult], list[ReliveError]]:
        """Return all whole results below the root, by name, and what is wrong with the others."""
        results: list[RunResult] = []
        damaged: list[ReliveError] = []
        names = sorted(os.listdir(self.root)) if self.root.is_dir() else []
        with _no_collection():
            for name in names:
                try:
                    results.append(self._read(name))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except (DamagedResult, StoreError) as error:
                    damaged.append(error)
        return results, damaged

    def _read(self, name: str) -> RunResult:
        """Return the result in the directory of that name, which must be this run's: a copy does not count twice."""
        path = self.root / name / RESULT
        result = read_result(path)
        if result.spec.name != name:
            raise DamagedResult(f"{path} is misplaced: it is the result of {result.spec.name}")
        return result

    @contextmanager
    def lease(self, spec: RunSpec) -> Iterator[bool]:
        """Hold a run while working on it; gives False if somebody else holds it.

        It is a lock of the operating system: an owner that dies, however, loses it at once.
        """
        path = self.directory(spec) / LEASE
        with self.writable():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = acquire(path)
        try:
            if handle is not None:
                self.prepare(spec)
            yield handle is not None
        finally:
            if handle is not None:
                release(path, handle)

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Say clearly that the runs directory cannot be written to, if what is done here shows that."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write to the runs directory {self.root}: {error.strerror or error}. "
                "Choose another with --runs-dir"
            ) from error


@contextmanager
def _no_collection() -> Iterator[None]:
    """Do not look for garbage while many objects are made that all stay: it would take half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def to_bytes(values: dict[str, Any]) -> bytes:
    """Return JSON as it stands in the files, a key per line at the top."""
    rows = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


def signed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with a digest of their bytes in a file, so that any damage shows."""
    return values | {"sha256": hashlib.sha256(to_bytes(values)).hexdigest()}


def read_signed(path: Path) -> dict[str, Any]:
    """Read what ``to_bytes(signed(values))`` wrote, without the digest."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    body, signature, said = raw.rpartition(_SIGNATURE)
    digest = hashlib.sha256(body + b"\n}\n").hexdigest()
    if not signature or said != f'{digest}"\n}}\n'.encode():
        raise DamagedResult(f"{path} is damaged: it is not what was written ({len(raw)} bytes)")
    values: dict[str, Any] = orjson.loads(raw)  # the standard library takes five times as long
    del values["sha256"]
    return values


def read_result(path: Path) -> RunResult:
    """Read one ``result.json``."""
    values = read_signed(path)
    try:
        return RunResult.from_json(values)
    except (ReliveError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is whole, but of another version of relive ({error}); it stays as it is: "
            "move its directory away to do the run again, or choose another --runs-dir"
        ) from error


def read_samples(directory: Path) -> list[npt.NDArray[np.uint8]]:
    """Return the replayed pictures of a run, one array per task; empty if its method does not generate."""
    path = directory / SAMPLES
    if not path.exists():
        return []
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            return [arrays[f"task{k}"] for k in range(len(arrays.files))]
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedResult(f"{path} is damaged: {error}") from error
