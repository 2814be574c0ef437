"""Random features against plain loops, what the first task decides, and pictures in colour."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.networks.convolution import conv
from relive.networks.pictures import Picture
from relive.networks.random_features import (
    BOUND,
    FIRST,
    ConvolutionalFeatures,
    FlatFeatures,
    convolutional,
    flat,
    random,
)


def pictures(n: int, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """Smooth pictures as rows."""
    picture = Picture.of(shape, "test")
    noise = torch.rand(n, picture.channels, picture.height, picture.width, generator=stream(seed, "pictures"))
    return picture.rows(avg_pool2d(noise, 3, 1, padding=1))


@pytest.mark.parametrize("shape", [(9, 12), (8, 8, 3), (3, 10, 8)])
def test_convolutional_features_against_plain_loops(shape: tuple[int, ...]) -> None:
    encoder = convolutional(shape, 48, stream(0, "network"))
    x = pictures(60, shape)
    encoder.adapt(x)
    found = encoder(x[:2])
    picture = encoder.picture
    w1, b1, w2, b2 = (t.double().numpy() for t in (encoder.weight1, encoder.bias1, encoder.weight2, encoder.bias2))
    for row, features in zip(x[:2], found, strict=True):
        planes = picture.planes(row.unsqueeze(0))[0].double().numpy()
        first = _halved(_convolved(planes, w1, b1))
        second = _convolved(first, w2, b2)
        rows, columns = encoder.grid
        expected = [
            second[f, r][:, c].mean()
            for f in range(len(w2))
            for r in _fields(second.shape[1], rows)
            for c in _fields(second.shape[2], columns)
        ]
        np.testing.assert_allclose(features.numpy(), expected, rtol=1e-4, atol=1e-5)


def _convolved(planes: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A 5 × 5 convolution with zeros around, and ReLU."""
    _, height, width = planes.shape
    padded = np.pad(planes, ((0, 0), (2, 2), (2, 2)))
    out = np.empty((len(weight), height, width))
    for f in range(len(weight)):
        for i in range(height):
            for j in range(width):
                out[f, i, j] = max(0.0, (padded[:, i : i + 5, j : j + 5] * weight[f]).sum() + bias[f])
    return out


def _halved(maps: np.ndarray) -> np.ndarray:
    """Means of 2 × 2 pixels; at an odd edge of those that are there."""
    height, width = ((n + 1) // 2 for n in maps.shape[1:])
    out = np.empty((len(maps), height, width))
    for i in range(height):
        for j in range(width):
            out[:, i, j] = maps[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean((1, 2))
    return out


def _fields(n: int, parts: int) -> list[slice]:
    """The pixels that each of ``parts`` fields covers, which may overlap."""
    return [slice(k * n // parts, -(-(k + 1) * n // parts)) for k in range(parts)]


def test_filters_are_as_smooth_as_the_pictures_and_none_is_a_patch() -> None:
    """Noise has no neighbours; a smooth picture's filters have."""
    smooth, rough = (convolutional((12, 12), 16, stream(0, "network")) for _ in range(2))
    smooth.adapt(avg_pool2d(torch.rand(200, 1, 12, 12, generator=stream(0, "p")), 5, 1, padding=2).flatten(1))
    rough.adapt(torch.rand(200, 144, generator=stream(0, "p")))

    def neighbours(encoder: ConvolutionalFeatures) -> float:
        w = encoder.weight1[:, 0]
        return float(torch.corrcoef(torch.stack([w[:, :, 1:].flatten(), w[:, :, :-1].flatten()]))[0, 1])

    assert neighbours(smooth) > 0.6 > 0.3 > neighbours(rough)


def test_every_filter_is_silent_somewhere_and_speaks_somewhere() -> None:
    encoder = convolutional((12, 12), 160, stream(0, "network"))
    x = pictures(300, (12, 12))
    encoder.adapt(x)
    features = encoder(x).view(300, 10, 16)  # (pictures, filters, fields)
    speaks = (features > 0).double().mean((0, 2))
    assert speaks.min() > 0.05
    assert speaks.max() < 1
    assert encoder.weight1.shape == (FIRST, 1, 5, 5)


def test_flat_features_are_scaled_by_the_first_task_alone() -> None:
    rng = stream(0, "x")
    x = 100 + 5 * torch.randn(2000, 3, generator=rng)
    x[:, 2] = 7.0  # does not vary
    x[:2] = 1e6  # two samples that are far off: median and deciles do not care
    encoder = flat((3,), 50, stream(0, "network"))
    encoder.adapt(x)
    assert encoder.middle.tolist() == pytest.approx([100, 100, 7], abs=0.5)
    assert encoder.spread[:2].tolist() == pytest.approx([5, 5], rel=0.1)
    assert encoder.spread[2] > 0
    h = encoder(torch.tensor([[100.0, 105.0, 7.0], [1e9, 100.0, 7.0]]))
    z = h[:, :3]
    assert z[0].tolist() == pytest.approx([0, 1, 0], abs=0.2)
    assert z[1, 0] == pytest.approx(BOUND * (1 + np.log((1e9 - 100) / 5 / BOUND)), rel=0.05)  # like a logarithm
    torch.testing.assert_close(h[:, 3:], (z @ encoder.weight.T + encoder.bias).clamp_min(0))


def test_inputs_that_are_too_many_are_not_among_the_features() -> None:
    assert flat((10,), 50, stream(0, "n"))(torch.zeros(2, 10)).shape == (2, 50)
    few = flat((40,), 50, stream(0, "n"))
    assert not few.with_inputs
    assert few(torch.zeros(2, 40)).shape == (2, 50)


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
    assert type(random(shape, 64, stream(0, "network"))) is kind


def test_colours_may_stand_first_or_last() -> None:
    first = torch.rand(4, 3, 8, 6, generator=stream(0, "x"))
    last = first.permute(0, 2, 3, 1)
    one, other = (conv(shape, 10, stream(0, "network")) for shape in ((3, 8, 6), (8, 6, 3)))
    torch.testing.assert_close(one(first.flatten(1)), other(last.flatten(1)))
    z = torch.randn(2, 5, generator=stream(0, "z"))
    a, b = (encoder.make_decoder(5, stream(0, "decoder"))(z) for encoder in (one, other))
    torch.testing.assert_close(a.view(2, 3, 8, 6).permute(0, 2, 3, 1).flatten(1), b)
    with pytest.raises(InputError, match=r"encoder 'conv' is for pictures, and an input's shape is \(20,\)"):
        conv((20,), 10, stream(0, "network"))
