"""Frozen dataclasses as stable JSON: a field added later is written only if it is not at its default.

So records stored before the field existed still read the same, and keep their digest and name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from relive._util.errors import InputError, unknown

LATER = {"later": True}  # metadata of a field that was added after results had been stored


def to_json(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without those added later that are at their default."""
    values = {f.name: (f, getattr(record, f.name)) for f in fields(record)}
    return {name: value for name, (f, value) in values.items() if not f.metadata.get("later") or value != default(f)}


def from_json(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored values as arguments for the dataclass; unknown and missing keys are errors."""
    known = {f.name: f for f in fields(cls)}
    for name in values:
        if name not in known:
            raise unknown(f"key of {cls.__name__}", name, known)
    missing = [name for name, f in known.items() if name not in values and not f.metadata.get("later")]
    if missing:
        raise InputError(f"{cls.__name__} lacks {', '.join(missing)}")
    return dict(values)


def default(field: Field[Any]) -> Any:
    """Return a field's default."""
    return field.default if field.default_factory is MISSING else field.default_factory()
