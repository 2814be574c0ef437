"""The digits are scikit-learn's, although they are read without it."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from relive.data.datasets import digits


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_they_are_scikit_learn_s(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "elsewhere":  # in case a later version stores them elsewhere
        elsewhere = ModuleSpec("sklearn", None, origin=str(tmp_path / "__init__.py"))
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: elsewhere)
    data, bunch = digits.load(), load_digits()
    test = np.arange(len(bunch.target)) % 5 == 4
    np.testing.assert_array_equal(data.train_inputs, bunch.images[~test])
    np.testing.assert_array_equal(data.train_labels, bunch.target[~test])
    np.testing.assert_array_equal(data.test_inputs, bunch.images[test])
    np.testing.assert_array_equal(data.test_labels, bunch.target[test])
    assert data.train_inputs.dtype == data.train_labels.dtype == np.uint8
