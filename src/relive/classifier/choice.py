"""Which method suits: the rule behind ``method="auto"``, decided by what is known when the first task comes.

===========  ==================  ===============  ==================================================================
scenario     encoder             inputs           method
===========  ==================  ===============  ==================================================================
any          any                 any              ``discriminant`` if classes are to be forgettable
any          one that is given   any              ``rtf``: whoever brings a network wants it trained
Domain-IL    none given          a row            ``domains``: inputs may mean something else in every task
any other    none given          a wide row       ``slda``: as a network's features are, 513 to 2,000 of any size
any other    none given          any other        ``discriminant``: in closed form, nothing is forgotten
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
WIDEST = 2000  # inputs whose products are no more numbers than other closed forms keep


@dataclass(frozen=True)
class Choice:
    """A method and why it was taken; the reason is empty where the user named the method."""

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
        What they are taken for.

    >>> choose({"method": "auto", "scenario": "class", "encoder": None, "shape": None}, 13, "gaussian").method
    'discriminant'
    >>> choose({"method": "si"}, 13, "gaussian")
    Choice(method='si', reason='')
    """
    if given["method"] != AUTO:
        return Choice(given["method"])
    if given.get("forgettable"):
        return Choice("discriminant", "in closed form, with sums for each class, which can be taken away again")
    if given["encoder"] is not None:
        return Choice("rtf", "it trains the encoder that you gave, and replays what it generates")
    if given["shape"]:
        return Choice("discriminant", "in closed form on random convolutions: nothing is forgotten")
    if SCENARIOS[given["scenario"]].shares_units:
        return Choice("domains", "a closed form per domain: inputs may mean something else in every task")
    if likelihood == "gaussian" and WIDE < n_inputs <= WIDEST and not given.get("settings"):
        return Choice("slda", "in closed form on all features, which are many: nothing is forgotten")
    return Choice(
        "discriminant", f"in closed form on random features: nothing is forgotten{_hint(n_inputs, likelihood)}"
    )


def _hint(n_inputs: int, likelihood: str) -> str:
    """Return what to do if these rows are pictures, for those that may be."""
    side = math.isqrt(n_inputs)
    if likelihood != "bernoulli" or side * side != n_inputs or n_inputs < SMALLEST_PICTURE:
        return ""
    return f". If a row is a picture, say so: shape=({side}, {side}) is likely to be more accurate"
