"""The rule behind ``method="auto"``: which method suits, given what is known at the first task.

===========  ==================  ===============  ==================================================================
scenario     encoder             inputs           method
===========  ==================  ===============  ==================================================================
any          any                 any              ``discriminant`` if classes must be forgettable
any          one that is given   any              ``rtf``: a user who brings a network wants it trained
Domain-IL    none given          a row            ``domains``: inputs may mean something different in every task
any other    none given          a wide row       ``slda``: typical of a network's features, 513 to 2,000 of any size
any other    none given          any other        ``discriminant``: a closed form, which forgets nothing
===========  ==================  ===============  ==================================================================

docs/which-method.md has the figures behind it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relive.core.scenarios import SCENARIOS
from relive.networks.catalogue import WIDE

AUTO = "auto"
SMALLEST_PICTURE = 64  # numbers
WIDEST = 2000  # beyond, the products of inputs would be more numbers than other closed forms keep


@dataclass(frozen=True)
class Choice:
    """A method and the reason for choosing it; the reason is empty if the user named the method."""

    method: str
    reason: str = ""


def choose(given: Mapping[str, Any], n_inputs: int, likelihood: str) -> Choice:
    """Return the method for a new model.

    Parameters
    ----------
    given
        The estimator's parameters, by name.
    n_inputs
        Features per sample.
    likelihood
        How they are modelled.

    >>> choose({"method": "auto", "scenario": "class", "encoder": None, "shape": None}, 13, "gaussian").method
    'discriminant'
    >>> choose({"method": "si"}, 13, "gaussian")
    Choice(method='si', reason='')
    """
    if given["method"] != AUTO:
        return Choice(given["method"])
    if given.get("forgettable"):
        return Choice("discriminant", "closed form with sums per class, which can be removed again")
    if given["encoder"] is not None:
        return Choice("rtf", "trains the encoder that you gave, replaying what it generates")
    if given["shape"]:
        return Choice("discriminant", "closed form on random convolutions: forgets nothing")
    if SCENARIOS[given["scenario"]].shares_units:
        return Choice("domains", "one closed form per domain: inputs may mean something different in every task")
    if likelihood == "gaussian" and WIDE < n_inputs <= WIDEST and not given.get("settings"):
        return Choice("slda", "closed form on all features, of which there are many: forgets nothing")
    return Choice("discriminant", f"closed form on random features: forgets nothing{_hint(n_inputs, likelihood)}")


def _hint(n_inputs: int, likelihood: str) -> str:
    """Return what to do if these rows are images, in case they may be."""
    side = math.isqrt(n_inputs)
    if likelihood != "bernoulli" or side * side != n_inputs or n_inputs < SMALLEST_PICTURE:
        return ""
    return f". If a row is an image, set shape=({side}, {side}), which is likely to be more accurate"
