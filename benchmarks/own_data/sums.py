"""Learners that keep sums and nothing else, each as short as an expert would write it.

All learn exactly: any order of samples and tasks gives the same sums. The constants are the same for all data sets,
chosen by ``python -m benchmarks.own_data tune`` on parts of the training samples.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from torch.nn import functional as F

from benchmarks.own_data.learner import Learner, Setting
from benchmarks.own_data.samples import Array

ALL = -1  # instead of a class: the sum over all of them


@final
class NearestMean(Learner):
    """The class whose mean is nearest."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.total: dict[int, Array] = {}  # class: (d,)

    def learn(self, X: Array, y: Array) -> None:
        for c in np.unique(y).tolist():
            self.count[c] = self.count.get(c, 0) + int((y == c).sum())
            self.total[c] = self.total.get(c, 0) + X[y == c].sum(0)

    def predict(self, X: Array) -> Array:
        classes = np.array(list(self.count))
        mean = np.array([self.total[c] / self.count[c] for c in self.count])  # (C, d)
        best: Array = classes[((mean**2).sum(1) - 2 * X @ mean.T).argmin(1)]
        return best

    @property
    def numbers_kept(self) -> int:
        return sum(1 + total.size for total in self.total.values())


@final
class Gaussians(Learner):
    """A Gaussian per class: p(c | x) ∝ n_c N(x; m_c, S_c), with covariances estimated from sums.

    Parameters
    ----------
    shared
        Whether all classes have one covariance, their mean (linear discriminant analysis; Hayes & Kanan 2020 learn it
        as a stream), rather than one each.
    diagonal
        Whether features vary independently (naive Bayes).
    shrinkage
        How much of a covariance is replaced by the mean variance on the diagonal.
    """

    def __init__(self, *, shared: bool = False, diagonal: bool = False, shrinkage: float) -> None:
        self.shared, self.diagonal, self.shrinkage = shared, diagonal, shrinkage
        self.count: dict[int, int] = {}
        self.total: dict[int, Array] = {}  # class: (d,)
        self.square: dict[int, Array] = {}  # class, or ALL: (d, d), or (d,) of independent features
        self.answer: dict[int, tuple[Array, float]] = {}

    def learn(self, X: Array, y: Array) -> None:
        self.answer = {}
        for c in np.unique(y).tolist():
            own, key = X[y == c], ALL if self.shared else c
            self.count[c] = self.count.get(c, 0) + len(own)
            self.total[c] = self.total.get(c, 0) + own.sum(0)
            self.square[key] = self.square.get(key, 0) + ((own**2).sum(0) if self.diagonal else own.T @ own)

    def covariance(self, classes: list[int]) -> Array:
        """Return the shrunken covariance within these classes, which share a sum of squares."""
        outer = (lambda m: m**2) if self.diagonal else (lambda m: np.outer(m, m))
        n = sum(self.count[c] for c in classes)
        between = sum(outer(self.total[c]) / self.count[c] for c in classes)
        S = (self.square[ALL if self.shared else classes[0]] - between) / n
        variance = S if self.diagonal else np.diag(S)
        mean_variance = max(variance.mean(), 1e-6) * (1 if self.diagonal else np.eye(len(S)))
        shrunken: Array = (1 - self.shrinkage) * S + self.shrinkage * mean_variance
        return shrunken

    def whitening(self, classes: list[int]) -> tuple[Array, float]:
        """Return R with R Rᵀ = S⁻¹ of these classes, and the logarithm of the determinant of S."""
        S = self.covariance(classes)
        if self.diagonal:
            return 1 / np.sqrt(S), float(np.log(S).sum())
        root = np.linalg.cholesky(S)
        return np.linalg.inv(root).T, float(2 * np.log(np.diag(root)).sum())

    def predict(self, X: Array) -> Array:
        classes = list(self.count)
        if not self.answer:
            groups = {ALL: classes} if self.shared else {c: [c] for c in classes}
            self.answer = {key: self.whitening(group) for key, group in groups.items()}
        times = np.multiply if self.diagonal else np.matmul
        white = {key: times(X, R) for key, (R, _) in self.answer.items()} if self.shared else {}
        score = np.empty((len(X), len(classes)))  # (n, C): log n_c N(x; m_c, S_c), up to a constant
        for i, c in enumerate(classes):
            R, log_determinant = self.answer[ALL if self.shared else c]
            away = (white[ALL] if self.shared else times(X, R)) - times(self.total[c] / self.count[c], R)
            score[:, i] = np.log(self.count[c]) - ((away**2).sum(1) + log_determinant) / 2
        best: Array = np.array(classes)[score.argmax(1)]
        return best

    @property
    def numbers_kept(self) -> int:
        d = len(next(iter(self.total.values())))
        return len(self.count) * (d + 1) + len(self.square) * (d if self.diagonal else d * (d + 1) // 2)


@final
class Ridge(Learner):
    """Ridge regression on fixed features: W = (G + λ I)⁻¹ C from the sums G = Σ φ φᵀ and C = Σ φ one-hot(y)ᵀ.

    Parameters
    ----------
    features
        Maps inputs to features; it is reproduced from its seed.
    strength
        λ.
    """

    def __init__(self, features: RandomFeatures | RandomConvolutions, strength: float) -> None:
        self.features, self.strength = features, strength
        self.G: Array = np.zeros((0, 0))
        self.C: dict[int, Array] = {}  # class: (D,)
        self.W: Array | None = None  # (D, C)

    def learn(self, X: Array, y: Array) -> None:
        self.W = None
        for start in range(0, len(X), 2000):
            phi, labels = self.features(X[start : start + 2000]), y[start : start + 2000]
            self.G = self.G + phi.T @ phi if len(self.G) else phi.T @ phi
            for c in np.unique(labels).tolist():
                self.C[c] = self.C.get(c, 0) + phi[labels == c].sum(0)

    def predict(self, X: Array) -> Array:
        if self.W is None:
            ridge = self.strength * np.eye(len(self.G))
            self.W = cho_solve(cho_factor(self.G + ridge), np.array(list(self.C.values())).T)
        parts = [self.features(X[i : i + 2000]) @ self.W for i in range(0, len(X), 2000)]
        best: Array = np.array(list(self.C))[np.concatenate(parts).argmax(1)]
        return best

    @property
    def numbers_kept(self) -> int:
        D = len(self.G)
        return D * (D + 1) // 2 + len(self.C) * D


@final
class RandomFeatures:
    """2,000 random ReLU features and a constant: φ(x) = max(x V + b, 0)."""

    def __init__(self, setting: Setting, n: int = 2000) -> None:
        self.random, self.n = np.random.default_rng(setting.seed), n
        self.V: Array = np.zeros((0, 0))

    def __call__(self, X: Array) -> Array:
        if not len(self.V):
            self.V = self.random.normal(size=(X.shape[1] + 1, self.n)) / np.sqrt(X.shape[1])  # the last row is b
        phi = np.maximum(X @ self.V[:-1] + self.V[-1] * np.sqrt(X.shape[1]), 0)
        return np.hstack([phi, np.ones((len(X), 1))])


@final
class RandomConvolutions:
    """125 random filters over a picture, ReLU, the mean over 4 × 4 parts: 2,000 features and a constant."""

    def __init__(self, setting: Setting, n: int = 125, parts: int = 4) -> None:
        assert setting.shape is not None
        self.shape, self.parts = setting.shape, parts
        size = max(3, min(setting.shape) // 5)  # 5 × 5 for 28 × 28, 3 × 3 for 8 × 8
        random = np.random.default_rng(setting.seed)
        filters = random.normal(size=(n, size * size))
        filters -= filters.mean(1, keepdims=True)  # invariant to brightness
        filters /= np.linalg.norm(filters, axis=1, keepdims=True)
        self.filters = torch.from_numpy(filters.reshape(n, 1, size, size)).float()
        self.bias = torch.from_numpy(random.uniform(-0.5, 0.1, n)).float()

    def __call__(self, X: Array) -> Array:
        x = torch.from_numpy(X).float().reshape(-1, 1, *self.shape)
        maps = F.conv2d(x, self.filters, self.bias, padding="same").relu_()  # (n, filters, height, width)
        phi = F.adaptive_avg_pool2d(maps, self.parts).flatten(1).double().numpy()
        return np.hstack([phi, np.ones((len(X), 1))])
