r"""Calibrated confidence: a temperature, fitted on samples that were held back for a moment.

A part of every task is scored before it is learned. Its labels are known, so the mean of
:math:`-\log p_T(y|x)` with :math:`p_T \propto p^{1/T}` shows which temperature T fits best; only its sum for each T
of a grid is kept. Sums of earlier tasks lose half their weight with each new one, because the model has changed. Few
samples say little, so T is pulled towards the method's usual value by a normal prior on its logarithm.
Dividing all logits by T changes no prediction (Guo et al. 2017, "On calibration of modern neural networks", ICML).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TEMPERATURES = 2.0 ** np.linspace(-3, 6, 37)
SPREAD = 0.25  # of the prior, in octaves
FADES = 0.5  # weight of earlier losses after each new task: they came from an older model
SMALLEST = 1e-300  # probabilities below are rounding


def losses(probabilities: Array, column: Array) -> Array:
    """Return the summed −log p of the true classes at every temperature.

    Parameters
    ----------
    probabilities
        (n, classes) at temperature 1.
    column
        (n,) the index of the true class.
    """
    logits = np.log(np.maximum(probabilities, SMALLEST))
    right = logits[np.arange(len(logits)), column]
    return np.array([float((_log_sum(logits / t) - right / t).sum()) for t in TEMPERATURES])


def temperature(summed: Array, usual: float) -> float:
    """Return the best temperature, given the summed losses and the method's usual one.

    >>> temperature(np.zeros(37), 4.0)
    4.0
    """
    prior = (np.log2(TEMPERATURES / usual) / SPREAD) ** 2 / 2
    return float(TEMPERATURES[np.argmin(summed + prior)])


def tempered(probabilities: Array, t: float) -> Array:
    """Return the probabilities at a temperature; impossible classes stay impossible.

    >>> tempered(np.array([[0.8, 0.2, 0.0]]), 1.0).round(6).tolist()
    [[0.8, 0.2, 0.0]]
    """
    if t == 1.0:
        return probabilities
    logits = np.log(np.maximum(probabilities, SMALLEST)) / t
    share = np.where(probabilities > 0, np.exp(logits - logits.max(1, keepdims=True)), 0.0)
    result: Array = share / share.cumsum(1)[:, -1:]  # summed in order, so that extra zeros change no bit
    return result


def _log_sum(logits: Array) -> Array:
    largest = logits.max(1, keepdims=True)
    total: Array = np.log(np.exp(logits - largest).sum(1)) + largest[:, 0]
    return total
