r"""Fixed random features: nothing is trained, and only the first task determines how inputs are scaled.

Flat inputs become :math:`[z, \max(0, Wz + b)]` with Gaussian W and b, and z the inputs scaled by the
first task's median and spread and compressed logarithmically, so that a later task far away does no harm. With
more than 512 inputs, as in an image treated as a row of pixels, random directions among them are mostly noise.
Then u, along the first task's principal axes, replaces z:

.. math:: u_j \propto \lambda_j^{1/4}\; v_j^\top S (z - \bar z)

with :math:`\lambda_j` and :math:`v_j` the largest eigenvalues and eigenvectors of the covariance of Sz, S the spreads.
So the standard deviation of :math:`u_j` is proportional to :math:`\lambda_j^{3/4}`; unscaled, the power would be 1/2.

Images pass through two layers of random convolutions. The first layer's filters are drawn with the covariance of
small patches of the first task, so that they are as smooth as the images; no patch is stored. Biases of the second
are quantiles of its outputs on the first task's images, so that every filter is inactive somewhere. The features are
square roots of means over fields.

Rahimi & Recht (2008), "Random features for large-scale kernel machines", NeurIPS; Coates & Ng (2012), "Learning feature
representations with k-means"; McDonnell et al. (2023), "RanPAC", NeurIPS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, linear, pad, unfold

from relive.networks.catalogue import BOUND, COARSE, FINE, FIRST, WIDE
from relive.networks.pictures import COLOURS, Picture, fields, overlapping, pooled_by

AXES, AXES_POWER = 100, 0.75  # how many; exponent of an eigenvalue for the standard deviation along its axis
FEW = 1e-4  # the variance of random axes, in units of an input's
LOOK_WIDE = 10_000  # inputs of the first task that determine the axes
KERNEL, SMALL_KERNEL = 5, 3  # sides of both convolutions' filters; for small images, which are not halved
SMALLEST = 8  # minimum pixels per side of an image
LOOK, LOOK_PICTURES = 1000, 300  # inputs of the first task that are examined
AT_ONCE = 50  # images per convolution: more would not fit the cache
QUANTILES = (0.3, 0.95)  # of a filter's outputs, between which its threshold is drawn


@runtime_checkable
class Adapts(Protocol):
    """An encoder that adapts to the first task's inputs before it computes any features."""

    def adapt(self, x: Tensor) -> None:
        """Adapt to these inputs, (n, inputs), once."""


def some_of(x: Tensor, n: int) -> Tensor:
    """Return at most n inputs, evenly spaced."""
    return x[torch.linspace(0, len(x) - 1, min(len(x), n)).long().to(x.device)]


