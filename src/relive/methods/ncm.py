r"""Nearest class mean: a sample belongs to the class whose mean is nearest.

.. math:: \arg\min_c \lVert h - \mu_c \rVert^2 = \arg\max_c \; \mu_c \cdot h - \tfrac12 \lVert \mu_c \rVert^2

It keeps a mean and a count per class. Mensink et al. (2013), "Distance-based image classification", IEEE TPAMI 35. The
features are the inputs themselves unless an encoder is chosen.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from relive.methods.catalogue import METHODS
from relive.methods.closed_form import ClosedForm


class NCM(ClosedForm):
    """One mean per class."""

    facts: ClassVar = METHODS["ncm"]
    needs_products = False

    def readout(self) -> tuple[Tensor, Tensor]:
        means = self.counted().means
        return means, -0.5 * means.square().sum(1)
