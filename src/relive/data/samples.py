"""Samples of one's own, wherever they were read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.errors import InputError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """What a file or a folder holds.

    Attributes
    ----------
    x
        (n, features) float64, float32 or uint8.
    y
        (n,) labels, or None if there are none.
    names
        Of the features, for a table.
    files
        Where each sample was read from, for a folder of pictures.
    image
        Height, width and, in colour, 3: what the features are when they are a picture's pixels.
    tasks
        The task of each sample, if a column has it.
    """

    x: Array
    y: Array | None
    names: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    image: tuple[int, ...] | None = None
    tasks: tuple[Any, ...] | None = None


def numbers(values: Array, what: str) -> Array:
    """Return features as float64, float32 or uint8, whichever is nearest to what they are."""
    if values.dtype in (np.uint8, np.float32, np.float64):
        return values
    if values.dtype.kind not in "biuf":
        raise InputError(f"{what} has type {values.dtype}: features must be numbers")
    return values.astype(np.float64)


def labels(values: Array, what: str) -> Array:
    """Return labels as an array of numbers, booleans or strings."""
    if values.dtype.kind == "O":
        values = np.array(values.tolist())
    if values.dtype.kind not in "biufU":
        raise InputError(f"{what} has type {values.dtype}: labels must be numbers or strings")
    return values