class FlatFeatures(nn.Module):
    """The scaled inputs, or their principal axes, and random ReLU features of them.

    Parameters
    ----------
    n_inputs, n_random
        Numbers per input, and random features.
    with_plain
        Whether the inputs or axes themselves are among the features, as the first of them.
    n_axes
        Principal axes that replace the inputs; 0 for the inputs.
    rng
        The generator for the random weights.
    """

    weight: Tensor
    bias: Tensor
    middle: Tensor
    spread: Tensor
    axes: Tensor
    origin: Tensor

    def __init__(self, n_inputs: int, n_random: int, with_plain: bool, n_axes: int, rng: torch.Generator) -> None:
        super().__init__()
        n_seen = n_axes or n_inputs
        self.n_axes, self.n_plain = n_axes, n_seen if with_plain else 0
        self.register_buffer("weight", torch.randn(n_random, n_seen, generator=rng) / math.sqrt(n_seen))
        self.register_buffer("bias", torch.randn(n_random, generator=rng))
        self.register_buffer("middle", torch.zeros(n_inputs))
        self.register_buffer("spread", torch.ones(n_inputs))
        if n_axes:
            self.register_buffer("axes", torch.randn(n_axes, n_inputs, generator=rng) / math.sqrt(n_inputs))
            self.register_buffer("origin", torch.zeros(n_axes))  # minus where the first task's mean lies on them

    def adapt(self, x: Tensor) -> None:
        """Determine how inputs are scaled, and the axes that replace them if there are many."""
        self._scale(some_of(x, LOOK))
        if self.n_axes:
            self._turn(self._scaled(some_of(x, LOOK_WIDE)))

    def _scale(self, x: Tensor) -> None:
        """Use the median and the distance of the outer deciles or, if that is 0, the standard deviation."""
        low, self.middle, high = torch.quantile(x, torch.tensor([0.1, 0.5, 0.9], device=x.device), dim=0)
        deviation = x.std(0, correction=0)
        spread = (high - low) / 2.56  # a normal variable's standard deviation
        still = 1e-7 * x.abs().amax(0)  # rounding
        spread = torch.where(spread > still, spread, deviation)
        varies = spread > still
        usual = spread[varies].median() if varies.any() else spread.new_ones(())
        self.spread = torch.where(varies, spread, usual)  # a constant input may vary later

    def _turn(self, z: Tensor) -> None:
        """Use the principal axes of the inputs in their own units, but bounded; with few samples, random ones."""
        mean, own = z.mean(0), z * self.spread
        covariance = torch.cov(own.T, correction=0).double()
        usual = float(covariance.diagonal().mean()) or 1.0
        variance, axes = torch.linalg.eigh(covariance + FEW * usual * (self.axes.T @ self.axes))
        variance, axes = variance.flip(0)[: self.n_axes].clamp_min(0), axes.flip(1)[:, : self.n_axes]
        power = variance ** (2 * AXES_POWER)  # the target variances, up to a factor
        factor = (power / (power.mean() * variance).clamp_min(torch.finfo(torch.float32).tiny)).sqrt()
        self.axes = ((axes * factor).T * self.spread).float()  # (axes, inputs)
        self.origin = -self.axes @ mean

    def _scaled(self, x: Tensor) -> Tensor:
        z = (x - self.middle) / self.spread
        return torch.where(z.abs() > BOUND, z.sign() * BOUND * (1 + (z.abs() / BOUND).clamp_min(1).log()), z)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, features)."""
        z = self._scaled(x)
        seen = linear(z, self.axes, self.origin) if self.n_axes else z
        h = linear(seen, self.weight, self.bias).relu_()
        return torch.cat([seen, h], dim=1) if self.n_plain else h


class ConvolutionalFeatures(nn.Module):
    """Two layers of random convolutions: absolute values of the first, ReLU of the second, both averaged over fields.

    Parameters
    ----------
    picture
        The shape of an input.
    n_filters
        Of the second convolution.
    with_first
        Whether the first layer's outputs are also features.
    rng
        The generator for the random weights.
    """

    weight1: Tensor
    weight2: Tensor
    bias2: Tensor

    def __init__(self, picture: Picture, n_filters: int, with_first: bool, rng: torch.Generator) -> None:
        super().__init__()
        self.picture = picture
        self.with_first = with_first
        self.step = pooled_by(picture)
        k = kernel(picture)
        self.register_buffer("weight1", torch.randn(FIRST, picture.channels, k, k, generator=rng))
        smooth = avg_pool2d(pad(torch.randn(n_filters, FIRST, k, k, generator=rng), (1,) * 4), 3, 1)
        self.register_buffer("weight2", smooth - smooth.mean((1, 2, 3), keepdim=True))
        low, high = QUANTILES
        self.register_buffer("bias2", low + (high - low) * torch.rand(n_filters, generator=rng))  # until adapted

    def adapt(self, x: Tensor) -> None:
        """Draw first filters as smooth as the images, and set every filter's scale and threshold."""
        planes = self.picture.planes(some_of(x, LOOK_PICTURES))
        k = self.weight1.shape[-1]
        patches = unfold(planes, k, padding=k // 2).transpose(1, 2).flatten(0, 1)
        patches = patches - patches.mean(1, keepdim=True)
        variance, axes = torch.linalg.eigh((patches.T @ patches / len(patches)).double())
        root = (axes * variance.clamp_min(0).sqrt()) @ axes.T
        weight = (self.weight1.flatten(1) @ root.float()).view_as(self.weight1)
        self.weight1 = weight / _outputs(planes, weight).std(1).clamp_min(1e-6).view(-1, 1, 1, 1)
        maps = self._first(planes)
        weight = self.weight2 / maps.std((0, 2, 3)).clamp_min(1e-6).view(1, -1, 1, 1)
        outputs = _outputs(maps, weight)
        deviation = outputs.std(1).clamp_min(1e-6)
        order = (outputs / deviation.unsqueeze(1)).sort(1).values
        place = (self.bias2 * (order.shape[1] - 1)).long().unsqueeze(1)
        self.weight2, self.bias2 = weight / deviation.view(-1, 1, 1, 1), -order.gather(1, place).squeeze(1)

    def _first(self, planes: Tensor) -> Tensor:
        maps = conv2d(planes, self.weight1, padding=self.weight1.shape[-1] // 2).abs_()
        return avg_pool2d(maps, self.step, ceil_mode=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, features)."""
        features = []
        for some in torch.split(x, AT_ONCE):
            first = self._first(self.picture.planes(some).contiguous(memory_format=torch.channels_last))
            second = conv2d(first, self.weight2, self.bias2, padding=self.weight2.shape[-1] // 2).relu_()
            parts = [_averaged(second, COARSE), *([_averaged(first, FINE)] if self.with_first else [])]
            features.append(torch.cat(parts, dim=1))
        return torch.cat(features)


def _averaged(maps: Tensor, grid: int) -> Tensor:
    """Return square roots of the means over overlapping fields, (n, maps · fields), which reduces outliers."""
    windows, strides = zip(*(overlapping(n, grid) for n in maps.shape[2:]), strict=True)
    return avg_pool2d(maps, windows, strides).flatten(1).sqrt_()


def _outputs(maps: Tensor, weight: Tensor) -> Tensor:
    """Return the filters' outputs at some positions of some maps, (filters, places)."""
    some = maps[:: max(1, len(maps) // 200)]
    return conv2d(some, weight, padding=weight.shape[-1] // 2).transpose(0, 1).flatten(1)[:, ::5]


@dataclass(frozen=True)
class Size:
    """An encoder's size without creating it: stored numbers, features, and how many of these are inputs.

    If principal axes replace the inputs, the latter are the axes.
    """

    numbers: int
    features: int
    plain: int = 0


def _flat_parts(shape: tuple[int, ...], hidden: int) -> tuple[int, int, bool, int]:
    """Return inputs, random features, whether the inputs are also features, and axes."""
    n_inputs = math.prod(shape)
    n_axes = min(AXES, max(1, hidden // 2)) if n_inputs > WIDE else 0
    n_plain = n_axes or n_inputs
    with_plain = 2 * n_plain <= hidden
    return n_inputs, hidden - n_plain if with_plain else hidden, with_plain, n_axes


def flat(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> FlatFeatures:
    """Return ``hidden`` features of flat inputs: the inputs themselves, unless there are too many, and random ones."""
    return FlatFeatures(*_flat_parts(shape, hidden), rng)


def flat_size(shape: tuple[int, ...], hidden: int) -> Size:
    """Return the size of :func:`flat`."""
    n_inputs, n_random, with_plain, n_axes = _flat_parts(shape, hidden)
    n_seen = n_axes or n_inputs
    numbers = n_random * (n_seen + 1) + 2 * n_inputs + n_axes * (n_inputs + 1)
    return Size(numbers, n_random + n_seen * with_plain, n_seen * with_plain)


def _convolutional_parts(shape: tuple[int, ...], hidden: int) -> tuple[Picture, int, bool]:
    """Return the image, the second layer's filters, and whether the first layer's outputs are also features."""
    picture = Picture.of(shape, "encoder 'random'")
    of_first = FIRST * fields(picture, FINE)
    with_first = 2 * of_first <= hidden
    n_filters = (hidden - of_first * with_first) // fields(picture, COARSE)
    return picture, max(1, n_filters), with_first


def convolutional(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> ConvolutionalFeatures:
    """Return about ``hidden`` features of images."""
    return ConvolutionalFeatures(*_convolutional_parts(shape, hidden), rng)


def convolutional_size(shape: tuple[int, ...], hidden: int) -> Size:
    """Return the size of :func:`convolutional`."""
    picture, n_filters, with_first = _convolutional_parts(shape, hidden)
    in_filter = kernel(picture) ** 2
    numbers = FIRST * picture.channels * in_filter + n_filters * (FIRST * in_filter + 1)
    return Size(numbers, n_filters * fields(picture, COARSE) + FIRST * fields(picture, FINE) * with_first)


def kernel(picture: Picture) -> int:
    """Return the side of the filters in pixels."""
    return KERNEL if pooled_by(picture) > 1 else SMALL_KERNEL


def _is_picture(shape: tuple[int, ...]) -> bool:
    is_picture = len(shape) == 2 or (len(shape) == 3 and min(shape[0], shape[2]) <= COLOURS)
    return is_picture and min(sorted(shape)[-2:]) >= SMALLEST


def random(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
    """Return random features for inputs of this shape: convolutional for images, flat for all others."""
    return (convolutional if _is_picture(shape) else flat)(shape, hidden, rng)


def random_size(shape: tuple[int, ...], hidden: int) -> Size:
    """Return the size of :func:`random`."""
    return (convolutional_size if _is_picture(shape) else flat_size)(shape, hidden)


SIZES: dict[Callable[..., nn.Module], Callable[[tuple[int, ...], int], Size]] = {
    random: random_size,
    flat: flat_size,
    convolutional: convolutional_size,
}
