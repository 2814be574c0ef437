"""What inputs are to a model: numbers in [0, 1] as they are, any others standardised by the first task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive.errors import InputError, unknown
from relive.likelihoods import LIKELIHOODS

Array = npt.NDArray[Any]
LIMIT = 10.0  # standardised features are cut off here: a later task may lie far from the first


@dataclass(frozen=True)
class Features:
    """How samples become inputs of the network, decided at the first task and then kept.

    Attributes
    ----------
    likelihood
        ``"bernoulli"`` or ``"gaussian"``.
    mean, scale
        (inputs,) float64 each: an input is (x − mean) / scale; 0 and 1 for Bernoulli.
    """

    likelihood: str
    mean: Array
    scale: Array

    @classmethod
    def of(cls, data: Array, likelihood: str) -> Self:
        """Decide by the first task's samples.

        ``"auto"`` takes bytes (``uint8``) and numbers within [0, 1] for Bernoulli, everything else for Gaussian.

        >>> Features.of(np.array([[0.0, 0.5], [1.0, 0.2]]), "auto").likelihood
        'bernoulli'
        >>> Features.of(np.array([[0.0, 5.0], [1.0, 7.0]]), "auto").mean.tolist()
        [0.5, 6.0]
        """
        if likelihood == "auto":
            likelihood = "bernoulli" if _within_bounds(data) else "gaussian"
        elif likelihood not in LIKELIHOODS:
            raise unknown("likelihood", likelihood, ["auto", *LIKELIHOODS])
        mean, scale = np.zeros(data.shape[1]), np.ones(data.shape[1])
        if likelihood == "gaussian":
            mean, deviation = data.mean(0, dtype=np.float64), data.std(0, dtype=np.float64)
            still = deviation <= 1e-9 * np.abs(mean)  # a feature that does not vary keeps its unit
            scale = np.where(still, 1.0, deviation)
        return cls(likelihood, mean, scale)

    def check(self, data: Array) -> None:
        """Refuse samples that cannot be learned from."""
        if self.likelihood == "bernoulli" and not _within_bounds(data):
            raise InputError(
                f"X has values from {data.min():g} to {data.max():g}, but this model takes inputs for numbers in "
                "[0, 1] (likelihood 'bernoulli'): scale them, or make a new model with likelihood='gaussian'"
            )

    def rows(self, data: Array) -> Tensor:
        """Return samples as training keeps them, (n, inputs): bytes as they are, all others as the network's inputs."""
        if self.likelihood == "bernoulli" and data.dtype == np.uint8:
            return torch.from_numpy(np.array(data))
        return self.inputs(data)

    def inputs(self, data: Array) -> Tensor:
        """Return samples as the network takes them, (n, inputs) float32."""
        if self.likelihood == "bernoulli":
            x = torch.from_numpy(np.array(data)).float()
            return x.div_(255) if data.dtype == np.uint8 else x
        standard = ((data - self.mean) / self.scale).clip(-LIMIT, LIMIT)
        return torch.from_numpy(standard).float()

    def samples(self, inputs: Tensor) -> Array:
        """Return what the network generated as samples, (n, features) float64."""
        data: Array = inputs.double().numpy() * self.scale + self.mean
        return data


def _within_bounds(data: Array) -> bool:
    return data.dtype == np.uint8 or bool(data.min() >= 0 and data.max() <= 1)
