"""Fine-tuning: train on each task in the standard way, remember nothing. The lower bound."""

from __future__ import annotations

from typing import ClassVar

from relive.core.method import Method
from relive.methods.catalogue import METHODS


class FineTuning(Method):
    """The baseline that every method modifies."""

    facts: ClassVar = METHODS["none"]
