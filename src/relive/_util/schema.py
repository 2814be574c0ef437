"""Validation of values from outside: type, range, finiteness. Defined once, for files and for parameters."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

from relive._util.errors import InputError

LARGEST = 2**63 - 1  # largest whole number
WEIGHT = 1e18  # largest number in a network: the product of two is still finite
SIZE = 10**7  # units, samples per step and the like: more than fits into any machine's memory


def whole(value: Any, name: str, low: int = 0, high: int = LARGEST) -> int:
    """Check that a value is a whole number, and return it.

    >>> whole(3, "seed"), whole(True, "seed")
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: seed = True: it must be a whole number of at least 0
    """
    if type(value) is not int or value < low:
        raise wrong(name, value, f"a whole number of at least {low}")
    if value > high:
        raise wrong(name, value, f"a whole number of at most {high}")
    return value


def number(value: Any, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number.

    >>> number(float("nan"), "accuracy", 0, 1)
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: accuracy = nan: it must be a finite number from 0 to 1
    """
    try:
        fine = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
    except OverflowError:  # of a whole number with hundreds of digits
        fine = False
    if not fine:
        ends = [f"from {low:g}"] * (low > -math.inf) + [f"to {high:g}"] * (high < math.inf)
        raise wrong(name, value, " ".join(["a finite number", *ends]))
    return float(value)


def text(value: Any, name: str) -> str:
    """Check that a value is text, without undecodable bytes of a file name, and return it."""
    if type(value) is not str or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise wrong(name, value, "a text")
    return value


def items(value: Any, name: str) -> list[Any]:
    """Check that a value is a list, and return it."""
    if type(value) is not list and type(value) is not tuple:
        raise wrong(name, value, "a list")
    return list(value)


def record(value: Any, name: str) -> dict[str, Any]:
    """Check that values are given by name, and return them."""
    if not isinstance(value, Mapping):
        raise wrong(name, value, "values by name")
    return {text(key, f"a name in {name}"): item for key, item in value.items()}


def texts(value: Any, name: str) -> dict[str, str]:
    """Return texts by name."""
    return {key: text(item, f"{name} {key}") for key, item in record(value, name).items()}


def shares(value: Any, name: str, n: int | None = None) -> list[float]:
    """Return a list of numbers from 0 to 1, with n of them if given."""
    found = items(value, name)
    if not all(type(share) in (float, int) and 0 <= share <= 1 for share in found):
        raise wrong(name, value, "numbers from 0 to 1")
    if n is not None and len(found) != n:
        raise InputError(f"{name} has {len(found)} numbers, but must have {n}")
    return found


def wrong(name: str, value: Any, must_be: str) -> InputError:
    """Return the error for an invalid value."""
    return InputError(f"{name} = {_short(value)}: it must be {must_be}")


def _short(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # a whole number with thousands of digits
        return f"a {type(value).__name__} that is too long to show"
