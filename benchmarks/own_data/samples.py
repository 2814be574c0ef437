"""A data set of the benchmark: samples, labels, the shape of a picture, and a test set if it comes with one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """A data set.

    Attributes
    ----------
    X, y
        (n, features) float32, float64 or uint8, and (n,) int64 from 0.
    test
        The same for the test set that comes with the data set; None if one is to be held out.
    shape
        Of a picture, if the features are its pixels.
    group
        (n,) int64: which samples belong together, such as paragraphs of one page; None if that is not known.
    source
        A digest of what the features were computed from, where their last bits depend on the processor.
    """

    X: Array
    y: Array
    test: tuple[Array, Array] | None = None
    shape: tuple[int, ...] | None = None
    group: Array | None = None
    source: str = ""

    @cached_property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of a SHA-256: of ``source``, or of all samples and labels."""
        return self.source or digest_of(self.X, self.y, *(self.test or ()))

    def save(self, path: Path) -> None:
        """Write an NPZ file, whole or not at all."""
        arrays: dict[str, Array] = {"X": self.X, "y": self.y, "source": np.array(self.source)}
        if self.test is not None:
            arrays |= {"X_test": self.test[0], "y_test": self.test[1]}
        if self.shape is not None:
            arrays["shape"] = np.array(self.shape)
        if self.group is not None:
            arrays["group"] = self.group
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **arrays)  # type: ignore[arg-type]
        part.rename(path)


def load(path: Path) -> Samples:
    """Read what :meth:`Samples.save` wrote."""
    with np.load(path) as file:
        test = (file["X_test"], file["y_test"]) if "X_test" in file else None
        shape = tuple(int(n) for n in file["shape"]) if "shape" in file else None
        return Samples(file["X"], file["y"], test, shape, file.get("group"), str(file["source"]))


def digest_of(*arrays: Array) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of some arrays.

    >>> digest_of(np.zeros((2, 3)), np.array([0, 1])) == digest_of(np.zeros((2, 3)), np.array([1, 0]))
    False
    """
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def checked(path: Path, sha256: str, how_to_get: str) -> Path:
    """Return a file's path if it exists and is the version that was measured with."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: {how_to_get}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{path} has SHA-256 {found}, not {sha256}: it is not the version measured here ({how_to_get})"
        )
    return path
