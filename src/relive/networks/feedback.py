"""From features through stochastic latent variables back to the input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from relive._util.errors import InputError
from relive._util.seeds import drawing_from
from relive.networks.encoders import Sizes, linear, outputs_of
from relive.networks.likelihoods import Likelihood, likelihood_of


def latent(mu: Tensor, logvar: Tensor) -> Tensor:
    r"""Return :math:`-\tfrac12\sum_j (1 + \log\sigma_j^2 - \mu_j^2 - \sigma_j^2)`: (n,)."""
    return -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1)


@runtime_checkable
class BringsDecoder(Protocol):
    """An encoder that comes with its own decoder."""

    def make_decoder(self, latent: int, rng: torch.Generator) -> nn.Module:
        """Return a module from (n, latent) to the likelihood's parameters, (n, inputs) or of the input's shape."""


class Feedback(nn.Module, ABC):
    """From features through stochastic latent variables back to the input."""

    likelihood: Likelihood
    gated: list[int]  # units of each hidden layer that can be gated

    def __init__(self, n_features: int, n_latent: int, rng: torch.Generator) -> None:
        super().__init__()
        self.n_latent = n_latent
        self.latent = linear(n_features, 2 * n_latent, rng)  # μ and log σ², side by side

    def forward(self, h: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return the reconstruction (n, inputs) as the likelihood's parameters, μ and log σ² (n, latent)."""
        z, mu, logvar = self.encode(h, rng)
        return self.decode(z), mu, logvar

    def encode(self, h: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return z = μ + σ ε with ε from N(0, 1), μ and log σ²: (n, latent) each."""
        mu, logvar = self.latent(h).chunk(2, dim=1)
        epsilon = torch.randn(mu.shape, generator=rng).to(mu.device)
        return mu + (0.5 * logvar).exp() * epsilon, mu, logvar

    @abstractmethod
    def decode(self, z: Tensor, gates: Sequence[Tensor] = ()) -> Tensor:
        """Return the likelihood's parameters: the pixels' logits, or the features' means, (n, inputs).

        ``gates`` multiply the hidden layers' activations, (n, units) for each of ``gated``, or none.
        """

    @torch.no_grad()
    def sample(self, n: int, rng: torch.Generator) -> Tensor:
        """Draw z from the prior and return what it generates, (n, inputs)."""
        z = torch.randn(n, self.n_latent, generator=rng).to(self.latent.weight.device)
        return self.likelihood.draw(self.decode(z), rng)


class LayeredFeedback(Feedback):
    """The paper's decoder, the default for encoders without their own: two hidden layers with ReLU."""

    def __init__(self, sizes: Sizes, n_features: int, rng: torch.Generator) -> None:
        super().__init__(n_features, sizes.latent, rng)
        self.layer1 = linear(sizes.latent, sizes.hidden, rng)
        self.layer2 = linear(sizes.hidden, sizes.hidden, rng)
        self.output = linear(sizes.hidden, sizes.inputs, rng)
        self.likelihood = likelihood_of(sizes.likelihood, sizes.inputs)
        self.gated = [sizes.hidden, sizes.hidden]

    def decode(self, z: Tensor, gates: Sequence[Tensor] = ()) -> Tensor:
        h = z
        for i, layer in enumerate((self.layer1, self.layer2)):
            h = layer(h).relu_()
            if gates:
                h = gates[i] * h
        outputs: Tensor = self.output(h)
        return outputs


class OwnFeedback(Feedback):
    """A decoder that comes with the encoder; its hidden layers are not gated."""

    def __init__(self, sizes: Sizes, encoder: BringsDecoder, n_features: int, rng: torch.Generator) -> None:
        super().__init__(n_features, sizes.latent, rng)
        with drawing_from(rng):
            self.decoder = encoder.make_decoder(sizes.latent, rng)
            outputs = outputs_of(self.decoder, sizes.latent).flatten(1)
        if outputs.shape != (2, sizes.inputs):
            raise InputError(
                f"the encoder's decoder returns {tuple(outputs.shape)} for two rows of latent variables: it "
                f"must return (2, {sizes.inputs}), as many numbers as an input has"
            )
        self.likelihood = likelihood_of(sizes.likelihood, sizes.inputs)
        self.gated = []

    def decode(self, z: Tensor, gates: Sequence[Tensor] = ()) -> Tensor:
        outputs: Tensor = self.decoder(z).flatten(1)
        return outputs


def make_feedback(sizes: Sizes, encoder: nn.Module, n_features: int, rng: torch.Generator) -> Feedback:
    """Return the feedback connections for an encoder: with its own decoder, or the paper's."""
    if isinstance(encoder, BringsDecoder):
        return OwnFeedback(sizes, encoder, n_features, rng)
    return LayeredFeedback(sizes, n_features, rng)
