"""The small digits that come with scikit-learn."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relive.data.datasets.dataset import Dataset


def load() -> Dataset:
    """Return scikit-learn's digits, with every fifth held out for testing.

    >>> load().train_inputs.shape, load().test_inputs.shape, load().top
    ((1438, 8, 8), (359, 8, 8), 16)
    """
    table = _table().astype(np.uint8)  # (1797, 65): 64 pixels, and the digit
    images, labels = table[:, :-1].reshape(-1, 8, 8), table[:, -1]
    test = np.arange(len(labels)) % 5 == 4
    return Dataset("digits", images[~test], labels[~test], images[test], labels[test], top=16)


def _table() -> NDArray[Any]:
    """Return the digits from their file: importing ``sklearn.datasets`` takes longer than a short run."""
    found = importlib.util.find_spec("sklearn")
    assert found is not None
    path = Path(found.origin or "").parent / "datasets" / "data" / "digits.csv.gz"
    if path.exists():
        return np.loadtxt(path, delimiter=",")
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return np.column_stack([bunch.data, bunch.target])
