r"""The distribution of the classes' inputs, from sums: an independent Gaussian for every input of every class.

.. math:: p(x) \propto \sum_c n_c \prod_i \mathcal N(x_i;\, \mu_{ci}, \sigma'^2_{ci}), \qquad
    \sigma'^2_{ci} = \frac{n_c\,\sigma^2_{ci} + 5\,\sigma^2_i}{n_c + 5} + 0.01\,\overline{\sigma^2}

A class's variances are shrunk towards those within all classes as if these had been seen in five samples. The sums are
those of the inputs and of their squares: :class:`relive.methods.closed_form.Sums` of (classes, 2 · inputs).
"""

from __future__ import annotations

import torch
from torch import Tensor

from relive.methods.catalogue import FLOOR, PRIOR
from relive.methods.sums import Sums


def with_squares(x: Tensor) -> Tensor:
    """Return inputs and their squares, (n, 2 · inputs), float64."""
    x = x.double()
    return torch.cat([x, x.square()], dim=1)


def moments_of(x: Tensor, label: Tensor) -> Sums:
    """Return the sums of some samples, given the class of each (n,)."""
    zeros = torch.zeros(int(label.max()) + 1, 2 * x.shape[1], dtype=torch.float64, device=x.device)
    moments = Sums(zeros[:, 0].clone(), zeros, None)
    moments.add(with_squares(x), label)
    return moments


def gaussians(moments: Sums) -> tuple[Tensor, Tensor, Tensor]:
    """Return the number of samples (classes, 1), means and variances (classes, inputs) of classes with samples."""
    there = moments.count > 0
    count = moments.count[there].unsqueeze(1)
    means, squares = moments.means[there].chunk(2, dim=1)
    own = (squares - means.square()).clamp_min(0)
    within = (count * own).sum(0) / count.sum()
    drawn = (count * own + PRIOR * within) / (count + PRIOR)
    return count, means, drawn + FLOOR * within.mean() + torch.finfo(torch.float32).tiny


def log_density(moments: Sums, x: Tensor) -> Tensor:
    """Return log p(x), (n,), up to the same constant for all sums."""
    count, means, variances = gaussians(moments)
    weight = torch.cat([means / variances, -0.5 / variances], dim=1)  # (classes, 2 · inputs)
    constant = count.log().squeeze(1) - 0.5 * (means.square() / variances + variances.log()).sum(1)
    return (with_squares(x) @ weight.T + constant).logsumexp(1)


def samples_of(moments: Sums, n: int, rng: torch.Generator) -> Tensor:
    """Return n samples drawn from these Gaussians, (n, inputs)."""
    count, means, variances = gaussians(moments)
    which = torch.multinomial(count.squeeze(1).cpu(), n, replacement=True, generator=rng).to(means.device)
    noise = torch.randn(n, means.shape[1], generator=rng, dtype=torch.float64).to(means.device)
    return means[which] + variances[which].sqrt() * noise
