"""A ledger: many finished runs in a few files, where a runs directory has a folder for each.

``<protocol>.jsonl`` has one line per run, sorted by name: the contents of its ``result.json``, with the same digest.
``samples.npz`` has the images made by generators, by run and task. A store reads a ledger like a runs directory.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from relive._util.errors import ReliveError
from relive._util.files import write_atomic
from relive._util.registry import short_name
from relive.experiments.arrays import read_arrays, write_arrays
from relive.experiments.resultfile import DamagedResult, StoreError, result_of, signed, to_bytes
from relive.experiments.spec import RunResult, RunSpec

ENDING, SAMPLES = ".jsonl", "samples.npz"


def results(root: Path) -> Mapping[str, RunResult | ReliveError]:
    """Return each run of a ledger by its name; damaged ones as errors."""
    found: dict[str, RunResult | ReliveError] = {}
    for path in sorted(root.glob(f"*{ENDING}")):
        about = path.stat()
        found |= _read(path, about.st_mtime_ns, about.st_size)
    return found


@functools.lru_cache(maxsize=32)
def _read(path: Path, changed: int, size: int) -> Mapping[str, RunResult | ReliveError]:
    """Read one file; ``changed`` and ``size`` tell whether it is the one that was read before."""
    return _lines(path)


def _lines(path: Path) -> dict[str, RunResult | ReliveError]:
    found: dict[str, RunResult | ReliveError] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        where = f"{path}, line {number},"
        try:
            result = result_of(_verified(line, where), where)
            found[result.spec.name] = result
        except (DamagedResult, StoreError) as error:
            found[where] = error
    return found


def _verified(line: bytes, where: str) -> dict[str, Any]:
    """Return the values of a line after checking its digest."""
    try:
        values: dict[str, Any] = orjson.loads(line)
        stored = values.pop("sha256")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedResult(f"{where} is damaged: {error}") from error
    if stored != hashlib.sha256(to_bytes(values)).hexdigest():
        raise DamagedResult(f"{where} is damaged: its digest does not match")
    return values


def samples(root: Path, spec: RunSpec) -> list[npt.NDArray[np.uint8]]:
    """Return the images of a run, one array per task; empty if the ledger has none."""
    names = [f"{spec.name}/task{k}" for k in range(spec.tasks)]
    found = read_arrays(root / SAMPLES, names)
    return [found[name] for name in names if name in found]


def add(
    root: Path,
    runs: Iterable[RunResult],
    pictures: Mapping[str, npt.NDArray[np.uint8]] | None = None,
    *,
    replace: bool = False,
) -> list[RunSpec]:
    """Add runs to a ledger, and return which were added.

    Parameters
    ----------
    root
        The ledger's directory, created if it does not exist.
    runs
        Finished runs.
    pictures
        Images made by their generators, by ``<run's name>/task<k>``.
    replace
        Whether a run in the ledger is replaced by another result of the same spec.
    """
    known = results(root)
    damaged = [error for error in known.values() if not isinstance(error, RunResult)]
    if damaged:
        raise DamagedResult("\n".join(map(str, damaged)) + "\nnothing was added")
    new = [run for run in runs if run.spec.name not in known or (replace and known[run.spec.name] != run)]
    root.mkdir(parents=True, exist_ok=True)
    for protocol in sorted({short_name(run.spec.protocol) for run in new}):
        path = root / (protocol + ENDING)
        kept = {name: run for name, run in known.items() if isinstance(run, RunResult)}
        kept |= {run.spec.name: run for run in new}
        mine = [run for _, run in sorted(kept.items()) if short_name(run.spec.protocol) == protocol]
        write_atomic(path, b"".join(map(_line, mine)), check=_check)
    if pictures:
        write_arrays(root / SAMPLES, read_arrays(root / SAMPLES) | dict(pictures))
    return [run.spec for run in new]


def _check(path: Path) -> None:
    """Refuse a file with an unreadable line."""
    for found in _lines(path).values():
        if isinstance(found, ReliveError):
            raise found


def _line(run: RunResult) -> bytes:
    return json.dumps(signed(run.to_json()), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
