"""Errors whose messages tell the reader what went wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ReliveError(Exception):
    """Base of every error that ``relive`` raises on purpose; the command line shows it and exits with 1."""


class InputError(ReliveError, ValueError):
    """An invalid request: an unknown name, a value out of range. The exit code is 2."""


class DataError(ReliveError):
    """A data set is missing, damaged, or cannot be stored."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; PyTorch has no error class for that on the CPU."""
    words = ("can't allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")
    torch_s = isinstance(error, RuntimeError) and any(said in str(error) for said in words)
    return isinstance(error, MemoryError) or torch_s


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name, with the nearest known one.

    >>> print(unknown("method", "rft", ["none", "rtf"]))
    unknown method 'rft': did you mean 'rtf'? Known: none, rtf
    """
    names = list(known)
    near = nearest(name, names)
    hint = "." if near is None else f": did you mean {near!r}?"
    return InputError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another one, if any is.

    >>> nearest("numbr", ["label", "number"]), nearest("twelve", ["three"])
    ('number', None)
    """
    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[near[0]] if near else None
