"""The convolutional encoder, against explicit sums, and its decoder."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.networks import ClassifierWithVAE, FeedbackClassifier, Sizes
from relive.networks.convolution import Conv, conv
from relive.networks.pictures import Picture
from tests import plain
from tests.networks.learners import Shape, batch_norm, same


@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (7, 10), (1, 1), (9, 6, 3), (5, 5, 1)])
def test_the_convolutional_encoder_and_its_way_back(shape: Shape) -> None:
    encoder = conv(shape, 20, stream(0, "network"))
    x = torch.rand(3, math.prod(shape))
    assert encoder(x).shape == (3, 20)
    assert torch.equal(encoder(x), encoder(x.reshape(3, *shape)))
    assert encoder.make_decoder(6, stream(0, "decoder"))(torch.rand(3, 6)).shape == (3, math.prod(shape))


def test_it_is_two_convolutions() -> None:
    encoder = conv((6, 5, 2), 4, stream(0, "network"))
    x = torch.rand(2, 60, generator=stream(0, "x"))
    picture = torch.stack([x[:, ::2], x[:, 1::2]], dim=1).reshape(2, 2, 6, 5)  # a pixel's channels are adjacent
    for layer in (encoder.conv1, encoder.conv2):
        assert layer.bias is not None
        padded = nn.functional.pad(picture, (1, 1, 1, 1))
        height, width = (picture.shape[2] + 1) // 2, (picture.shape[3] + 1) // 2
        out = torch.empty(2, len(layer.weight), height, width)
        for i in range(height):
            for j in range(width):
                patch = padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                out[:, :, i, j] = (patch.unsqueeze(1) * layer.weight).sum((2, 3, 4)) + layer.bias
        picture = out.clamp(min=0)
    expected = (picture.flatten(1) @ encoder.layer.weight.T + encoder.layer.bias).clamp(min=0)
    torch.testing.assert_close(encoder(x), expected)


def test_its_decoder_has_a_pixel_s_colours_side_by_side() -> None:
    decoder = conv((5, 4, 3), 20, stream(0, "network")).make_decoder(6, stream(0, "decoder"))
    for name, p in decoder.named_parameters():
        torch.nn.init.zeros_(p)
        if name == "deconv.bias":
            p.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert decoder(torch.rand(2, 6)).tolist() == [[1, 2, 3] * 20] * 2


@pytest.mark.parametrize("shape", [(64,), (2, 2, 4, 4)])
def test_it_needs_pictures(shape: Shape) -> None:
    with pytest.raises(InputError, match="needs images, but an input's shape is"):
        conv(shape, 20, stream(0, "network"))


def test_the_seed_decides_its_first_weights() -> None:
    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=conv)
    a, b, c = (plain.parameters(ClassifierWithVAE(sizes, stream(seed, "network"))) for seed in (3, 3, 4))
    assert same(a, b)
    assert not any(torch.equal(a[name], c[name]) for name in a)
    assert not torch.equal(a["encoder.conv1.weight"], a["vae.encoder.conv1.weight"])


def test_a_generator_uses_the_decoder_that_its_encoder_brings() -> None:
    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=conv)
    for net in (FeedbackClassifier(sizes, stream(0, "network")), ClassifierWithVAE(sizes, stream(0, "network"))):
        assert any("deconv" in name for name, _ in net.named_parameters())
        assert net.generate(5, stream(0, "noise")).shape == (5, 64)
    own = FeedbackClassifier(Sizes(64, 9, 3, 4, shape=(8, 8), encoder=batch_norm), stream(0, "network"))
    assert "feedback.output.weight" in own.state_dict()


def test_a_decoder_of_another_size() -> None:
    class Wrong(Conv):
        def make_decoder(self, latent: int, rng: torch.Generator) -> nn.Module:
            return nn.Linear(latent, 3)

    sizes = Sizes(64, 9, 3, 4, shape=(8, 8), encoder=lambda shape, hidden, rng: Wrong(Picture(1, 8, 8), hidden))
    with pytest.raises(InputError, match=r"decoder returns \(2, 3\) .* it must return \(2, 64\)"):
        FeedbackClassifier(sizes, stream(0, "network"))
