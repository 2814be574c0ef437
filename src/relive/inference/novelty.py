"""Novelty of inputs in NumPy: mirrors ``relive.methods.novelty`` and ``Discriminant.novelty``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relive.classifier.bookkeeping import Array
from relive.classifier.modelheader import require
from relive.inference.graph import Graph
from relive.inference.scores import (
    Asked,
    ClassGaussians,
    class_gaussians,
    counted,
    n_cells,
    triangular_inverse,
)
from relive.methods.catalogue import NEAR_RIDGE, RELATIVE_RIDGE, STILL


@dataclass(frozen=True)
class Metric:
    """The squared distance to the nearest of some centres."""

    scale: Array
    white: Array  # (features, features) the inverse of the covariance's Cholesky factor
    centres: Array  # (centres, features), scaled and whitened

    def __call__(self, h: Array) -> Array:
        """Return it for each row, (n,)."""
        rows = (h / self.scale) @ self.white.T
        products = rows @ self.centres.T
        distances = (rows**2).sum(1)[:, None] - 2 * products + (self.centres**2).sum(1)
        nearest: Array = np.maximum(distances, 0).min(1)
        return nearest


@dataclass(frozen=True)
class Novelty:
    """How features are computed, and the distances on them.

    Attributes
    ----------
    graph, features
        The graph that computes features, and their name in it.
    near, own, general
        Distances to the nearest class, with either ridge, and to the overall mean.
    gaussians
        Of every class, if there are any.
    """

    graph: Graph
    features: str
    near: Metric
    own: Metric
    general: Metric
    gaussians: ClassGaussians | None

    def __call__(self, h: Array) -> Array:
        """Return how unlike everything learned samples with features h (n, features) are, (n, kinds)."""
        h = h.astype(np.float64)
        near = self.near(h)
        kinds = [near, self.own(h) - self.general(h) if len(self.own.centres) > 1 else np.full_like(near, np.nan)]
        if self.gaussians is not None:
            own = self.gaussians
            moved = own.white @ (h[:, : own.means.shape[1]].T - own.means[:, :, None])  # (classes, inputs, n)
            kinds.append((0.5 * (moved**2).sum(1) + own.log_det[:, None]).min(0))
        return np.stack(kinds, 1)


def novelty_of(asked: Asked, graph: Graph, x: str) -> Novelty | None:
    """Return the novelty of a closed-form method, given inputs x in a new graph; None for other methods."""
    if "products" not in asked.kept:
        return None
    d = asked.head(n_cells(asked.scenario))[0].shape[1]
    count, total = counted(asked, d)
    there = count > 0
    shape = (None,) if asked.kept.n_dimensions("products") == 1 else (len(count), None)
    packed = asked.kept.take("products", shape, np.float64)
    packed = packed[there].sum(0) if packed.ndim > 1 else packed
    require(len(packed) == d * (d + 1) // 2, "its products")
    products, (i, j) = np.empty((d, d)), np.triu_indices(d)
    products[i, j] = products[j, i] = packed
    share, means = count[there] / count.sum(), total[there] / count[there, None]
    mean = total.sum(0) / count.sum()
    covariance = products / count.sum() - np.outer(mean, mean)
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 0))
    scale = np.maximum(np.maximum(deviation, STILL * deviation.max()), np.finfo(np.float32).tiny)
    apart = means - mean
    within = covariance - (apart.T * share) @ apart
    question = Asked(**vars(asked) | {"graph": graph, "x": x})
    return Novelty(
        graph,
        question.features(d),
        _metric(within, scale, means, NEAR_RIDGE),
        _metric(within, scale, means, RELATIVE_RIDGE),
        _metric(covariance, scale, mean[None], RELATIVE_RIDGE),
        class_gaussians(asked) if "squares" in asked.kept else None,
    )


def _metric(covariance: Array, scale: Array, centres: Array, ridge: float) -> Metric:
    white = triangular_inverse(np.linalg.cholesky(covariance / np.outer(scale, scale) + ridge * np.eye(len(scale))))
    return Metric(scale, white, (centres / scale) @ white.T)
