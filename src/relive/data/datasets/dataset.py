"""A data set: inputs and their classes, for training and for testing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs of any shape and their classes, for training and for testing.

    Parameters
    ----------
    name : str
        The data set's name, or the file, folder or loader that it comes from.
    train_inputs, test_inputs : numpy.ndarray
        Shape (n, height, width) for grey images, (n, height, width, 3) for colour, (n, features) for anything else.
        Bytes, or floats. Those outside [0, 1] are standardised with the first task when tasks are made.
    train_labels, test_labels : numpy.ndarray
        The class of each input, 0 to K - 1.
    top : int
        The highest value of a byte, which becomes 1.
    classes : tuple of str
        The names of the classes; their numbers if it is empty.
    """

    name: str
    train_inputs: NDArray[Any]
    train_labels: NDArray[Any]
    test_inputs: NDArray[Any]
    test_labels: NDArray[Any]
    top: int = 255
    classes: tuple[str, ...] = ()
    _digest: str | None = field(default=None, init=False, repr=False)  # not init: who replaces arrays loses it

    @property
    def digest(self) -> str:
        """A short digest of its source, or else of its contents; none for data sets in the catalogue."""
        return self.sha256[:12] if self._digest is None else self._digest

    def with_digest(self, digest: str) -> Dataset:
        """Return the same data set, identified by this digest of its source."""
        known = replace(self)
        object.__setattr__(known, "_digest", digest)
        return known

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.train_labels.max()) + 1

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.classes or tuple(map(str, range(self.n_classes)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.train_inputs.shape[1:]

    @property
    def is_pictures(self) -> bool:
        """Whether an input is an image, grey or in colour."""
        return len(self.shape) == 2 or (len(self.shape) == 3 and self.shape[2] == 3)

    @cached_property
    def likelihood(self) -> str:
        """How a generator models inputs: ``"bernoulli"`` for bytes and numbers in [0, 1], else ``"gaussian"``."""
        x = self.train_inputs
        return "bernoulli" if x.dtype == np.uint8 or (x.min() >= 0 and x.max() <= 1) else "gaussian"

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of everything but its name."""
        digest = hashlib.sha256(repr((self.top, self.class_names)).encode())
        for array in (self.train_inputs, self.train_labels, self.test_inputs, self.test_labels):
            digest.update(f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()
