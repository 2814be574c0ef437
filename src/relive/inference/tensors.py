"""The arrays of a model file, each checked when it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util import schema
from relive.classifier.modelheader import require

Array = npt.NDArray[Any]


class Tensors:
    """Arrays by name.

    Parameters
    ----------
    arrays
        By name.
    prefix
        The prefix of all names taken from here.
    """

    def __init__(self, arrays: Mapping[str, Array], prefix: str) -> None:
        self.arrays = arrays
        self.prefix = prefix

    def below(self, prefix: str) -> Tensors:
        """Return those with a longer prefix."""
        return Tensors(self.arrays, self.prefix + prefix)

    def over(self, others: Tensors) -> Tensors:
        """Return these and, under their own names, those of others that are missing here."""
        both = {"/" + name.removeprefix(t.prefix): a for t in (others, self) for name, a in t.mine().items()}
        return Tensors(both, "/")

    def mine(self) -> dict[str, Array]:
        """Return all arrays here, by their full names."""
        return {name: array for name, array in self.arrays.items() if name.startswith(self.prefix)}

    def count(self, ending: str) -> int:
        """Return how many names here have this ending."""
        return sum(name.endswith(ending) for name in self.mine())

    def n_dimensions(self, name: str) -> int:
        """Return how many dimensions an array here has."""
        return self.arrays[self.prefix + name].ndim

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def take(self, name: str, shape: tuple[int | None, ...], dtype: npt.DTypeLike = np.float32) -> Array:
        """Return an array, which must be finite and of this shape and type; None stands for any size.

        Raises
        ------
        ValueError
            If it is missing, or different.
        """
        full = self.prefix + name
        require(full in self.arrays, f"{full} is missing")
        array = self.arrays[full]
        fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        said = tuple("any" if n is None else n for n in shape)
        require(
            fits and array.dtype == dtype,
            f"{full} is {array.shape} of {array.dtype}, but should be {said} of {np.dtype(dtype)}",
        )
        bounded = array.dtype == np.float32 and not name.endswith("bias")  # a bias switches a unit off
        fine = np.isfinite(array) & (np.abs(array) <= (schema.WEIGHT if bounded else np.inf))
        require(bool(fine.all()), f"{full} has numbers that are not finite, or too large")
        return array.copy()  # the file may change while the model is in use
