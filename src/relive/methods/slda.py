r"""Streaming linear discriminant analysis: a Gaussian per class, all with one covariance.

.. math:: \log p(c|h) = w_c \cdot h - \tfrac12 w_c \cdot \mu_c + \log\tfrac{n_c}{n} + \text{const}, \qquad
    w_c = \Sigma_\epsilon^{-1} \mu_c, \qquad \Sigma_\epsilon = (1 - \epsilon)\,\Sigma + \epsilon\,\mathrm{diag}\,\Sigma

with Σ the covariance within classes. Hayes & Kanan (2020), "Lifelong machine learning with deep streaming linear
discriminant analysis", CVPR workshops. Deviations: they shrink towards the identity with ε = 1e-4; here the target is
the diagonal, so the scale of a feature does not matter, and ε is chosen from the sums: that of the best-fitting ridge
regression (:mod:`relive.methods.analytic`). They leave out the prior log(n_c / n). The features are the inputs
themselves unless an encoder is chosen; they used those of a frozen convolutional network.

With ``noise`` = σ, single samples are hidden (:mod:`relive.methods.noise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.sources import Part
from relive.methods.catalogue import METHODS
from relive.methods.closed_form import ClosedForm
from relive.methods.noise import add_noise, clipped, largest_noise, repaired
from relive.methods.ridge import chosen_ridge
from relive.methods.scaled import Scaled
from relive.networks import Classifier


class SLDA(ClosedForm):
    """One mean per class, one covariance."""

    facts: ClassVar = METHODS["slda"]

    def __init__(self, shrinkage: float = 0.0, noise: float = 0.0) -> None:
        self.shrinkage = shrinkage
        self.noise = noise
        self.hides_samples = noise > 0

    def count(self, h: Tensor, cell: Tensor, times: int = 1) -> None:
        super().count(clipped(h) if self.noise else h, cell, times)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        super().after_task(net, learned, seen)
        if self.noise:
            cells = torch.unique(torch.cat([self.cells(part.task)[part.examples.labels] for part in learned]))
            add_noise(self.sums, self.by_class_, cells, self.noise)

    def novelty(self, net: Classifier, x: Tensor) -> Tensor | None:
        return None if self.noise else super().novelty(net, x)

    def readout(self) -> tuple[Tensor, Tensor]:
        features = Scaled.of(repaired(self.counted())) if self.noise else self.scaled()
        # (Σ + λ I)⁻¹ is (1 − ε) times the inverse of the shrunken covariance, λ = ε / (1 − ε)
        ridge = self.shrinkage / (1 - self.shrinkage) if self.shrinkage else chosen_ridge(features, self.roughly_)
        return linear_discriminant(features, max(ridge, self._noise_floor(features)))

    def _noise_floor(self, features: Scaled) -> float:
        """Return the ridge required by noise alone: directions with less signal than noise count for little."""
        tasks = len(self.problem.scenario.classes)
        return (
            largest_noise(self.noise, features.n_features, tasks)
            / features.n
            * float((1 / features.axes.scale**2).mean())
        )


def linear_discriminant(features: Scaled, ridge: float) -> tuple[Tensor, Tensor]:
    """Return weights (classes, features) and biases (classes,), given the ridge on the scaled variances."""
    means, share = features.means, features.share
    within = features.within
    within.diagonal().add_(ridge)
    weight = torch.cholesky_solve(means.T, torch.linalg.cholesky(within)).T
    bias = -0.5 * (weight * means).sum(1) + share.log()
    weight = features.axes.unscaled(weight)
    return weight, bias - weight @ features.axes.middle
