"""Random features against plain loops, what the first task determines, and colour pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.networks.catalogue import BOUND, FIRST, EncoderFactory
from relive.networks.convolution import conv
from relive.networks.encoders import Sizes, encoder_size, make_encoder
from relive.networks.pictures import Picture
from relive.networks.random_features import (
    AXES,
    ConvolutionalFeatures,
    FlatFeatures,
    Size,
    convolutional,
    flat,
    random,
)


def pictures(n: int, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """Smooth pictures as rows."""
    picture = Picture.of(shape, "test")
    noise = torch.rand(n, picture.channels, picture.height, picture.width, generator=stream(seed, "pictures"))
    return picture.rows(avg_pool2d(noise, 3, 1, padding=1))


@pytest.mark.parametrize(("shape", "hidden"), [((9, 12), 1100), ((8, 8, 3), 1100), ((3, 10, 8), 90), ((17, 20), 1100)])
def test_convolutional_features_against_plain_loops(shape: tuple[int, ...], hidden: int) -> None:
    encoder = convolutional(shape, hidden, stream(0, "network"))
    x = pictures(60, shape)
    encoder.adapt(x)
    found = encoder(x[:2])
    w1, w2, b2 = (t.double().numpy() for t in (encoder.weight1, encoder.weight2, encoder.bias2))
    for row, features in zip(x[:2], found, strict=True):
        planes = encoder.picture.planes(row.unsqueeze(0))[0].double().numpy()
        first = np.abs(_convolved(planes, w1, np.zeros(len(w1))))
        if min(planes.shape[1:]) >= 16:
            first = _halved(first)
        second = np.maximum(_convolved(first, w2, b2), 0)
        expected = [*_means(second, 3), *(_means(first, 4) if hidden > 1000 else [])]
        np.testing.assert_allclose(features.numpy() ** 2, expected, rtol=1e-4, atol=1e-5)  # features are square roots


def _convolved(planes: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A convolution with zero padding."""
    _, height, width = planes.shape
    k = weight.shape[-1]
    padded = np.pad(planes, ((0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    out = np.empty((len(weight), height, width))
    for i in range(height):
        for j in range(width):
            out[:, i, j] = (padded[:, i : i + k, j : j + k] * weight).sum((1, 2, 3)) + bias
    return out


def _halved(maps: np.ndarray) -> np.ndarray:
    """Means of 2 × 2 pixels; at an odd edge, of the pixels that exist."""
    height, width = ((n + 1) // 2 for n in maps.shape[1:])
    out = np.empty((len(maps), height, width))
    for i in range(height):
        for j in range(width):
            out[:, i, j] = maps[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean((1, 2))
    return out


def _means(maps: np.ndarray, grid: int) -> list[float]:
    """Means over overlapping fields that cover everything."""
    fields = [_fields(n, min(grid, n), max(1, round(n / (grid + 0.5)))) for n in maps.shape[1:]]
    return [float(m[rows][:, columns].mean()) for m in maps for rows in fields[0] for columns in fields[1]]


def _fields(n: int, parts: int, stride: int) -> list[slice]:
    window = n - (parts - 1) * stride
    assert window >= stride, "no pixel is left out"
    return [slice(k * stride, k * stride + window) for k in range(parts)]


def test_filters_are_as_smooth_as_the_pictures_and_none_is_a_patch() -> None:
    """Pixels of noise are uncorrelated with their neighbours; a smooth picture's filters are correlated."""
    smooth, rough = (convolutional((16, 16), 16, stream(0, "network")) for _ in range(2))
    smooth.adapt(avg_pool2d(torch.rand(200, 1, 16, 16, generator=stream(0, "p")), 5, 1, padding=2).flatten(1))
    rough.adapt(torch.rand(200, 256, generator=stream(0, "p")))

    def neighbours(encoder: ConvolutionalFeatures) -> float:
        w = encoder.weight1[:, 0]
        return float(torch.corrcoef(torch.stack([w[:, :, 1:].flatten(), w[:, :, :-1].flatten()]))[0, 1])

    assert neighbours(smooth) > 0.6 > 0.3 > neighbours(rough)


def test_every_filter_is_silent_somewhere_and_speaks_somewhere() -> None:
    encoder = convolutional((12, 12), 2 * 512 + 90, stream(0, "network"))
    x = pictures(300, (12, 12))
    encoder.adapt(x)
    assert encoder(x).shape == (300, 512 + 9 * 66)
    first = encoder._first(encoder.picture.planes(x))
    speaks = (conv2d(first, encoder.weight2, encoder.bias2, padding=1) > 0).double().mean((0, 2, 3))
    assert 0.03 < speaks.min() < speaks.max() < 0.75, "thresholds are quantiles between 0.3 and 0.95"
    assert encoder.weight1.shape == (FIRST, 1, 3, 3)


def test_flat_features_are_scaled_by_the_first_task_alone() -> None:
    rng = stream(0, "x")
    x = 100 + 5 * torch.randn(2000, 3, generator=rng)
    x[:, 2] = 7.0  # constant
    x[:2] = 1e6  # two outliers: median and deciles do not change
    encoder = flat((3,), 50, stream(0, "network"))
    encoder.adapt(x)
    assert encoder.middle.tolist() == pytest.approx([100, 100, 7], abs=1)  # five standard errors of 1,000 samples
    assert encoder.spread[:2].tolist() == pytest.approx([5, 5], rel=0.1)
    assert encoder.spread[2] > 0
    h = encoder(torch.tensor([[100.0, 105.0, 7.0], [1e9, 100.0, 7.0]]))
    z = h[:, :3]
    assert z[0].tolist() == pytest.approx([0, 1, 0], abs=0.2)
    assert z[1, 0] == pytest.approx(BOUND * (1 + np.log((1e9 - 100) / 5 / BOUND)), rel=0.05)  # logarithmic
    torch.testing.assert_close(h[:, 3:], (z @ encoder.weight.T + encoder.bias).clamp_min(0))


def test_inputs_that_are_too_many_are_not_among_the_features() -> None:
    assert flat((10,), 50, stream(0, "n"))(torch.zeros(2, 10)).shape == (2, 50)
    few = flat((40,), 50, stream(0, "n"))
    assert not few.n_plain
    assert few(torch.zeros(2, 40)).shape == (2, 50)


def wide_inputs(n: int) -> Tensor:
    """Inputs of very different variances, in a 30-dimensional subspace of 600 plus a little noise."""
    rng = stream(0, "wide")
    plane = torch.randn(30, 600, generator=rng) * torch.logspace(0, -2, 30).unsqueeze(1)
    return 3 + torch.randn(n, 30, generator=rng) @ plane + 1e-3 * torch.randn(n, 600, generator=rng)


def test_wide_inputs_are_seen_along_the_axes_of_the_first_task() -> None:
    """Against a singular value decomposition of the inputs, bounded one by one."""
    encoder = flat((600,), 250, stream(0, "network"))
    x = wide_inputs(900)
    encoder.adapt(x)
    middle, spread = encoder.middle.double().numpy(), encoder.spread.double().numpy()

    z = (x.double().numpy() - middle) / spread
    bounded = np.sign(z) * BOUND * (1 + np.log(np.maximum(np.abs(z), BOUND) / BOUND))
    own = np.where(np.abs(z) > BOUND, bounded, z) * spread
    mean = own.mean(0)
    _, singular, axes = np.linalg.svd(own - mean, full_matrices=False)
    variance = singular[:AXES] ** 2 / len(x)
    u = (own - mean) @ axes[:AXES].T * variance**0.25  # standard deviation λ^(3/4)
    u /= np.sqrt((u**2).mean())
    found = encoder(x).double().numpy()
    assert found.shape == (900, 250)
    signs = np.sign((found[:, :AXES] * u).sum(0))
    np.testing.assert_allclose(found[:, :30] * signs[:30], u[:, :30], atol=2e-2)
    h = np.maximum(found[:, :AXES] @ encoder.weight.double().numpy().T + encoder.bias.double().numpy(), 0)
    np.testing.assert_allclose(found[:, AXES:], h, rtol=1e-3, atol=1e-3)
    far = encoder(1e6 * x[:5])
    assert far.isfinite().all()
    assert far.abs().max() < 100 * encoder(x).abs().max(), "like a logarithm"


@pytest.mark.parametrize("n", [1, 4])
def test_of_few_wide_inputs_the_axes_are_random(n: int) -> None:
    encoder = flat((600,), 250, stream(0, "network"))
    encoder.adapt(wide_inputs(n))
    later = encoder(wide_inputs(50))
    assert later.isfinite().all()
    assert (later[:, :AXES].std(0) > 1e-4).all(), "none is blind"


def test_of_few_features_half_are_axes() -> None:
    assert flat((600,), 20, stream(0, "n")).n_plain == 10
    assert flat((600,), 1, stream(0, "n"))(torch.zeros(2, 600)).shape == (2, 1)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((28, 28), ConvolutionalFeatures),
        ((8, 8), ConvolutionalFeatures),
        ((32, 32, 3), ConvolutionalFeatures),
        ((3, 32, 32), ConvolutionalFeatures),
        ((4, 4), FlatFeatures),
        ((1, 30), FlatFeatures),
        ((20,), FlatFeatures),
    ],
)
def test_pictures_get_convolutions(shape: tuple[int, ...], kind: type) -> None:
    assert type(random(shape, 600, stream(0, "network"))) is kind


def test_colours_may_stand_first_or_last() -> None:
    first = torch.rand(4, 3, 8, 6, generator=stream(0, "x"))
    last = first.permute(0, 2, 3, 1)
    one, other = (conv(shape, 10, stream(0, "network")) for shape in ((3, 8, 6), (8, 6, 3)))
    torch.testing.assert_close(one(first.flatten(1)), other(last.flatten(1)))
    z = torch.randn(2, 5, generator=stream(0, "z"))
    a, b = (encoder.make_decoder(5, stream(0, "decoder"))(z) for encoder in (one, other))
    torch.testing.assert_close(a.view(2, 3, 8, 6).permute(0, 2, 3, 1).flatten(1), b)
    with pytest.raises(InputError, match=r"encoder 'conv' needs images, but an input's shape is \(20,\)"):
        conv((20,), 10, stream(0, "network"))


@pytest.mark.parametrize("hidden", [1, 7, 50, 300, 1700])
@pytest.mark.parametrize(
    "shape", [(3,), (20,), (512,), (513,), (900,), (5, 5), (8, 8), (28, 28), (9, 33), (3, 16, 15), (20, 20, 3)]
)
@pytest.mark.parametrize("make", [flat, random])
def test_sizes_are_those_of_what_would_be_made(make: EncoderFactory, shape: tuple[int, ...], hidden: int) -> None:
    inputs = int(np.prod(shape))
    sizes = Sizes(inputs=inputs, units=2, hidden=hidden, latent=2, shape=shape, encoder=make)
    encoder, n_features = make_encoder(sizes, stream(0, "network"))
    plain = encoder.n_plain if isinstance(encoder, FlatFeatures) else 0
    numbers = sum(t.numel() for t in encoder.state_dict().values())
    assert encoder_size(sizes) == Size(numbers, n_features, plain)


def test_an_encoder_of_one_s_own_is_made_to_see_its_size() -> None:
    sizes = Sizes(inputs=4, units=2, hidden=7, latent=2, encoder=lambda shape, hidden, rng: torch.nn.Linear(4, hidden))
    assert encoder_size(sizes) == Size(35, 7)
