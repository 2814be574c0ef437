r"""Fixed random features: nothing is trained, and only the first task decides how inputs are scaled.

Flat inputs become :math:`[z, \max(0, Wz + b)]` with W and b from normal distributions and z the inputs scaled by the
first task's median and spread, bounded like a logarithm, so that a later task that lies far away does no harm. Pictures
go through two layers of random convolutions. The first layer's filters are drawn with the covariance that small patches
of the first task have, so that they are as smooth as the pictures; no patch is kept. Biases are quantiles of what the
first task's pictures give, so that every filter is silent somewhere.

Rahimi & Recht (2008), "Random features for large-scale kernel machines", NeurIPS; Coates & Ng (2012), "Learning feature
representations with k-means"; McDonnell et al. (2023), "RanPAC", NeurIPS.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d, linear, pad, unfold

from relive.networks.pictures import Picture

BOUND = 3.0  # scaled inputs grow like a logarithm from here
KERNEL = 5  # of both convolutions, in pixels
FIRST = 32  # filters of the first convolution
GRID = 4  # the second convolution's outputs are averaged over so many by so many fields
LOOK = 1000  # inputs of the first task that are looked at
AT_ONCE = 50  # pictures that go through the convolutions together: larger maps would leave the cache
QUANTILES = (0.3, 0.95)  # of a filter's outputs, between which its threshold is drawn


@runtime_checkable
class Adapts(Protocol):
    """An encoder that looks at the first task's inputs before it gives any features."""

    def adapt(self, x: Tensor) -> None:
        """Decide by these inputs, (n, inputs), once."""


def some_of(x: Tensor) -> Tensor:
    """Return at most a thousand inputs, evenly spaced."""
    return x[torch.linspace(0, len(x) - 1, min(len(x), LOOK)).long().to(x.device)]


