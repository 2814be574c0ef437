"""Run directories: one per run, written atomically, so that a run counts only once its result is complete.

A run's directory has a readable name plus a hash of its spec, and holds ``spec.json``, ``result.json`` (with its own
digest), the images, a folder ``snapshots`` of model files if requested, and while the run is in progress
``checkpoint.safetensors``, its state at the last finished task, and ``progress.json``.
Directories of several machines are merged by copying them together; a ledger (``relive.experiments.ledger``) is read in
the same way.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relive._util.errors import ReliveError
from relive._util.files import acquire, release, write_atomic
from relive.experiments import ledger
from relive.experiments.arrays import read_arrays, write_arrays
from relive.experiments.resultfile import DamagedResult, StoreError, read_result, signed, to_bytes
from relive.experiments.spec import RunResult, RunSpec

SPEC, RESULT, SAMPLES, CHECKPOINT = "spec.json", "result.json", "samples.npz", "checkpoint.safetensors"
PROGRESS, SNAPSHOTS = "progress.json", "snapshots"
LEASE, DAMAGED = ".lease", "result.json.damaged"


@dataclass(frozen=True)
class Store:
    """The runs below one directory, and those in ledgers.

    Attributes
    ----------
    root
        Where runs are stored, including new ones; it may be a ledger.
    also
        Ledgers or runs directories whose results count as done, and are only read.
    """

    root: Path
    also: tuple[Path, ...] = ()

    def directory(self, spec: RunSpec) -> Path:
        """Return the directory of this spec's run."""
        return self.root / spec.name

    def prepare(self, spec: RunSpec) -> Path:
        """Create the run's directory, with its spec in it, and return it."""
        path = self.directory(spec)
        with self.writable():
            path.mkdir(parents=True, exist_ok=True)
            stored, wanted = path / SPEC, to_bytes(spec.to_json())
            if not stored.exists() or stored.read_bytes() != wanted:
                write_atomic(stored, wanted)
        return path

    def save(self, result: RunResult, samples: list[npt.NDArray[np.uint8]]) -> Path:
        """Store a finished run; once the result is there, the run is done."""
        path = self.prepare(result.spec)
        with self.writable():
            if samples:
                write_arrays(path / SAMPLES, {f"task{k}": a for k, a in enumerate(samples)})
            write_atomic(path / RESULT, to_bytes(signed(result.to_json())), check=read_result)
        self.tidy(result.spec)
        return path

    def has_checkpoint(self, spec: RunSpec) -> bool:
        """Return whether the state of this run is stored: it is in progress, or was when it was killed."""
        return (self.directory(spec) / CHECKPOINT).exists()

    def tidy(self, spec: RunSpec) -> None:
        """Remove what a killed process left half-written, and the checkpoint of a finished run.

        The caller must hold the lease: another process may be writing these files.
        """
        path = self.directory(spec)
        with self.writable():
            for name in (SPEC, RESULT, SAMPLES, CHECKPOINT, PROGRESS):
                for leftover in path.glob(f".{name}.*.tmp"):
                    leftover.unlink(missing_ok=True)
            if (path / RESULT).exists():
                (path / CHECKPOINT).unlink(missing_ok=True)
                (path / PROGRESS).unlink(missing_ok=True)

    def load(self, spec: RunSpec) -> RunResult | None:
        """Return the result of this spec, or None if it is not finished here.

        Raises
        ------
        DamagedResult
            If there is a result but it is not what was written.
        StoreError
            If it cannot be read, or is from a version of relive with other results.
        """
        for root in (self.root, *self.also):
            try:
                return _read(root, spec.name)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except DamagedResult:
                if root == self.root:
                    raise
            found = ledger.results(root).get(spec.name)
            if isinstance(found, RunResult):
                return found
        return None

    def load_or_set_aside(self, spec: RunSpec, warn: Callable[[str], None]) -> RunResult | None:
        """Return the result of this spec; a damaged one is set aside, so that the run can be repeated.

        The caller must hold the lease.
        """
        try:
            return self.load(spec)
        except DamagedResult as error:
            path = self.directory(spec)
            places = (path / (DAMAGED if k == 1 else f"{DAMAGED}-{k}") for k in itertools.count(1))
            with self.writable():
                os.replace(path / RESULT, next(place for place in places if not place.exists()))
            warn(f"{error}; set aside, and the run is repeated")
            return None

    def scan(self) -> tuple[list[RunResult], list[ReliveError]]:
        """Return all intact results, each run once, by name, and the problems with the others."""
        found: dict[str, RunResult | ReliveError] = {}
        with _no_collection():
            for root in reversed((self.root, *self.also)):
                found |= ledger.results(root)
                for name in sorted(os.listdir(root)) if root.is_dir() else []:
                    try:
                        found[name] = _read(root, name)
                    except (FileNotFoundError, NotADirectoryError):
                        continue
                    except (DamagedResult, StoreError) as error:
                        found[name] = error
        whole = {name: result for name, result in found.items() if isinstance(result, RunResult)}
        return [whole[name] for name in sorted(whole)], [e for e in found.values() if not isinstance(e, RunResult)]

    def samples(self, spec: RunSpec) -> list[npt.NDArray[np.uint8]]:
        """Return the images made by a run's generator, one array per task; empty if none are stored."""
        for root in (self.root, *self.also):
            found = read_samples(root / spec.name) or ledger.samples(root, spec)
            if found:
                return found
        return []

    @contextmanager
    def lease(self, spec: RunSpec) -> Iterator[bool]:
        """Hold a run while working on it; yields False if another process holds it.

        It is an operating-system lock: when its owner dies, it is released at once.
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
        """Report clearly that the runs directory cannot be written to, if an operation fails for that reason."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write to the runs directory {self.root}: {error.strerror or error}. "
                "Choose another with --runs-dir"
            ) from error


def _read(root: Path, name: str) -> RunResult:
    """Return the result in the directory with that name, which must be this run's: a copy does not count twice."""
    path = root / name / RESULT
    result = read_result(path)
    if result.spec.name != name:
        raise DamagedResult(f"{path} is in the wrong place: it is the result of {result.spec.name}")
    return result


@contextmanager
def _no_collection() -> Iterator[None]:
    """Suspend garbage collection while many long-lived objects are created: it would take half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_samples(directory: Path) -> list[npt.NDArray[np.uint8]]:
    """Return the images in a run's directory, one array per task; empty if its method does not generate."""
    arrays = read_arrays(directory / SAMPLES)
    names = [f"task{k}" for k in range(len(arrays))]
    if arrays.keys() != set(names):
        raise DamagedResult(
            f"{directory / SAMPLES} is damaged: it has {', '.join(arrays)} instead of one array per task"
        )
    return [arrays[name] for name in names]
