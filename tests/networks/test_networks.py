"""The networks against explicit matrix products, their sizes counted by hand, and their initial weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from relive._util.seeds import stream
from relive.networks import (
    VAE,
    Classifier,
    ClassifierWithVAE,
    FeedbackClassifier,
    ReconstructingClassifier,
    Sizes,
    linear,
)
from tests import plain

SMALL = Sizes(inputs=7, hidden=6, latent=3, units=4)


def size(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("inputs", "hidden", "units", "classifier"),
    [
        (784, 400, 10, 784 * 400 + 400 + 400 * 400 + 400 + 400 * 10 + 10),  # split, Task- and Class-IL
        (784, 400, 2, 784 * 400 + 400 + 400 * 400 + 400 + 400 * 2 + 2),  # split, Domain-IL
        (1024, 1000, 100, 1024 * 1000 + 1000 + 1000 * 1000 + 1000 + 1000 * 100 + 100),  # permuted, Task- and Class-IL
    ],
)
def test_the_paper_s_networks_have_their_size(inputs: int, hidden: int, units: int, classifier: int) -> None:
    sizes, rng = Sizes(inputs, hidden, 100, units), stream(0, "network")
    encoder = inputs * hidden + hidden + hidden * hidden + hidden
    feedback = (
        2 * (hidden * 100 + 100)  # μ and log σ²
        + (100 * hidden + hidden)
        + (hidden * hidden + hidden)
        + (hidden * inputs + inputs)
    )
    assert size(Classifier(sizes, rng)) == classifier
    assert size(VAE(sizes, rng)) == encoder + feedback
    assert size(FeedbackClassifier(sizes, rng)) == classifier + feedback
    assert size(ClassifierWithVAE(sizes, rng)) == classifier + encoder + feedback


@pytest.mark.parametrize("n_in", [1, 16, 784])
def test_a_layer_starts_uniform_within_its_bound(n_in: int) -> None:
    bound = 1 / math.sqrt(n_in)
    layer = linear(n_in, 4000, stream(0, "network"))
    for p in (layer.weight, layer.bias):
        assert p.dtype == torch.float32
        assert p.requires_grad
        p = p.detach()
        assert p.abs().max() <= bound
        assert p.abs().max() > 0.99 * bound  # the whole range is used
        assert abs(float(p.mean())) < 0.05 * bound
        assert float(p.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)  # the uniform distribution's


def test_a_layer_starts_as_torch_s_own() -> None:
    ours, torch_s = linear(50, 2000, stream(0, "network")), nn.Linear(50, 2000)
    for a, b in ((ours.weight, torch_s.weight), (ours.bias, torch_s.bias)):
        assert a.shape == b.shape
        a, b = a.detach().flatten().sort().values, b.detach().flatten().sort().values
        assert float((a - b).abs().max()) < 0.03  # the same distribution, quantile by quantile


def test_the_seed_decides_and_nothing_else() -> None:
    nets = []
    for seed in (3, 3, 4):
        torch.manual_seed(torch.seed() % 1000)
        nets.append(plain.parameters(ClassifierWithVAE(SMALL, stream(seed, "network"))))
    assert all(torch.equal(nets[0][name], nets[1][name]) for name in nets[0])
    assert not any(torch.equal(nets[0][name], nets[2][name]) for name in nets[0])
    values = torch.cat([t.flatten() for name, t in nets[0].items() if name.endswith("encoder.layer1.weight")])
    assert len(set(values.tolist())) == len(values)  # the two encoders differ


def test_all_methods_start_with_the_same_classifier() -> None:
    """So that runs of different methods with one seed can be compared pairwise."""
    nets = [kind(SMALL, stream(0, "network")) for kind in (Classifier, FeedbackClassifier, ClassifierWithVAE)]
    first = plain.parameters(nets[0])
    for net in nets[1:]:
        other = plain.parameters(net)
        assert all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("kind", [Classifier, FeedbackClassifier, ClassifierWithVAE])
def test_more_output_units_change_nothing_else(kind: type[Classifier]) -> None:
    small = plain.parameters(kind(SMALL, stream(0, "network")))
    large = plain.parameters(kind(replace(SMALL, units=9), stream(0, "network")))
    for name, p in small.items():
        assert torch.equal(p, large[name][: len(p)])


def test_classifier() -> None:
    net = Classifier(SMALL, stream(0, "network"))
    x = torch.rand(5, 7, generator=stream(0, "x"))
    expected = plain.logits({n: t.double() for n, t in plain.parameters(net).items()}, x)
    torch.testing.assert_close(net(x).double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [FeedbackClassifier, ClassifierWithVAE])
def test_answers(kind: type[ReconstructingClassifier]) -> None:
    net = kind(SMALL, stream(0, "network"))
    prefix = "vae." if kind is ClassifierWithVAE else ""
    theta = {n: t.double() for n, t in plain.parameters(net).items()}
    x = torch.rand(5, 7, generator=stream(0, "x"))
    answers = net.answer(x, stream(0, "noise"))
    epsilon = torch.randn(5, 3, generator=stream(0, "noise"))
    out = plain.dense(theta, f"{prefix}feedback.latent", plain.hidden(theta, x, prefix))
    pixels = plain.decode(theta, out[:, :3] + (out[:, 3:] / 2).exp() * epsilon, prefix)
    for got, expected in [
        (answers.logits, plain.logits(theta, x)),
        (net(x), plain.logits(theta, x)),  # prediction needs no noise
        (answers.mu, out[:, :3]),
        (answers.logvar, out[:, 3:]),
        (answers.reconstruction.sigmoid(), pixels),
    ]:
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [FeedbackClassifier, ClassifierWithVAE])
def test_generated_inputs(kind: type[ReconstructingClassifier]) -> None:
    net = kind(SMALL, stream(0, "network"))
    prefix = "vae." if kind is ClassifierWithVAE else ""
    x = net.generate(6, stream(1, "noise"))
    z = torch.randn(6, 3, generator=stream(1, "noise"))
    expected = plain.decode({n: t.double() for n, t in plain.parameters(net).items()}, z, prefix)
    torch.testing.assert_close(x.double(), expected, rtol=1e-5, atol=1e-6)
    assert not x.requires_grad
    assert not torch.equal(x, net.generate(6, stream(2, "noise")))


def test_the_separate_generator_shares_no_parameter() -> None:
    net = ClassifierWithVAE(SMALL, stream(0, "network"))
    answers = net.answer(torch.rand(5, 7, generator=stream(0, "x")), stream(0, "noise"))
    answers.logits.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
    assert all((p.grad is not None) == (not name.startswith("vae.")) for name, p in net.named_parameters())
    net.zero_grad()
    (answers.reconstruction.sum() + answers.mu.sum() + answers.logvar.sum()).backward()  # type: ignore[no-untyped-call]
    assert all((p.grad is not None) == name.startswith("vae.") for name, p in net.named_parameters())


def test_feedback_trains_the_classifier_s_own_hidden_layers() -> None:
    net = FeedbackClassifier(SMALL, stream(0, "network"))
    net.answer(torch.rand(5, 7, generator=stream(0, "x")), stream(0, "noise")).reconstruction.sum().backward()  # type: ignore[no-untyped-call]
    assert all((p.grad is not None) == (not name.startswith("head")) for name, p in net.named_parameters())
