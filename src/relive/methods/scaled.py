r"""What closed forms solve with: features that are centred and scaled to variance 1, as sums tell them.

Where samples are fewer than features, all that was seen lies in a space of fewer dimensions. An orthonormal basis Q of
it is found by multiplying the covariance T by random vectors, and what is solved for is written in that basis, exactly
but for rounding:

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

FEWER = 3  # a basis pays where features are at least so many times the samples
SPARE = 10  # random vectors more than there can be dimensions
LOST = 1e-10  # the share of variance that a basis may leave out: rounding


@dataclass(frozen=True)
class Scaled:
    """Features as they are solved with, in r dimensions: as many as there are features, or fewer.

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
    middle, scale
        (features,) the mean of all samples, and what features were divided by.
    basis
        (features, r) what the dimensions are made of; None if they are the features.
    """

    covariance: Tensor
    means: Tensor
    share: Tensor
    n: float
    n_features: int
    middle: Tensor
    scale: Tensor
    basis: Tensor | None

    @classmethod
    def of(cls, sums: Sums) -> Scaled:
        """Return them for classes that all have samples."""
        scale, covariance = scales(sums), sums.covariance
        covariance = covariance / torch.outer(scale, scale)
        means = (sums.means - sums.mean) / scale
        n, d = float(sums.n), len(scale)
        basis = None
        if FEWER * n <= d:
            covariance = covariance.triu() + covariance.triu(1).T  # both halves, which a file has once, are used below
            basis = _basis(covariance, int(n) + SPARE)
        if basis is not None:
            means, covariance = means @ basis, basis.T @ (covariance @ basis)
        return cls(covariance, means, sums.count / sums.n, n, d, sums.mean, scale, basis)

    def unscaled(self, weight: Tensor) -> Tensor:
        """Return the weights of features as they come, (classes, features), given those in r dimensions."""
        weight = weight if self.basis is None else weight @ self.basis.T
        return weight / self.scale


def scales(sums: Sums) -> Tensor:
    """Return the standard deviation of every feature, (features,)."""
    deviation = sums.variance.clamp_min(0).sqrt()
    return deviation.clamp_min(STILL * deviation.max()).clamp_min(torch.finfo(torch.float32).tiny)


def _basis(covariance: Tensor, dimensions: int) -> Tensor | None:
    """Return an orthonormal basis (features, dimensions) of what varies, or None if there is more than it can hold.

    There is where a class was taken away whose part of the covariance is not known (:meth:`ClosedForm.drop`).
    """
    vectors = torch.randn(len(covariance), dimensions, generator=stream(0, "basis"), dtype=covariance.dtype)
    basis: Tensor = torch.linalg.qr(covariance @ vectors.to(covariance.device)).Q
    held = (basis * (covariance @ basis)).sum()
    return basis if covariance.trace() - held <= LOST * covariance.trace() else None
