r"""Noise on sums, so that they reveal little about any single sample.

Features are clipped to length at most r, and after a task has been summed, Gaussian noise is added once:

.. math:: n_c \mathrel{+}= \sigma\,\mathcal N(0, 1), \qquad s_c \mathrel{+}= \sigma r\,\mathcal N(0, I), \qquad
    P \mathrel{+}= \sigma r^2 E

E is symmetric with standard normal entries. One sample changes n by 1, s by at most r, and P by at most r² in norm, so
for every δ the sums are (ε, δ)-differentially private with

.. math:: \varepsilon = \frac{3}{2 \sigma^2} + \frac{\sqrt{6 \log(1 / \delta)}}{\sigma}

(Gaussian mechanism on three sums, by zero-concentrated privacy; Bun & Steinke 2016; Dwork & Roth 2014). Every sample is
in one task's sums only, so the cost does not add up over tasks. The feature scaling by the first task is not covered.
The noise is never drawn from the model's seed, which is known: anyone who could regenerate it could subtract it.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence
from dataclasses import replace

import torch
from torch import Tensor

from relive.methods.sums import Sums

LONG = 1.5  # r, in units of the length of a sample with variance 1 in every feature


def radius(n_features: int) -> float:
    """Return r, which does not depend on the data."""
    return LONG * math.sqrt(n_features)


def clipped(h: Tensor) -> Tensor:
    """Return the features (n, features), clipped to length r."""
    length = h.square().sum(1, keepdim=True).sqrt()
    return h * (radius(h.shape[1]) / length.clamp_min(torch.finfo(h.dtype).tiny)).clamp_max(1)


def add_noise(sums: Sums, by_class: MutableSequence[Tensor], cells: Tensor, sigma: float) -> None:
    """Add noise in place to the sums of the classes in a task; a class keeps a count of at least one."""
    rng = torch.Generator()
    rng.seed()  # by the operating system

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(sums.total.device)

    k, d = len(cells), sums.total.shape[1]
    r = radius(d)
    sums.count[cells] = (sums.count[cells] + sigma * normal(k)).clamp_min(1)
    sums.total[cells] += sigma * r * normal(k, d)
    if sums.products is not None:
        sums.products.add_(_symmetric(normal(d, d)), alpha=sigma * r**2)
    for cell in cells.tolist() if by_class else ():
        by_class[cell] = by_class[cell] + sigma * r**2 * _symmetric(normal(d, d))


def largest_noise(sigma: float, n_features: int, tasks: int) -> float:
    """Return the largest norm of the noise on the products in any direction, after this many tasks."""
    return 2 * sigma * radius(n_features) ** 2 * math.sqrt(n_features * tasks)


def repaired(sums: Sums) -> Sums:
    """Return sums with a valid within-class covariance, which noise may have destroyed."""
    apart = sums.means - sums.mean
    between = (apart.T * (sums.count / sums.n)) @ apart
    variance, axes = torch.linalg.eigh(sums.covariance - between)
    within = (axes * variance.clamp_min(0)) @ axes.T
    return replace(sums, products=sums.n * (within + between + torch.outer(sums.mean, sums.mean)))


def _symmetric(entries: Tensor) -> Tensor:
    return entries.triu() + entries.triu(1).T


def epsilon(sigma: float, delta: float) -> float:
    """Return ε for a δ.

    >>> round(epsilon(10.0, 1e-5), 2)
    0.85
    """
    return 3 / (2 * sigma**2) + math.sqrt(6 * math.log(1 / delta)) / sigma
