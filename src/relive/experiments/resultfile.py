"""A result as JSON with its own digest, so that any damage shows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import orjson

from relive._util.errors import ReliveError
from relive.experiments.spec import RunResult

_SIGNATURE = b',\n "sha256": "'  # starts the last line of a signed file


class StoreError(ReliveError):
    """The runs directory cannot be used."""


class DamagedResult(ReliveError):  # noqa: N818
    """A result is not what was written; it is never read as a number."""


def to_bytes(values: dict[str, Any]) -> bytes:
    """Return JSON as stored in the files, with one top-level key per line."""
    rows = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


def signed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with a digest of their serialised bytes, so that any damage shows."""
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
    body, signature, ending = raw.rpartition(_SIGNATURE)
    digest = hashlib.sha256(body + b"\n}\n").hexdigest()
    if not signature or ending != f'{digest}"\n}}\n'.encode():
        raise DamagedResult(f"{path} is damaged: its digest does not match ({len(raw)} bytes)")
    try:
        values: dict[str, Any] = orjson.loads(raw)  # the standard library takes five times as long
        del values["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # Infinity and the like: JSON has no such number
        raise DamagedResult(f"{path} is not a valid result: {error}") from error
    return values


def read_result(path: Path) -> RunResult:
    """Read one ``result.json``."""
    return result_of(read_signed(path), path)


_FILE = "move it away to repeat the run, or choose another --runs-dir"


def result_of(values: dict[str, Any], where: object, remedy: str = _FILE) -> RunResult:
    """Return the result that was stored as these values; if it is none, the error says where, and the remedy."""
    try:
        return RunResult.from_json(values)
    except (ReliveError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{where} is intact, but from another version of relive ({error}); it is left alone: {remedy}"
        ) from error
