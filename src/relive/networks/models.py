"""A classifier, a VAE, and a VAE with a softmax (RtF), around any encoder. They know nothing about tasks.

classifier   x → encoder → units
VAE          x → encoder → (μ, log σ²) → z → decoder → x̃
RtF          both at once, with one encoder

The paper's encoder and decoder have two hidden layers each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from relive._util.seeds import fork
from relive.networks.encoders import Sizes, make_encoder
from relive.networks.feedback import make_feedback
from relive.networks.head import Head
from relive.networks.likelihoods import Likelihood


class Classifier(nn.Module):
    """The main model of every method: an encoder and an output layer."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.encoder, self.n_features = make_encoder(sizes, rng)
        self.head = Head(self.n_features, sizes.units, fork(rng))  # its size does not affect other draws

    def idle(self, units: int) -> int:
        """Return how many trainable parameters are never trained if that many units are never active."""
        return units * (self.n_features + 1) if self.head.weight.requires_grad else 0

    def check_state(self, state: dict[str, Tensor]) -> None:
        """Refuse what this network cannot have held; shapes, types and finiteness are checked for every network."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of all output units, (n, units)."""
        logits: Tensor = self.head(self.encoder(x))
        return logits


class VAE(nn.Module):
    """The separate generator of DGR."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__()
        self.encoder, n_features = make_encoder(sizes, rng)
        self.feedback = make_feedback(sizes, self.encoder, n_features, rng)


@dataclass(frozen=True)
class Answers:
    """A generative classifier's outputs: logits, and the reconstruction."""

    logits: Tensor  # (n, units)
    reconstruction: Tensor  # (n, inputs), the likelihood's parameters
    mu: Tensor  # (n, latent)
    logvar: Tensor  # (n, latent)


class GenerativeClassifier(Classifier, ABC):
    """A classifier that can also generate inputs."""

    @abstractmethod
    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n generated inputs, (n, inputs)."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """How its reconstructions are interpreted."""


class ReconstructingClassifier(GenerativeClassifier, ABC):
    """A classifier that can also generate inputs, and classifies and reconstructs in one pass."""

    @abstractmethod
    def answer(self, x: Tensor, rng: torch.Generator) -> Answers:
        """Classify and reconstruct."""


class FeedbackClassifier(ReconstructingClassifier):
    """RtF's network: the classifier's encoder is also that of a VAE; one pass does both."""

    def __init__(self, sizes: Sizes, rng: torch.Generator) -> None:
        super().__init__(sizes, rng)
        self.feedback = make_feedback(sizes, self.encoder, self.n_features, rng)

    def answer(self, x: Tensor, rng: torch.Generator) -> Answers:
        h = self.encoder(x)
        return Answers(self.head(h), *self.feedback(h, rng))

    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        return self.feedback.sample(n, rng)

    @property
    def likelihood(self) -> Likelihood:
        return self.feedback.likelihood


class ClassifierWithVAE(ReconstructingClassifier):
    """DGR's pair: a classifier and a separate generator, without shared parameters."""

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
