"""The small digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from relive.data.datasets.dataset import Dataset


def load() -> Dataset:
    """Return scikit-learn's digits, with every fifth to test with.

    >>> load().train_inputs.shape, load().test_inputs.shape, load().top
    ((1438, 8, 8), (359, 8, 8), 16)
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.uint8)
    test = np.arange(len(labels)) % 5 == 4
    return Dataset("digits", images[~test], labels[~test], images[test], labels[test], top=16)
