"""A ledger: many finished runs in a few files, where a runs directory has a folder for each.

``<protocol>.jsonl`` has one line per run, sorted by name: the contents of its ``result.json``, with the same digest.
``samples.npz`` has the images made by generators, by run and task. A store reads a ledger like a runs directory.
Only one process at a time adds to a ledger.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from relive._util.errors import ReliveError
from relive._util.files import acquire, release, write_atomic
from relive._util.registry import short_name
from relive.experiments.arrays import read_arrays, write_arrays
from relive.experiments.resultfile import DamagedResult, StoreError, result_of, signed, to_bytes
from relive.experiments.spec import RunResult, RunSpec

ENDING, SAMPLES, LEASE = ".jsonl", "samples.npz", ".lease"
_LINE = "restore the file, or delete this line and collect the run again"


def results(root: Path) -> Mapping[str, RunResult | ReliveError]:
    """Return each run of a ledger by its name; damaged ones, and second results of a run, as errors."""
    found: dict[str, RunResult | ReliveError] = {}
    for path in sorted(root.glob(f"*{ENDING}")):
        about = path.stat()
        for name, run in _read(path, about.st_mtime_ns, about.st_size).items():
            if found.setdefault(name, run) != run:
                found[f"{path}, {name}"] = DamagedResult(
                    f"{path} and another file of the ledger have different results of {name}: delete one of the lines"
                )
    return found


@functools.lru_cache(maxsize=32)
def _read(path: Path, changed: int, size: int) -> Mapping[str, RunResult | ReliveError]:
    """Read one file; ``changed`` and ``size`` tell whether it is the one that was read before."""
    return _lines(path)


def _lines(path: Path) -> dict[str, RunResult | ReliveError]:
    found: dict[str, RunResult | ReliveError] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        where = f"{path}, line {number},"
        if not line.strip():
            continue
        try:
            run = result_of(_verified(line, where), where, _LINE)
        except (DamagedResult, StoreError) as error:
            found[where] = error
        else:
            if found.setdefault(run.spec.name, run) != run:
                found[where] = DamagedResult(
                    f"{where} is a second, different result of {run.spec.name}: delete one of the two lines"
                )
    return found


def _verified(line: bytes, where: str) -> dict[str, Any]:
    """Return the values of a line after checking its digest."""
    try:
        values: dict[str, Any] = orjson.loads(line)
        stored = values.pop("sha256")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedResult(f"{where} is damaged: {error}; {_LINE}") from error
    if stored != hashlib.sha256(to_bytes(values)).hexdigest():
        raise DamagedResult(f"{where} is damaged: its digest does not match; {_LINE}")
    return values


def samples(root: Path, spec: RunSpec) -> list[npt.NDArray[np.uint8]]:
    """Return the images of a run, one array per task; empty if the ledger has none."""
    names = [f"{spec.name}/task{k}" for k in range(spec.tasks)]
    found = read_arrays(root / SAMPLES, names)
    return [found[name] for name in names if name in found]


@dataclass(frozen=True)
class Added:
    """What became of the runs for a ledger.

    Attributes
    ----------
    new, replaced
        Those that were added, and those that took the place of another result.
    known
        Those that the ledger already had.
    other
        Those that were left out, since the ledger has another result of them.
    """

    new: list[RunSpec]
    replaced: list[RunSpec]
    known: list[RunSpec]
    other: list[RunSpec]


def add(
    root: Path,
    runs: Iterable[RunResult],
    pictures: Mapping[str, npt.NDArray[np.uint8]] | None = None,
    *,
    replace: bool = False,
) -> Added:
    """Add runs to a ledger.

    Parameters
    ----------
    root
        The ledger's directory, created if it does not exist.
    runs
        Finished runs.
    pictures
        Images made by their generators, by ``<run's name>/task<k>``; they stay with the result that they belong to.
    replace
        Whether a run in the ledger is replaced by another result of the same spec.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root):
        known = results(root)
        damaged = [error for error in known.values() if not isinstance(error, RunResult)]
        if damaged:
            raise DamagedResult("\n".join(map(str, damaged)) + "\nnothing was added")
        given = {run.spec.name: run for run in runs}
        other = {name for name, run in given.items() if known.get(name, run) != run}
        taken = given.keys() - known.keys() | (other if replace else set())
        _put_pictures(root, pictures or {}, taken, given.keys() - (other - taken))
        kept = {name: run for name, run in known.items() if isinstance(run, RunResult)}
        kept |= {name: given[name] for name in taken}
        for protocol in sorted({short_name(given[name].spec.protocol) for name in taken}):
            mine = [run for _, run in sorted(kept.items()) if short_name(run.spec.protocol) == protocol]
            write_atomic(root / (protocol + ENDING), b"".join(map(_line, mine)), check=_check)

    def specs(names: Collection[str]) -> list[RunSpec]:
        return [given[name].spec for name in sorted(names)]

    present = given.keys() & known.keys()
    return Added(specs(given.keys() - known.keys()), specs(other & taken), specs(present - other), specs(other - taken))


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Keep other processes from adding to the ledger, and remove what one that was killed had half-written."""
    lock = root / LEASE
    handle = acquire(lock)
    if handle is None:
        raise StoreError(f"another process is adding runs to {root}: wait for it, then repeat the command")
    try:
        for leftover in (*root.glob(f".*{ENDING}.*.tmp"), *root.glob(f".{SAMPLES}.*.tmp")):
            leftover.unlink(missing_ok=True)
        yield
    finally:
        release(lock, handle)


def _put_pictures(
    root: Path, pictures: Mapping[str, npt.NDArray[np.uint8]], new: Collection[str], of: Collection[str]
) -> None:
    """Store the images of some runs; those that were stored for a result which is now replaced are removed."""
    stored = read_arrays(root / SAMPLES)
    wanted = {name: array for name, array in stored.items() if _run_of(name) not in new}
    wanted |= {name: array for name, array in pictures.items() if _run_of(name) in of}
    if wanted.keys() != stored.keys() or any(not np.array_equal(array, stored[name]) for name, array in wanted.items()):
        write_arrays(root / SAMPLES, wanted)


def _run_of(picture: str) -> str:
    return picture.rpartition("/")[0]


def _check(path: Path) -> None:
    """Refuse a file with an unreadable line."""
    for found in _lines(path).values():
        if isinstance(found, ReliveError):
            raise found


def _line(run: RunResult) -> bytes:
    return json.dumps(signed(run.to_json()), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