class FlatFeatures(nn.Module):
    """The inputs, scaled, and random ReLU features of them.

    Parameters
    ----------
    n_inputs, n_random
        Numbers per input, and random features.
    with_inputs
        Whether the inputs themselves are among the features.
    rng
        What the random weights are drawn from.
    """

    weight: Tensor
    bias: Tensor
    middle: Tensor
    spread: Tensor

    def __init__(self, n_inputs: int, n_random: int, with_inputs: bool, rng: torch.Generator) -> None:
        super().__init__()
        self.with_inputs = with_inputs
        self.register_buffer("weight", torch.randn(n_random, n_inputs, generator=rng) / math.sqrt(n_inputs))
        self.register_buffer("bias", torch.randn(n_random, generator=rng))
        self.register_buffer("middle", torch.zeros(n_inputs))
        self.register_buffer("spread", torch.ones(n_inputs))

    def adapt(self, x: Tensor) -> None:
        """Take the median and the distance of the outer deciles; where they are the same, the standard deviation."""
        x = some_of(x)
        low, self.middle, high = torch.quantile(x, torch.tensor([0.1, 0.5, 0.9], device=x.device), dim=0)
        deviation = x.std(0, correction=0)
        spread = (high - low) / 2.56  # a normal variable's standard deviation
        still = 1e-7 * x.abs().amax(0)  # rounding
        spread = torch.where(spread > still, spread, deviation)
        varies = spread > still
        usual = spread[varies].median() if varies.any() else spread.new_ones(())
        self.spread = torch.where(varies, spread, usual)  # who knows what a still input does later

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, features)."""
        z = (x - self.middle) / self.spread
        z = torch.where(z.abs() > BOUND, z.sign() * BOUND * (1 + (z.abs() / BOUND).clamp_min(1).log()), z)
        h = linear(z, self.weight, self.bias).relu_()
        return torch.cat([z, h], dim=1) if self.with_inputs else h


class ConvolutionalFeatures(nn.Module):
    """Two layers of random convolutions with ReLU, each followed by averaging.

    Parameters
    ----------
    picture
        The shape of an input.
    n_filters
        Of the second convolution.
    rng
        What the random weights are drawn from.
    """

    weight1: Tensor
    weight2: Tensor
    bias1: Tensor
    bias2: Tensor

    def __init__(self, picture: Picture, n_filters: int, rng: torch.Generator) -> None:
        super().__init__()
        self.picture = picture
        k = KERNEL
        self.register_buffer("weight1", torch.randn(FIRST, picture.channels, k, k, generator=rng))
        smooth = avg_pool2d(pad(torch.randn(n_filters, FIRST, k, k, generator=rng), (1,) * 4), 3, 1)
        self.register_buffer("weight2", smooth - smooth.mean((1, 2, 3), keepdim=True))
        low, high = QUANTILES
        self.register_buffer("bias1", low + (high - low) * torch.rand(FIRST, generator=rng))  # quantiles, until adapted
        self.register_buffer("bias2", low + (high - low) * torch.rand(n_filters, generator=rng))
        self.grid = min(GRID, (picture.height + 1) // 2), min(GRID, (picture.width + 1) // 2)

    def adapt(self, x: Tensor) -> None:
        """Draw the first filters as smooth as the pictures, and set every filter's scale and threshold."""
        planes = self.picture.planes(some_of(x))
        patches = (
            unfold(planes[:: max(1, len(planes) // 300)], KERNEL, padding=KERNEL // 2).transpose(1, 2).flatten(0, 1)
        )
        patches = patches - patches.mean(1, keepdim=True)
        variance, axes = torch.linalg.eigh((patches.T @ patches / len(patches)).double())
        root = (axes * variance.clamp_min(0).sqrt()) @ axes.T
        self.weight1 = (self.weight1.flatten(1) @ root.float()).view_as(self.weight1)
        self.weight1, self.bias1 = _calibrated(planes, self.weight1, self.bias1)
        maps = self._first(planes)
        self.weight2 = self.weight2 / maps.std((0, 2, 3)).clamp_min(1e-6).view(1, -1, 1, 1)
        self.weight2, self.bias2 = _calibrated(maps, self.weight2, self.bias2)

    def _first(self, planes: Tensor) -> Tensor:
        return avg_pool2d(conv2d(planes, self.weight1, self.bias1, padding=KERNEL // 2).relu_(), 2, ceil_mode=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, filters · fields)."""
        features = []
        for some in torch.split(x, AT_ONCE):
            planes = self.picture.planes(some).contiguous(memory_format=torch.channels_last)
            maps = conv2d(self._first(planes), self.weight2, self.bias2, padding=KERNEL // 2).relu_()
            features.append(adaptive_avg_pool2d(maps, self.grid).flatten(1))
        return torch.cat(features)


def _calibrated(maps: Tensor, weight: Tensor, quantile: Tensor) -> tuple[Tensor, Tensor]:
    """Return filters whose outputs vary by 1, and biases that put a quantile of each filter's outputs at 0."""
    outputs = conv2d(maps, weight, padding=KERNEL // 2).transpose(0, 1).flatten(1)[:, ::7]  # (filters, places)
    deviation = outputs.std(1).clamp_min(1e-6)
    order = (outputs / deviation.unsqueeze(1)).sort(1).values
    place = (quantile * (order.shape[1] - 1)).long().unsqueeze(1)
    return weight / deviation.view(-1, 1, 1, 1), -order.gather(1, place).squeeze(1)


def flat(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> FlatFeatures:
    """Return ``hidden`` features of flat inputs: the inputs themselves, unless they are too many, and random ones."""
    n_inputs = math.prod(shape)
    with_inputs = 2 * n_inputs <= hidden
    return FlatFeatures(n_inputs, hidden - n_inputs if with_inputs else hidden, with_inputs, rng)


def convolutional(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> ConvolutionalFeatures:
    """Return about ``hidden`` features of pictures."""
    picture = Picture.of(shape, "encoder 'random-conv'")
    fields = min(GRID, (picture.height + 1) // 2) * min(GRID, (picture.width + 1) // 2)
    return ConvolutionalFeatures(picture, max(1, hidden // fields), rng)


def random(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
    """Return random features for inputs of this shape: convolutional for pictures, flat for all others."""
    is_picture = len(shape) == 2 or (len(shape) == 3 and min(shape[0], shape[2]) <= 4)
    return (convolutional if is_picture and min(sorted(shape)[-2:]) >= 2 * GRID else flat)(shape, hidden, rng)
