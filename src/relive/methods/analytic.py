r"""Ridge regression on fixed random features, from sums.

Scores are a regression of one-hot targets on the features, :math:`s = W_\lambda^\top h` (:mod:`relive.methods.ridge`,
which also chooses λ). With normally distributed residuals of variance σ², which follows from the sums too,

.. math:: \log p(c|h) = s_c / \sigma^2 + \text{const}

The features are random convolutions of pictures, or the inputs and random ReLU features of them
(:mod:`relive.networks.random_features`), as many as the given number of numbers allows.

Prabhu et al. (2024), "RanDumb: random representations outperform online continually learned representations", NeurIPS;
McDonnell et al. (2023), "RanPAC: random projections and pre-trained models for continual learning", NeurIPS.
Departures: no pre-trained network; λ by evidence instead of a held-out part of each task.
"""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor

from relive.methods.catalogue import METHODS
from relive.methods.closed_form import ClosedForm, Sums
from relive.methods.ridge import FLOOR, best_fit, fit, regression, scales
from relive.networks import Sizes

CLASSES = 16  # output units for which there is room among the numbers; more are taken, and counted
PER_FEATURE = 50  # weights of random convolutions


class Analytic(ClosedForm):
    """Random features and ridge regression."""

    facts: ClassVar = METHODS["analytic"]

    def __init__(self, ridge: float = 0.0, numbers: float = 2e6) -> None:
        self.ridge = ridge
        self.numbers = numbers

    def width(self, sizes: Sizes) -> int:
        """Solve d (d + 1) / 2 + (weights + 2 · classes) d = numbers for the number of features d.

        A feature has as many random weights as there are inputs, or as a convolution has per field. Every class has a
        sum and a weight per feature.
        """
        weights = PER_FEATURE if len(sizes.shape) > 1 else sizes.inputs
        b = 1.5 + weights + 2 * CLASSES
        return max(16, int(math.sqrt(b * b + 2 * self.numbers) - b))

    def readout(self, sums: Sums) -> tuple[Tensor, Tensor]:
        given = regression(sums)
        best = fit(*given, self.ridge) if self.ridge else best_fit(sums)[1]
        share = sums.count / sums.n
        sigma2 = (best.residual + FLOOR) * max(given[2], 1e-12) / len(share)
        weight = (best.weight.T / scales(sums)) / sigma2  # (classes, features)
        return weight, share / sigma2 - weight @ sums.mean
