"""How a decoder's outputs describe inputs: numbers in [0, 1] as probabilities, any others as Gaussian variables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from relive._util.errors import unknown

LOG_VARIANCES = (-5.0, 2.0)  # of standardised features: none is treated as known exactly, or as pure noise


class _Reconstruction(torch.autograd.Function):
    """Binary cross-entropy per row from logits; its gradient, σ(l) − x, is available from the forward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, x: Tensor) -> Tensor:
        s = logits.sigmoid()
        ctx.save_for_backward(s, x)
        # −x log σ(l) − (1−x) log(1−σ(l)) = max(l, 0) − x l − log max(σ(l), 1−σ(l)), which cannot overflow
        larger = 1 - s
        torch.maximum(s, larger, out=larger)
        return logits.relu().addcmul_(x, logits, value=-1).sub_(larger.log_()).sum(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        s, x = ctx.saved_tensors
        return (s - x).mul_(grad.unsqueeze(1)), None


def reconstruction(logits: Tensor, x: Tensor) -> Tensor:
    r"""Return :math:`-\sum_p x_p \log\tilde x_p + (1-x_p)\log(1-\tilde x_p)`, :math:`\tilde x` = sigmoid: (n,)."""
    rows: Tensor = _Reconstruction.apply(logits, x)  # type: ignore[no-untyped-call]
    return rows


def gaussian(mean: Tensor, logvar: Tensor, x: Tensor) -> Tensor:
    r"""Return :math:`\tfrac12\sum_p (x_p - m_p)^2 / \sigma_p^2 + \log\sigma_p^2`: (n,). Not in the paper."""
    return 0.5 * ((x - mean).square() * (-logvar).exp() + logvar).sum(1)


class Likelihood(nn.Module, ABC):
    """Interprets a decoder's outputs, (n, inputs)."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()

    @abstractmethod
    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return minus the log-likelihood of every input, without its constant: (n,)."""

    @staticmethod
    @abstractmethod
    def noise(shape: tuple[int, int], rng: torch.Generator) -> Tensor:
        """Return random inputs of this kind."""

    @abstractmethod
    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Return inputs for replay, (n, inputs)."""


class Bernoulli(Likelihood):
    """For inputs in [0, 1], such as pixel brightness; the probability itself is replayed, as in the paper."""

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        return reconstruction(outputs, x)

    @staticmethod
    def noise(shape: tuple[int, int], rng: torch.Generator) -> Tensor:
        return torch.randint(2, shape, generator=rng).float()

    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        return outputs.sigmoid()


class Gaussian(Likelihood):
    """For standardised features of any range: the decoder gives the mean, and each feature learns a variance.

    Replayed features are sampled, with noise: the mean alone would vary less than real features.
    """

    def __init__(self, n_inputs: int) -> None:
        super().__init__(n_inputs)
        low, high = LOG_VARIANCES
        self.place = nn.Parameter(torch.full((n_inputs,), math.log(-low / high)))  # so that log σ² starts at 0

    @property
    def logvar(self) -> Tensor:
        """Log σ² of every feature, (inputs,), within the bounds, through a smooth parametrisation."""
        low, high = LOG_VARIANCES
        return low + (high - low) * self.place.sigmoid()

    def rows(self, outputs: Tensor, x: Tensor) -> Tensor:
        return gaussian(outputs, self.logvar, x)

    @staticmethod
    def noise(shape: tuple[int, int], rng: torch.Generator) -> Tensor:
        return torch.randn(shape, generator=rng)

    def draw(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        return outputs + (0.5 * self.logvar).exp() * torch.randn(outputs.shape, generator=rng).to(outputs.device)


LIKELIHOODS: dict[str, type[Likelihood]] = {"bernoulli": Bernoulli, "gaussian": Gaussian}


def likelihood_of(name: str, n_inputs: int) -> Likelihood:
    """Return the likelihood with that name."""
    if name not in LIKELIHOODS:
        raise unknown("likelihood", name, LIKELIHOODS)
    return LIKELIHOODS[name](n_inputs)
