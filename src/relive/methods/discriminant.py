r"""Two Gaussian classifiers from sums, combined: one on many random features, one with a covariance per class.

.. math:: \log p(c|x) = \log p_\text{linear}(c|h) + \tfrac14 \log p_\text{Gaussian}(c|z) + \text{const}

The first is linear discriminant analysis on the inputs z and random features of them, together h
(:mod:`relive.methods.slda`, with the best shrinkage). The second gives every class its own
covariance,

.. math:: \Sigma'_c = \frac{n_c \Sigma_c + p\,\Sigma}{n_c + p} + 0.01\,\bar\sigma^2 I

shrunk towards the pooled one as if that had been seen in p samples, p the number of inputs. Neither is good everywhere:
on sentence embeddings the second is ahead by up to eight points, on letters and vowels far behind. Their sum is close
to the better of the two. With more than 512 inputs, z are their principal axes
(:mod:`relive.networks.random_features`), and the weight is 1/2. On images it is :mod:`relive.methods.analytic`.

This method is our own; a weight of 1/4 was best among 1/8, 1/4, 1/2 and 1 on validation parts of 16 data sets.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.method import Problem
from relive.methods.analytic import ridge_readout, width_within
from relive.methods.catalogue import FLOOR, METHODS, WEIGHT, WEIGHT_ON_AXES
from relive.methods.closed_form import ClosedForm, positive
from relive.methods.ridge import chosen_ridge
from relive.methods.slda import linear_discriminant
from relive.methods.sums import add_products, half, move_products, whole
from relive.networks import Classifier, Sizes
from relive.networks.encoders import encoder_size
from relive.networks.head import OFF
from relive.networks.random_features import FlatFeatures


class Discriminant(ClosedForm):
    """A linear discriminant on random features, and a Gaussian per class."""

    facts: ClassVar = METHODS["discriminant"]
    squares_: list[Tensor] | None = None

    def __init__(self, numbers: float = 2e6) -> None:
        self.numbers = numbers

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        net = super().build(problem, rng)
        p = self.n_inputs_ = net.encoder.n_plain if isinstance(net.encoder, FlatFeatures) else 0  # the first features
        self.weight_ = WEIGHT_ON_AXES if p < problem.sizes.inputs else WEIGHT
        if self.squares_ is None:
            zeros = torch.zeros(p, p, dtype=torch.float64, device=problem.device)
            self.squares_ = [zeros] * len(net.head.bias)
        return net

    def width(self, sizes: Sizes, forgettable: bool = False) -> int:
        p = encoder_size(replace(sizes, hidden=2 * sizes.inputs)).plain
        least = 2 * p if p == sizes.inputs else 1  # so that the inputs are among the features
        return max(width_within(self.numbers, sizes, p * (p + 1) // 2, forgettable), least)

    @property
    def squares(self) -> list[Tensor]:
        """The sum of each class's products of inputs, or of axes, (inputs, inputs) each."""
        assert self.squares_ is not None
        return self.squares_

    def count(self, h: Tensor, cell: Tensor, times: int = 1) -> None:
        super().count(h, cell, times)
        add_products(self.squares, h[:, : self.n_inputs_], cell, times)

    def unshare(self) -> None:
        super().unshare()
        self.squares_ = list(self.squares)

    def drop(self, cells: list[int]) -> None:
        super().drop(cells)
        for cell in cells:
            self.squares[cell] = torch.zeros_like(self.squares[cell])

    def move(self, source: int, target: int) -> None:
        super().move(source, target)
        move_products(self.squares, source, target)

    def readout(self) -> tuple[Tensor, Tensor]:
        features = self.scaled()
        if not self.n_inputs_:
            return ridge_readout(features)
        return linear_discriminant(features, chosen_ridge(features, self.roughly_))

    @torch.no_grad()
    def settle(self, net: Classifier) -> None:
        if not self.settled_ or "roots_" not in vars(self):
            self.roots_ = self._roots()
        super().settle(net)

    def _roots(self) -> Tensor:
        """Return the Cholesky factor of every class's covariance, (classes, inputs, inputs)."""
        p, count = self.n_inputs_, self.sums.count.view(-1, 1, 1)
        means = self.sums.means[:, :p]
        own = torch.stack(self.squares) - count * means.unsqueeze(2) * means.unsqueeze(1)  # n_c Σ_c
        pooled = own.sum(0) / self.sums.n.clamp_min(1)
        floor = FLOOR * pooled.diagonal().mean() if p else 0.0
        drawn = (own + p * pooled) / (count + p).clamp_min(1)
        eye = torch.eye(p, dtype=own.dtype, device=own.device)
        with positive():
            roots: Tensor = torch.linalg.cholesky(drawn + (floor + 1e-12) * eye)
        return roots

    def scores(self, net: Classifier, x: Tensor) -> Tensor:
        h = net.encoder(x)
        linear: Tensor = net.head(h)
        if not self.n_inputs_:
            return linear
        there = self.sums.count > 0
        gaussian = torch.full_like(linear, OFF)
        gaussian[:, there] = self._log_densities(h[:, : self.n_inputs_].double(), there).to(linear.dtype)
        return linear.log_softmax(1) + self.weight_ * gaussian.log_softmax(1).clamp_min(OFF)

    def _log_densities(self, z: Tensor, there: Tensor) -> Tensor:
        """Return log p(z, c) of the classes with samples, (n, classes), up to a constant."""
        means = self.sums.means[there, : self.n_inputs_]
        columns = []
        for mean, root, count in zip(means, self.roots_[there], self.sums.count[there], strict=True):
            white = torch.linalg.solve_triangular(root, (z - mean).T, upper=False)  # (inputs, n)
            columns.append(-0.5 * white.square().sum(0) - root.diagonal().log().sum() + (count / self.sums.n).log())
        return torch.stack(columns, 1)

    def usual_temperature(self, n_classes: int) -> float:
        return usual_temperature(n_classes)

    def novelty(self, net: Classifier, x: Tensor) -> Tensor | None:
        """Return the distances, and minus the log density of the most likely class."""
        distances, there = super().novelty(net, x), self.sums.count > 0
        if not self.n_inputs_ or distances is None:
            return distances
        self.settle(net)
        joint = self._log_densities(net.encoder(x)[:, : self.n_inputs_].double(), there)
        density = (joint - (self.sums.count[there] / self.sums.n).log()).amax(1)
        return torch.cat([distances, -density.unsqueeze(1)], 1)

    def grow(self, net: Classifier) -> None:
        super().grow(net)
        more = len(net.head.bias) - len(self.squares)
        self.squares_ = [*self.squares, *[torch.zeros_like(self.squares[0])] * more]

    def state(self) -> dict[str, Tensor]:
        return super().state() | {"squares": torch.stack([half(products) for products in self.squares])}

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.squares_ = [whole(packed, self.n_inputs_) for packed in state["squares"]]
        self.roots_ = self._roots()


def usual_temperature(n_classes: int) -> float:
    """Return 1.5 √C: the evidence is counted twice, and more so with more classes.

    >>> usual_temperature(4)
    3.0
    """
    return 1.5 * math.sqrt(n_classes)
