r"""How unlike everything learned an input is, from sums: distances to the nearest class.

With :math:`\Sigma_w` the covariance within classes and :math:`\Sigma_t` that of all samples, both scaled to variance 1
and with a ridge added,

.. math:: d(h) = \min_c (h - m_c)^\top \Sigma_w^{-1} (h - m_c), \qquad
    r(h) = d(h) - (h - m)^\top \Sigma_t^{-1} (h - m)

The first is large where features are unlike those of every class, the second where they are more unlike every class
than unlike samples in general. Lee et al. (2018), "A simple unified framework for detecting out-of-distribution
samples", NeurIPS; Ren et al. (2021), "A simple fix to Mahalanobis distance for improving near-OOD detection".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from relive.methods.catalogue import NOVELTY_RIDGE
from relive.methods.scaled import scales
from relive.methods.sums import Sums


@dataclass(frozen=True)
class Metric:
    """A distance to the nearest of some centres.

    Attributes
    ----------
    scale
        (features,) what features are divided by.
    root
        (features, features) the Cholesky factor of the covariance.
    centres
        (centres, features) multiplied by the root's inverse.
    """

    scale: Tensor
    root: Tensor
    centres: Tensor

    @classmethod
    def of(cls, covariance: Tensor, scale: Tensor, centres: Tensor) -> Metric:
        """Return the distance that a covariance gives."""
        eye = torch.eye(len(scale), dtype=scale.dtype, device=scale.device)
        root = torch.linalg.cholesky(covariance / torch.outer(scale, scale) + NOVELTY_RIDGE * eye)
        return cls(scale, root, _whitened(centres / scale, root))

    def __call__(self, h: Tensor) -> Tensor:
        """Return the squared distance of each row to the nearest centre, (n,)."""
        distances: Tensor = torch.cdist(_whitened(h / self.scale, self.root), self.centres).square()
        return distances.amin(1)


def _whitened(rows: Tensor, root: Tensor) -> Tensor:
    white: Tensor = torch.linalg.solve_triangular(root, rows.T, upper=False).T
    return white


@dataclass(frozen=True)
class Novelty:
    """Both distances."""

    near: Metric
    general: Metric

    @classmethod
    def of(cls, sums: Sums) -> Novelty:
        """Return them for classes that all have samples."""
        scale, apart = scales(sums), sums.means - sums.mean
        within = sums.covariance - (apart.T * (sums.count / sums.n)) @ apart
        one = sums.mean.unsqueeze(0)
        return cls(Metric.of(within, scale, sums.means), Metric.of(sums.covariance, scale, one))

    def __call__(self, h: Tensor) -> Tensor:
        """Return how unlike what was learned each row is in two ways, (n, 2); the second is not known of one class."""
        near = self.near(h)
        relative = near - self.general(h) if len(self.near.centres) > 1 else torch.full_like(near, torch.nan)
        return torch.stack([near, relative], 1)
