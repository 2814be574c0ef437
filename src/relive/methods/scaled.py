r"""What closed forms solve with: features centred and scaled to variance 1, computed from sums.

With fewer samples than features, everything seen lies in a space of fewer dimensions. An orthonormal basis Q of
it is found by multiplying the covariance T by random vectors, and the problem is solved in that basis, exactly
up to rounding:

.. math:: (T + \lambda I)^{-1} m = Q\,(Q^\top T Q + \lambda I)^{-1} Q^\top m, \qquad
    \log\det(I + T / \lambda) = \log\det(I + Q^\top T Q / \lambda)

for every m within the space. Halko, Martinsson & Tropp (2011), "Finding structure with randomness", SIAM Review 53.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.methods.catalogue import STILL
from relive.methods.sums import Sums

FEWER = 3  # a basis pays off if there are at least this many times as many features as samples
SPARE = 10  # random vectors beyond the largest possible number of dimensions
LOST = 1e-10  # the share of variance that a basis may miss: rounding


@dataclass(frozen=True)
class Axes:
    """How features are centred, scaled and, with few samples, projected to fewer dimensions.

    Attributes
    ----------
    middle, scale
        (features,) the mean of all samples, and the divisors of features.
    basis
        (features, r) the basis of the dimensions; None if they are the features.
    """

    middle: Tensor
    scale: Tensor
    basis: Tensor | None

    def parts(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (n, features) in r dimensions, (n, r), and the squared norm of the rest, (n,)."""
        rows = (h - self.middle) / self.scale
        if self.basis is None:
            return rows, torch.zeros_like(rows[:, 0])
        inside = rows @ self.basis
        return inside, (rows - inside @ self.basis.T).square().sum(1)

    def unscaled(self, weight: Tensor) -> Tensor:
        """Return the weights for unscaled features, (classes, features), given those in r dimensions."""
        weight = weight if self.basis is None else weight @ self.basis.T
        return weight / self.scale


@dataclass(frozen=True)
class Scaled:
    """Features to solve with, in r dimensions: as many as there are features, or fewer.

    Attributes
    ----------
    covariance
        (r, r) of all samples.
    means
        (classes, r) of each class.
    share
        (classes,) of all samples.
    n, n_features
        How many samples and features there are.
    axes
        What the dimensions are.
    """

    covariance: Tensor
    means: Tensor
    share: Tensor
    n: float
    n_features: int
    axes: Axes

    @classmethod
    def of(cls, sums: Sums) -> Scaled:
        """Return them for classes that all have samples."""
        scale, n = _scales(sums), float(sums.n)
        found = _few(sums, scale, int(n) + SPARE) if FEWER * n <= len(scale) else None
        basis, covariance = found or (None, sums.covariance.div_(torch.outer(scale, scale)))
        axes = Axes(sums.mean, scale, basis)
        return cls(covariance, axes.parts(sums.means)[0], sums.count / sums.n, n, len(scale), axes)

    @property
    def within(self) -> Tensor:
        """The covariance within classes, (r, r)."""
        return self.covariance - (self.means.T * self.share) @ self.means


def _scales(sums: Sums) -> Tensor:
    """Return the standard deviation of every feature, (features,)."""
    deviation = sums.variance.clamp_min(0).sqrt()
    return deviation.clamp_min(STILL * deviation.max()).clamp_min(torch.finfo(torch.float32).tiny)


def _few(sums: Sums, scale: Tensor, dimensions: int) -> tuple[Tensor, Tensor] | None:
    """Return an orthonormal basis (features, dimensions) of what varies, and the covariance of scaled features in it.

    None if it does not fit, as after forgetting a class whose part of the covariance is not known
    (:meth:`ClosedForm.drop`). The full covariance is never computed, only its products with few vectors.
    """
    assert sums.products is not None
    products, mean = sums.products, sums.mean / scale

    def spread(vectors: Tensor) -> Tensor:
        """Return the covariance of scaled features, times vectors (features, dimensions)."""
        return (products @ (vectors / scale[:, None])) / (scale[:, None] * sums.n) - torch.outer(mean, mean @ vectors)

    vectors = torch.randn(len(scale), dimensions, generator=stream(0, "basis"), dtype=scale.dtype)
    basis: Tensor = torch.linalg.qr(spread(vectors.to(scale.device))).Q
    held = basis.T @ spread(basis)
    total = (sums.variance / scale**2).sum()
    return (basis, held) if total - held.trace() <= LOST * total else None
