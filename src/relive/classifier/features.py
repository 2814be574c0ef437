"""How a model treats inputs: numbers in [0, 1] unchanged, any others standardised with the first task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Array = npt.NDArray[Any]
LIMIT = 10.0  # standardised features are compressed logarithmically beyond: a later task may lie far from the first

ROUNDING = 1e-6  # how far a scaler may miss [0, 1]


@dataclass(frozen=True)
class Features:
    """How samples become inputs of the network; decided at the first task and then fixed.

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
        """Decide from the first task's samples.

        ``"auto"`` treats bytes (``uint8``) and numbers within [0, 1] as Bernoulli, everything else as Gaussian.

        >>> Features.of(np.array([[0.0, 0.5], [1.0, 0.2]]), "auto").likelihood
        'bernoulli'
        >>> Features.of(np.array([[0.0, 5.0], [1.0, 7.0]]), "auto").mean.tolist()
        [0.5, 6.0]
        """
        if likelihood == "auto":
            likelihood = "bernoulli" if _within_bounds(data) else "gaussian"
        if data.dtype == np.uint8 and likelihood == "bernoulli" and data.max() <= 1:
            warnings.warn(
                "X is uint8 with no value above 1, but bytes are read as 0 to 255: pass zeros and ones as floats",
                stacklevel=2,
            )
        mean, scale = np.zeros(data.shape[1]), np.ones(data.shape[1])
        if likelihood == "gaussian":
            if (data == data[:1]).all():  # the mean would be the sample itself, and stay in the model
                raise InputError(
                    "the first task has only one sample, or all samples are equal: outside [0, 1] it sets the "
                    "mean and scale of the features, so give it at least 2 different samples"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                mean, deviation = data.mean(0, dtype=np.float64), data.std(0, dtype=np.float64)
            if not np.isfinite(deviation).all():
                raise InputError(f"X has values up to {np.abs(data).max():g}: too large to standardise")
            still = deviation <= 1e-9 * np.abs(mean)  # a constant feature keeps its unit
            scale = np.where(still, 1.0, deviation)
        return cls(likelihood, mean, scale)

    @property
    def bounded(self) -> bool:
        """Whether the network's inputs are within 0 and 1."""
        return self.likelihood == "bernoulli"

    def check(self, data: Array, bounded: bool = True) -> None:
        """Refuse samples that cannot be learned from.

        Parameters
        ----------
        data
            (n, features).
        bounded
            Whether numbers outside [0, 1] do harm if the first task had none. They do not where only sums are kept:
            columns of zeros and ones are often followed by a count.
        """
        if self.likelihood == "bernoulli" and not _within_bounds(data):
            values = f"X has values from {data.min():.9g} to {data.max():.9g}"
            if bounded:
                raise InputError(
                    f"{values}, but this model expects inputs in [0, 1] (likelihood 'bernoulli'): scale them, "
                    "pass bytes as uint8, or start a new model with likelihood='gaussian' (relive fit "
                    "--likelihood gaussian)"
                )
            warnings.warn(
                f"{values}, but the first task only had numbers in [0, 1]: they are used unchanged. If they "
                "are bytes, pass them as uint8",
                stacklevel=2,
            )
        with np.errstate(over="ignore"):
            furthest = (np.abs(data).max(0) + np.abs(self.mean)) / self.scale
        if not np.isfinite(furthest).all():
            raise InputError(
                f"feature {int(furthest.argmax()) + 1} of X has values up to {np.abs(data).max():g}, too far from "
                "those of the first task: leave these samples out, or scale the feature for all tasks"
            )

    def rows(self, data: Array) -> Tensor:
        """Return samples as training stores them, (n, inputs): bytes unchanged, all others as network inputs."""
        import torch

        if self.likelihood == "bernoulli" and data.dtype == np.uint8:
            return torch.from_numpy(np.array(data))
        return self.inputs(data)

    def inputs(self, data: Array) -> Tensor:
        """Return samples as the network takes them, (n, inputs) float32."""
        import torch

        if self.likelihood == "bernoulli":
            x = torch.from_numpy(np.array(data)).float()
            return x.div_(255) if data.dtype == np.uint8 else x
        standard = (data - self.mean) / self.scale
        beyond = LIMIT * np.log(np.maximum(np.abs(standard) / LIMIT, 1))
        return torch.from_numpy(standard.clip(-LIMIT, LIMIT) + np.sign(standard) * beyond).float()

    def samples(self, inputs: Tensor) -> Array:
        """Return what the network generated as samples, (n, features) float64."""
        data: Array = inputs.cpu().double().numpy() * self.scale + self.mean
        return data


def warn_of_pixels(data: Array) -> None:
    """Warn about images whose pixels are whole numbers from 0 to 255, but not bytes: these are standardised."""
    if data.dtype != np.uint8 and data.max() > 1 and data.min() >= 0 and data.max() <= 255 and (data % 1 == 0).all():
        warnings.warn(
            "X has whole numbers from 0 to 255 that are not bytes, so they are standardised like other "
            "features: if they are pixels, pass X.astype('uint8')",
            stacklevel=2,
        )


def _within_bounds(data: Array) -> bool:
    return data.dtype == np.uint8 or bool(data.min() >= -ROUNDING and data.max() <= 1 + ROUNDING)
