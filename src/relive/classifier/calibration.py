r"""How far a model's confidence can be trusted: a temperature, learned from samples that were held back for a moment.

A part of every task is asked about before it is learned. Its labels are known, so that the mean of
:math:`-\log p_T(y|x)` with :math:`p_T \propto p^{1/T}` tells which temperature T suits; of this only the sum for each T
of a grid is kept. Sums of earlier tasks count for half as much with each new one, because the model has changed. Few
samples say little, so that T is drawn towards what is usual for the method, as if by a normal prior of its logarithm.
Dividing all logits by T changes no answer (Guo et al. 2017, "On calibration of modern neural networks", ICML).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TEMPERATURES = 2.0 ** np.linspace(-3, 6, 37)
SPREAD = 0.25  # of the prior, in octaves
FADES = 0.5  # what losses count for when the next task is asked about: the model that had them is gone
SMALLEST = 1e-300  # probabilities below are rounding


def losses(probabilities: Array, column: Array) -> Array:
    """Return the summed −log p of the right classes at every temperature.

    Parameters
    ----------
    probabilities
        (n, classes) at temperature 1.
    column
        (n,) which class is right.
    """
    logits = np.log(np.maximum(probabilities, SMALLEST))
    right = logits[np.arange(len(logits)), column]
    return np.array([float((_log_sum(logits / t) - right / t).sum()) for t in TEMPERATURES])


def temperature(summed: Array, usual: float) -> float:
    """Return the temperature that suits best, given the summed losses and what is usual for the method.

    >>> temperature(np.zeros(37), 4.0)
    4.0
    """
    prior = (np.log2(TEMPERATURES / usual) / SPREAD) ** 2 / 2
    return float(TEMPERATURES[np.argmin(summed + prior)])


def tempered(probabilities: Array, t: float) -> Array:
    """Return the probabilities at a temperature; classes that are impossible stay so.

    >>> tempered(np.array([[0.8, 0.2, 0.0]]), 1.0).round(6).tolist()
    [[0.8, 0.2, 0.0]]
    """
    if t == 1.0:
        return probabilities
    logits = np.log(np.maximum(probabilities, SMALLEST)) / t
    share = np.where(probabilities > 0, np.exp(logits - logits.max(1, keepdims=True)), 0.0)
    result: Array = share / share.cumsum(1)[:, -1:]  # one after another: zeros among them change no bit
    return result


def _log_sum(logits: Array) -> Array:
    largest = logits.max(1, keepdims=True)
    total: Array = np.log(np.exp(logits - largest).sum(1)) + largest[:, 0]
    return total
