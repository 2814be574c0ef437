"""Frozen dataclasses as JSON that lasts: a field that came later is written only when it is not at its default.

So what was stored before the field existed reads as before, and keeps its digest and its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from relive._util.errors import InputError, unknown

LATER = {"later": True}  # metadata of a field that came after results had been stored


def to_json(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without those that came later and are at their default."""
    values = {f.name: (f, getattr(record, f.name)) for f in fields(record)}
    return {name: value for name, (f, value) in values.items() if not f.metadata.get("later") or value != default(f)}


def from_json(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was stored as arguments for the dataclass; unknown and missing keys are errors."""
    known = {f.name: f for f in fields(cls)}
    for name in values:
        if name not in known:
            raise unknown(f"key of {cls.__name__}", name, known)
    missing = [name for name, f in known.items() if name not in values and not f.metadata.get("later")]
    if missing:
        raise InputError(f"{cls.__name__} lacks {', '.join(missing)}")
    return dict(values)


def default(field: Field[Any]) -> Any:
    """Return what a field is if nothing is said about it."""
    return field.default if field.default_factory is MISSING else field.default_factory()
