r"""Streaming linear discriminant analysis: a Gaussian per class, all with one covariance.

.. math:: \log p(c|h) = w_c \cdot h - \tfrac12 w_c \cdot \mu_c + \log\tfrac{n_c}{n} + \text{const}, \qquad
    w_c = \Sigma_\epsilon^{-1} \mu_c, \qquad \Sigma_\epsilon = (1 - \epsilon)\,\Sigma + \epsilon\,\mathrm{diag}\,\Sigma

with Σ the covariance within classes. Hayes & Kanan (2020), "Lifelong machine learning with deep streaming linear
discriminant analysis", CVPR workshops. Departures: they shrink towards the identity with ε = 1e-4, here the target is
the diagonal, so that the scale of a feature makes no difference, and ε is chosen from the sums: that of the ridge
regression that fits best (:mod:`relive.methods.analytic`). The features are the inputs themselves unless an
encoder is chosen; they used those of a frozen convolutional network.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from relive.methods.catalogue import METHODS
from relive.methods.closed_form import ClosedForm
from relive.methods.ridge import chosen_ridge, scales
from relive.methods.sums import Sums


class SLDA(ClosedForm):
    """One mean per class, one covariance."""

    facts: ClassVar = METHODS["slda"]

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def readout(self, sums: Sums) -> tuple[Tensor, Tensor]:
        # (Σ + λ I)⁻¹ is (1 − ε) times the inverse of the shrunken covariance, λ = ε / (1 − ε)
        return linear_discriminant(
            sums, self.shrinkage / (1 - self.shrinkage) if self.shrinkage else chosen_ridge(sums)
        )


def linear_discriminant(sums: Sums, ridge: float) -> tuple[Tensor, Tensor]:
    """Return weights (classes, features) and biases (classes,), given what is added to the scaled variances."""
    scale, centred = scales(sums), sums.means - sums.mean  # (features,), (classes, features)
    between = (centred.T * sums.count / sums.n) @ centred
    within = (sums.covariance - between) / torch.outer(scale, scale)
    within.diagonal().add_(ridge)
    means = centred / scale
    weight = torch.cholesky_solve(means.T, torch.linalg.cholesky(within)).T
    bias = -0.5 * (weight * means).sum(1) + (sums.count / sums.n).log()
    weight = weight / scale
    return weight, bias - weight @ sums.mean
