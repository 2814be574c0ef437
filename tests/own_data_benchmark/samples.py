"""Samples that the tests of the benchmark share."""

from __future__ import annotations

import numpy as np
from benchmarks.own_data.samples import Array


def blobs(n: int = 40, features: int = 20, classes: int = 3) -> tuple[Array, Array]:
    """Return classes that overlap, of unequal sizes and shapes."""
    random = np.random.default_rng(0)
    sizes = [n + 7 * c for c in range(classes)]
    parts = [random.normal(c * 0.4, 1 + 0.3 * c, (size, features)) for c, size in enumerate(sizes)]
    X = np.concatenate(parts) @ random.normal(size=(features, features)) / 4
    return X, np.repeat(np.arange(classes), sizes)
