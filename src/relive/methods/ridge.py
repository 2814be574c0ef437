r"""Ridge regression from sums, and how strong it should be, chosen from the same sums.

Regressing one-hot targets on centred features, scaled to variance 1, with covariance T and cross-covariance C:

.. math:: W_\lambda = (T + \lambda I)^{-1} C, \qquad
    \lambda = \arg\min\; n \log\Bigl(\frac{\mathrm{tr}(Y) - \mathrm{tr}(C^\top W_\lambda)}{\mathrm{tr}(Y)} + \tau\Bigr)
    + \log\det(I + T / \lambda)

the second line being −2 log of the evidence (the marginal likelihood of Bayesian linear regression; MacKay 1992,
"Bayesian interpolation", Neural Computation 4), with tr(Y) the variance of the targets. All of it follows from sums. τ
is a floor for the noise: labels are discrete, and where classes can be told apart without error the evidence alone
would have λ vanish. Where there are many samples for each feature the evidence, which takes residuals for normal, holds
the weights too tight. There λ is that with the lowest generalised cross-validation error (Golub, Heath & Wahba 1979,
Technometrics 21), which fails where there are few, and which follows from the same sums:

.. math:: \lambda = \arg\min\; \frac{\mathrm{tr}(Y) - 2\,\mathrm{tr}(C^\top W_\lambda)
    + \mathrm{tr}(W_\lambda^\top T W_\lambda)}{(1 - (1 + \mathrm{tr}\,T (T + \lambda I)^{-1}) / n)^2}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from relive.methods.catalogue import STILL
from relive.methods.sums import Sums

FLOOR = 0.01  # τ
LOWEST, USUAL, HIGHEST = -6, -2, 2  # powers of ten among which the strength is looked for
MANY = 4  # samples per feature from which cross-validation decides


def scales(sums: Sums) -> Tensor:
    """Return the standard deviation of every feature, (features,)."""
    deviation = sums.covariance.diagonal().clamp_min(0).sqrt()
    return deviation.clamp_min(STILL * deviation.max()).clamp_min(torch.finfo(torch.float32).tiny)


@dataclass(frozen=True)
class Fit:
    """A ridge regression: weights of scaled features (features, classes), and what speaks against its strength."""

    weight: Tensor
    residual: float  # the targets' variance that is left, with the penalty, as a share of all of it
    misfit: float  # −2 log evidence, up to a constant
    error: float  # of generalised cross-validation, where samples are many


def fit(T: Tensor, C: Tensor, spread: float, n: float, ridge: float) -> Fit:
    """Regress, given the covariance of scaled features, that with the targets, and the variance of the targets."""
    d = len(T)
    root = torch.linalg.cholesky(T + ridge * torch.eye(d, dtype=T.dtype, device=T.device))
    weight = torch.cholesky_solve(C, root)
    residual = max(float(1 - (C * weight).sum() / spread), 0.0)
    log_det = float(2 * root.diagonal().log().sum()) - d * math.log(ridge)
    error = math.inf
    if n >= MANY * d:
        training_error = float(spread - 2 * (C * weight).sum() + (weight * (T @ weight)).sum())
        freedom = 1 + d - ridge * float(torch.cholesky_inverse(root).diagonal().sum())
        error = training_error / (1 - freedom / n) ** 2
    return Fit(weight, residual, n * math.log(residual + FLOOR) + log_det, error)


def regression(sums: Sums) -> tuple[Tensor, Tensor, float, float]:
    """Return what :func:`fit` needs: T, C, the targets' variance, and how many samples there are."""
    scale, share = scales(sums), sums.count / sums.n
    T = sums.covariance / torch.outer(scale, scale)
    C = ((sums.means - sums.mean) / scale).T * share  # (features, classes)
    return T, C, float((share * (1 - share)).sum()), float(sums.n)


def best_fit(sums: Sums) -> tuple[float, Fit]:
    """Return the best strength among half powers of ten, and its fit.

    Generalised cross-validation decides where there are many samples for each feature, the evidence elsewhere. Both
    have one valley in practice, so that it is walked down from the usual strength: each fit costs a decomposition.
    """
    given = regression(sums)
    if given[2] <= 0:  # one class: there is nothing to regress on
        return 1.0, fit(*given[:2], 1.0, given[3], 1.0)
    tried: dict[float, Fit] = {}

    def against(place: float) -> tuple[float, float]:
        if place not in tried:
            tried[place] = fit(*given, 10.0**place)
        return tried[place].error, tried[place].misfit  # without cross-validation the first are the same

    best = float(USUAL)
    for step in (1.0, -1.0):
        while LOWEST <= best + step <= HIGHEST and against(best + step) < against(best):
            best += step
    best = min((best, best - 0.5, best + 0.5), key=against)
    return 10.0**best, tried[best]


def chosen_ridge(sums: Sums) -> float:
    """Return the best strength."""
    return best_fit(sums)[0]
