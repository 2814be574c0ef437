"""What closed forms keep of all samples: sums, which do not depend on order, and can be subtracted from."""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sums:
    """What is kept of all samples, in float64.

    Attributes
    ----------
    count
        (classes,) how many samples.
    total
        (classes, features) the sum of their features.
    products
        (features, features) the sum over all samples of the products of their features, symmetric to the last bit; None
        where it is not needed.
    """

    count: Tensor
    total: Tensor
    products: Tensor | None

    def add(self, h: Tensor, cell: Tensor, times: int = 1) -> None:
        """Add samples with features h (n, features) to their classes (n,), this many times: −1 subtracts them."""
        self.count.index_add_(0, cell, h.new_ones(len(h)), alpha=times)
        self.total.index_add_(0, cell, h, alpha=times)
        if self.products is not None:
            add_square(self.products, h, times)

    def copy(self) -> Sums:
        """Return sums that can be added to without changing these."""
        products = None if self.products is None else self.products.clone()
        return Sums(self.count.clone(), self.total.clone(), products)

    @property
    def n(self) -> Tensor:
        """How many samples there are in all."""
        return self.count.sum()

    @property
    def means(self) -> Tensor:
        """The mean of each class, (classes, features); 0 for those without samples."""
        return self.total / self.count.clamp_min(1).unsqueeze(1)

    @property
    def mean(self) -> Tensor:
        """The mean of all samples, (features,)."""
        return self.total.sum(0) / self.n

    @property
    def variance(self) -> Tensor:
        """The variance of each feature over all samples, (features,): the covariance's diagonal."""
        assert self.products is not None
        return self.products.diagonal() / self.n - self.mean.square()

    @property
    def covariance(self) -> Tensor:
        """The covariance of all samples, (features, features)."""
        assert self.products is not None
        return self.products / self.n - torch.outer(self.mean, self.mean)


def add_products(by_class: MutableSequence[Tensor], h: Tensor, cell: Tensor, times: int = 1) -> None:
    """Add the products of features h (n, features) to those of each row's class (n,), without changing old tensors."""
    for c in torch.unique(cell).tolist():
        mine = h[cell == c]
        by_class[c] = add_square(by_class[c].clone(), mine, times)


def add_square(products: Tensor, h: Tensor, times: int, block: int = 256) -> Tensor:
    """Add hᵀ h to a symmetric matrix (features, features) in place, and return it; only its upper half is computed."""
    for i in range(0, len(products), block):
        products[i : i + block, i:].addmm_(h[:, i : i + block].T, h[:, i:], alpha=times)
    return mirror(products)


def move_products(by_class: MutableSequence[Tensor], source: int, target: int) -> None:
    """Add a class's products to another's."""
    by_class[target] = by_class[target] + by_class[source]
    by_class[source] = torch.zeros_like(by_class[source])


def mirror(products: Tensor, block: int = 64) -> Tensor:
    """Copy the upper half of a matrix (n, n) over the lower one, in place, and return it.

    Rounding makes the two halves of a product differ, and a file stores one. Blocks are much faster than whole halves.
    """
    for i in range(0, len(products), block):
        rows, after = slice(i, i + block), slice(i + block, None)
        products[after, rows] = products[rows, after].T
        square = products[rows, rows]
        square.copy_(square.triu() + square.triu(1).T)
    return products


def half(products: Tensor) -> Tensor:
    """Return the upper half of a symmetric matrix (n, n), packed, (n (n + 1) / 2,)."""
    return products[*torch.triu_indices(*products.shape)]


def whole(packed: Tensor, n: int) -> Tensor:
    """Return the symmetric matrix (n, n) packed by :func:`half`.

    >>> whole(half(torch.tensor([[1.0, 2.0], [2.0, 3.0]])), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    products = packed.new_zeros(n, n)
    products[*torch.triu_indices(n, n)] = packed
    return products + products.triu(1).T
