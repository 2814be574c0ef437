r"""Ridge regression from sums, with its strength chosen from the same sums.

Regressing one-hot targets on centred features, scaled to variance 1, with covariance T and cross-covariance C:

.. math:: W_\lambda = (T + \lambda I)^{-1} C, \qquad
    \lambda = \arg\min\; n \log\Bigl(\frac{\mathrm{tr}(Y) - \mathrm{tr}(C^\top W_\lambda)}{\mathrm{tr}(Y)} + \tau\Bigr)
    + \log\det(I + T / \lambda)

where the minimised quantity is −2 log evidence (the marginal likelihood of Bayesian linear regression; MacKay 1992,
"Bayesian interpolation", Neural Computation 4), with tr(Y) the variance of the targets. All of it follows from sums. τ
is a floor for the noise: labels are discrete, and if classes can be separated without error the evidence alone
would drive λ to 0. With many samples per feature the evidence, which assumes Gaussian residuals, regularises too
strongly. There λ minimises the generalised cross-validation error (Golub, Heath & Wahba 1979,
Technometrics 21), which fails with few samples, and which follows from the same sums:

.. math:: \lambda = \arg\min\; \frac{\mathrm{tr}(Y) - 2\,\mathrm{tr}(C^\top W_\lambda)
    + \mathrm{tr}(W_\lambda^\top T W_\lambda)}{(1 - (1 + \mathrm{tr}\,T (T + \lambda I)^{-1}) / n)^2}

Every fit costs a Cholesky factor of all features. A third of them, drawn at random, has about a third of the variance
in every direction, so three times the best strength for these is an estimate, at a twentieth of the cost. The search
starts there, and copies of a linear discriminant that are only scored (:mod:`relive.classifier.asking`) use it: on
tables they are calibrated as well with it. On images they are not, and there computing features takes longer anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.methods.scaled import Scaled

FLOOR = 0.01  # τ
LOWEST, USUAL, HIGHEST = -6, -2, 2  # powers of ten to search for the strength
MANY = 1.5  # samples per feature from which cross-validation is used
LARGE, DIVISOR = 1500, 3  # features from which the strength is estimated first, from one in so many of them


@dataclass(frozen=True)
class Fit:
    """A ridge regression: weights of scaled features (r, classes), and the criteria for its strength."""

    weight: Tensor
    residual: float  # the share of the targets' variance that remains, penalty included
    misfit: float  # −2 log evidence, up to a constant
    error: float  # of generalised cross-validation, if there are many samples


def fit(features: Scaled, ridge: float) -> Fit:
    """Regress with this strength."""
    T, C, spread = features.covariance, features.means.T * features.share, targets_variance(features) or 1.0
    r, d, n = len(T), features.n_features, features.n
    root = torch.linalg.cholesky(T + ridge * torch.eye(r, dtype=T.dtype, device=T.device))
    weight = torch.cholesky_solve(C, root)
    residual = max(float(1 - (C * weight).sum() / spread), 0.0)
    log_det = float(2 * root.diagonal().log().sum()) - r * math.log(ridge)
    error = math.inf
    if n >= MANY * d:
        training_error = float(spread - 2 * (C * weight).sum() + (weight * (T @ weight)).sum())
        freedom = 1 + r - ridge * float(torch.cholesky_inverse(root).diagonal().sum())
        error = training_error / (1 - freedom / n) ** 2
    return Fit(weight, residual, n * math.log(residual + FLOOR) + log_det, error)


def targets_variance(features: Scaled) -> float:
    """Return the variance of the one-hot targets, tr(Y); 0 with a single class."""
    return float((features.share * (1 - features.share)).sum())


def best_fit(features: Scaled) -> tuple[float, Fit]:
    """Return the best strength among half powers of ten, and its fit.

    Generalised cross-validation decides if there are many samples per feature, otherwise the evidence. Both
    have a single minimum in practice, so the search walks downhill from the usual strength, or from an estimate if each
    fit is costly.
    """
    if targets_variance(features) <= 0:  # one class: there is nothing to regress on
        return 1.0, fit(features, 1.0)
    tried: dict[float, Fit] = {}

    def against(place: float) -> tuple[float, float]:
        if place not in tried:
            tried[place] = fit(features, 10.0**place)
        return tried[place].error, tried[place].misfit  # without cross-validation the first are the same

    best = round(2 * math.log10(estimate(features))) / 2 if _large(features) else float(USUAL)
    for step in (0.5, -0.5):
        while LOWEST <= best + step <= HIGHEST and against(best + step) < against(best):
            best += step
    return 10.0**best, tried[best]


def estimate(features: Scaled) -> float:
    """Return an estimate of the best strength from a third of the features; the best strength if these are few."""
    if not _large(features):
        return best_fit(features)[0]
    r = len(features.covariance)
    some = torch.randperm(r, generator=stream(0, "ridge"))[: r // DIVISOR].to(features.covariance.device)
    fewer = replace(features, covariance=features.covariance[some][:, some], means=features.means[:, some])
    return min(DIVISOR * best_fit(fewer)[0], 10.0**HIGHEST)


def _large(features: Scaled) -> bool:
    """Return whether a fit is costly, and features are alike: in a basis they are not."""
    return features.axes.basis is None and len(features.covariance) >= LARGE


def chosen_ridge(features: Scaled, roughly: bool = False) -> float:
    """Return the best strength, or roughly that."""
    return estimate(features) if roughly else best_fit(features)[0]
