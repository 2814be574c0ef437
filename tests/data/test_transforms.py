"""Pictures are rotated as SciPy rotates them, whatever their shape, and permuting loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from relive.data.transforms import Permutation, Rotation


@pytest.mark.parametrize("shape", [(7, 7), (8, 8), (6, 11), (5, 8, 3), (1, 4)])
@pytest.mark.parametrize("degrees", [0.0, 17.3, 90.0, 133.0, 180.0])
def test_a_rotation_is_scipy_s(shape: tuple[int, ...], degrees: float) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, *shape), dtype=np.uint8)
    turned = Rotation(degrees, shape)(torch.from_numpy(pictures).flatten(1))
    floats = pictures.astype(np.float32)
    expected = ndimage.rotate(floats, degrees, axes=(1, 2), reshape=False, order=1, mode="grid-constant")
    assert turned.dtype == torch.float32
    np.testing.assert_allclose(turned.numpy().reshape(pictures.shape), expected, atol=1e-3)


def test_a_permutation_is_an_index() -> None:
    x = torch.arange(12, dtype=torch.uint8).reshape(2, 6)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Permutation(order)(x), x[:, order])
