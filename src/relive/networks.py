"""The paper's networks: a classifier, a symmetrical VAE, and a VAE with a softmax (RtF). They know nothing of tasks.

classifier   x → H → H → units
VAE          x → H → H → (μ, log σ²) → z → H → H → x̃
RtF          both at once: the classifier's two hidden layers are the encoder
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as affine

from relive.blocks import block_sizes
from relive.likelihoods import Likelihood, likelihood_of
from relive.seeds import fork


@dataclass(frozen=True)
class Sizes:
    """How large a network is: numbers per input, units per hidden layer, latent variables, output units.

    A generator also needs to know what kind of numbers the inputs are: a name in ``LIKELIHOODS``.
    """

    inputs: int
    hidden: int
    latent: int
    units: int
    likelihood: str = "bernoulli"


def linear(n_in: int, n_out: int, rng: torch.Generator) -> nn.Linear:
    """Return a linear layer with weights and biases from U(±1/√n_in).

    It is drawn unit by unit, so a layer that gets more units later has the same numbers as one made large.

    >>> small, large = (linear(3, n, torch.Generator().manual_seed(0)) for n in (2, 5))
    >>> torch.equal(small.weight, large.weight[:2])
    True
    """
    layer = nn.Linear(n_in, n_out, device="meta")  # without drawing numbers of its own
    bound = 1 / math.sqrt(n_in)
    drawn = torch.rand(n_out, n_in + 1, generator=rng) * (2 * bound) - bound
    layer.weight = nn.Parameter(drawn[:, :-1].contiguous())  # to_empty would load PyTorch's compiler
    layer.bias = nn.Parameter(drawn[:, -1].contiguous())
    return layer


class Head(nn.Module):
    """The output layer, a matrix product per block of units (``relive.blocks``)."""

    def __init__(self, n_in: int, n_out: int, rng: torch.Generator) -> None:
        super().__init__()
        layer = linear(n_in, n_out, rng)
        self.weight, self.bias = layer.weight, layer.bias
        self.blocks = block_sizes(n_out)

    def forward(self, h: Tensor) -> Tensor:
        """Return the logits, (n, units)."""
        if len(self.blocks) == 1:
            return affine(h, self.weight, self.bias)
        parts = zip(torch.split(self.weight, self.blocks), torch.split(self.bias, self.blocks), strict=True)
        return torch.cat([affine(h, weight, bias) for weight, bias in parts], dim=1)


class Encoder(nn.Module):
    """Two hidden layers with ReLU."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.layer1 = linear(sizes.inputs, sizes.hidden, rng)
        self.layer2 = linear(sizes.hidden, sizes.hidden, rng)

    def forward(self, x: Tensor) -> Tensor:
        """Return the second layer's activations, (n, hidden)."""
        h: Tensor = self.layer2(self.layer1(x).relu_()).relu_()
        return h


class Feedback(nn.Module):
    """From hidden activations through stochastic latent variables back to the input."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.n_latent = sizes.latent
        self.latent = linear(sizes.hidden, 2 * sizes.latent, rng)  # μ and log σ², side by side
        self.layer1 = linear(sizes.latent, sizes.hidden, rng)
        self.layer2 = linear(sizes.hidden, sizes.hidden, rng)
        self.output = linear(sizes.hidden, sizes.inputs, rng)
        self.likelihood = likelihood_of(sizes.likelihood, sizes.inputs)

    def forward(self, h: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return the reconstruction (n, inputs) as the likelihood reads it, μ and log σ² (n, latent)."""
        mu, logvar = self.latent(h).chunk(2, dim=1)
        epsilon = torch.randn(mu.shape, generator=rng)
        return self.decode(mu + (0.5 * logvar).exp() * epsilon), mu, logvar

    def decode(self, z: Tensor) -> Tensor:
        """Return the likelihood's parameters: the pixels' logits, or the features' means, (n, inputs)."""
        outputs: Tensor = self.output(self.layer2(self.layer1(z).relu_()).relu_())
        return outputs

    @torch.no_grad()
    def sample(self, n: int, rng: torch.Generator) -> Tensor:
        """Draw z from the prior and return what it generates, (n, inputs)."""
        return self.likelihood.draw(self.decode(torch.randn(n, self.n_latent, generator=rng)), rng)


class Classifier(nn.Module):
    """The main model of every method: an encoder and an output layer."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.encoder = Encoder(sizes, rng)
        self.head = Head(sizes.hidden, sizes.units, fork(rng))  # so its size changes nothing else

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of all output units, (n, units)."""
        logits: Tensor = self.head(self.encoder(x))
        return logits


class VAE(nn.Module):
    """The separate generator of DGR."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.encoder = Encoder(sizes, rng)
        self.feedback = Feedback(sizes, rng)


@dataclass(frozen=True)
class Answers:
    """What a generative classifier says of inputs: classes, and how it would draw them again."""

    logits: Tensor  # (n, units)
    reconstruction: Tensor  # (n, inputs), to be read by the likelihood
    mu: Tensor  # (n, latent)
    logvar: Tensor  # (n, latent)


class GenerativeClassifier(Classifier, ABC):
    """A classifier that can also generate inputs."""

    @abstractmethod
    def answer(self, x: Tensor, rng: torch.Generator) -> Answers:
        """Classify and reconstruct."""

    @abstractmethod
    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n generated inputs, (n, inputs)."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """How its reconstructions are to be read."""


class FeedbackClassifier(GenerativeClassifier):
    """RtF's network: the classifier's hidden layers are the encoder of a VAE; one pass does both."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__(sizes, rng)
        self.feedback = Feedback(sizes, rng)

    def answer(self, x: Tensor, rng: torch.Generator) -> Answers:
        h = self.encoder(x)
        return Answers(self.head(h), *self.feedback(h, rng))

    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        return self.feedback.sample(n, rng)

    @property
    def likelihood(self) -> Likelihood:
        return self.feedback.likelihood


class ClassifierWithVAE(GenerativeClassifier):
    """DGR's pair: a classifier, and beside it a generator that shares no parameter with it."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__(sizes, rng)
        self.vae = VAE(sizes, rng)

    def answer(self, x: Tensor, rng: torch.Generator) -> Answers:
        return Answers(self(x), *self.vae.feedback(self.vae.encoder(x), rng))

    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        return self.vae.feedback.sample(n, rng)

    @property
    def likelihood(self) -> Likelihood:
        return self.vae.feedback.likelihood
