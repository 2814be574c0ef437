r"""Ridge regression on fixed random features, from sums.

Scores come from a regression of one-hot targets on the features, :math:`s = W_\lambda^\top h`
(:mod:`relive.methods.ridge`, which also chooses λ). With Gaussian residuals of variance σ², which the sums give too,

.. math:: \log p(c|h) = s_c / \sigma^2 + \text{const}

The features are random convolutions of images, or the inputs and random ReLU features of them
(:mod:`relive.networks.random_features`), as many as the limit on stored numbers allows.

Prabhu et al. (2024), "RanDumb: random representations outperform online continually learned representations", NeurIPS;
McDonnell et al. (2023), "RanPAC: random projections and pre-trained models for continual learning", NeurIPS.
Deviations: no pre-trained network; λ from the sums instead of a held-out part of each task.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from relive.methods.catalogue import METHODS
from relive.methods.closed_form import ClosedForm
from relive.methods.ridge import FLOOR, best_fit, fit, targets_variance
from relive.methods.scaled import Scaled
from relive.networks import Sizes
from relive.networks.encoders import encoder_size

CLASSES = 16  # output units that the limit allows for; more are accepted, and counted


class Analytic(ClosedForm):
    """Random features and ridge regression."""

    facts: ClassVar = METHODS["analytic"]

    def __init__(self, ridge: float = 0.0, numbers: float = 2e6) -> None:
        self.ridge = ridge
        self.numbers = numbers

    def width(self, sizes: Sizes, forgettable: bool = False) -> int:
        return width_within(self.numbers, sizes, forgettable=forgettable)

    def readout(self) -> tuple[Tensor, Tensor]:
        return ridge_readout(self.scaled(), self.ridge)


def ridge_readout(features: Scaled, ridge: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return weights (classes, features) and biases (classes,) for a given strength, or the best one."""
    best = fit(features, ridge) if ridge else best_fit(features)[1]
    sigma2 = (best.residual + FLOOR) * max(targets_variance(features), 1e-12) / len(features.share)
    weight = features.axes.unscaled(best.weight.T) / sigma2  # (classes, features)
    return weight, features.share / sigma2 - weight @ features.axes.middle


def width_within(numbers: float, sizes: Sizes, per_class: int = 0, forgettable: bool = False) -> int:
    """Return the largest number of features that keeps within the limit on stored numbers.

    With d features there are d (d + 1) / 2 products (per class, if forgettable), a sum and a weight
    per class, and what the encoder stores; plus ``per_class`` numbers for each class.
    """

    def too_many(width: int) -> bool:
        size = encoder_size(replace(sizes, hidden=width))
        d = size.features
        products = (CLASSES if forgettable else 1) * d * (d + 1) // 2
        return bool(products + CLASSES * (2 * (d + 1) + per_class) + size.numbers > numbers)

    return max(1, bisect_left(range(1, math.isqrt(int(2 * numbers))), True, key=too_many))
