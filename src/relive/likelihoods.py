"""How a decoder's outputs describe inputs: numbers in [0, 1] as probabilities, any others as normal variables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from relive.errors import unknown
from relive.losses import gaussian, reconstruction

LOG_VARIANCES = (-5.0, 2.0)  # of standardised features: no feature is taken for exactly known, or for mere noise


class Likelihood(nn.Module, ABC):
    """What is made of a decoder's outputs, (n, inputs)."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()

    @abstractmethod
    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return minus the log-likelihood of every input, without its constant: (n,)."""

    @abstractmethod
    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Return inputs as they are replayed, (n, inputs)."""


class Bernoulli(Likelihood):
    """For inputs in [0, 1], such as the brightness of pixels; what is replayed is the probability, as in the paper."""

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        return reconstruction(outputs, x)

    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        return outputs.sigmoid()


class Gaussian(Likelihood):
    """For standardised features of any range: the decoder says the mean, and each feature learns a variance.

    What is replayed is drawn, noise included: the mean alone would replay features that vary less than real ones.
    """

    def __init__(self, n_inputs: int) -> None:
        super().__init__(n_inputs)
        low, high = LOG_VARIANCES
        self.place = nn.Parameter(torch.full((n_inputs,), math.log(-low / high)))  # so that log σ² is 0 at first

    @property
    def logvar(self) -> Tensor:
        """Log σ² of every feature, (inputs,), between the bounds; it moves freely, however near to them."""
        low, high = LOG_VARIANCES
        return low + (high - low) * self.place.sigmoid()

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        return gaussian(outputs, self.logvar, x)

    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        return outputs + (0.5 * self.logvar).exp() * torch.randn(outputs.shape, generator=rng)


LIKELIHOODS: dict[str, type[Likelihood]] = {"bernoulli": Bernoulli, "gaussian": Gaussian}


def likelihood_of(name: str, n_inputs: int) -> Likelihood:
    """Return the likelihood of that name."""
    if name not in LIKELIHOODS:
        raise unknown("likelihood", name, LIKELIHOODS)
    return LIKELIHOODS[name](n_inputs)
