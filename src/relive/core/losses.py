"""Losses of classification, distillation and regularisation, per row; the caller weights the rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from relive.networks.head import masked


def cross_entropy(logits: Tensor, target: Tensor, active: Tensor, temperature: Tensor) -> Tensor:
    r"""Return :math:`-\sum_c y_c \log p^T(Y=c|x)` per row, the softmax over the active units only: (n,).

    With one-hot targets and T = 1 this is the classification loss; with soft ones, and after scaling by T², the
    distillation loss.
    """
    log_p = log_softmax(masked(logits, active) / temperature.unsqueeze(1), dim=1)
    return -(target * log_p).sum(1)


def soft_targets(logits: Tensor, active: Tensor, temperature: float) -> Tensor:
    r"""Return :math:`\tilde y_c = p^T(Y=c|x)` over the active units, 0 elsewhere: (n, units)."""
    return (masked(logits, active) / temperature).softmax(1)


def hard_targets(logits: Tensor, active: Tensor) -> Tensor:
    """Return the most likely active unit as a one-hot row: (n, units)."""
    best = masked(logits, active).argmax(1, keepdim=True)
    return torch.zeros_like(logits).scatter_(1, best, 1.0)


class QuadraticPenalty:
    r"""Pull every parameter towards its anchor with its own strength: :math:`f \sum_i s_i (\theta_i - a_i)^2`.

    Every regulariser here has this form. Only its gradient is ever needed; it does not use autograd.

    Parameters
    ----------
    strengths
        s, one tensor per parameter.
    anchors
        a, or, if ``offsets`` are given, the reference points.
    offsets
        a minus ``anchors``. Parameters move little from where a task began, so θ − anchor is
        exact in float32 while a itself is not representable in float32: stored as one number it would lose everything
        below its last digit.
    """

    def __init__(
        self, strengths: Sequence[Tensor], anchors: Sequence[Tensor], offsets: Sequence[Tensor] | None = None
    ) -> None:
        self.strengths = strengths
        self.anchors = anchors
        self.offsets = offsets
        work = strengths[0].new_empty(max(s.numel() for s in strengths))  # one parameter at a time
        self._work = [work[: s.numel()].view_as(s) for s in strengths]

    @torch.no_grad()
    def add_gradient(self, theta: Sequence[Tensor], factor: float, gradient: Sequence[Tensor]) -> None:
        """Add the gradient of f times the sum to ``gradient``."""
        for i, (p, g, delta) in enumerate(zip(theta, gradient, self._work, strict=True)):
            torch.sub(p, self.anchors[i], out=delta)
            if self.offsets is not None:
                delta.sub_(self.offsets[i])
            g.addcmul_(self.strengths[i], delta, value=2 * factor)
