"""The equations of the paper's appendix A, one function each. Losses are per row; who calls them weighs the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

OFF = -1e30  # the logit of an inactive unit: its probability is exactly 0, and 0 · log p stays 0


def masked(logits: Tensor, active: Tensor) -> Tensor:
    """Return the logits (n, units) with every inactive unit switched off."""
    return logits.masked_fill(~active, OFF)


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


class _Reconstruction(torch.autograd.Function):
    """Binary cross entropy per row from logits; its gradient, σ(l) − x, is at hand from the forward pass."""

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


def latent(mu: Tensor, logvar: Tensor) -> Tensor:
    r"""Return :math:`-\tfrac12\sum_j (1 + \log\sigma_j^2 - \mu_j^2 - \sigma_j^2)`: (n,)."""
    return -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1)


class Springs:
    r"""Hold every parameter at an anchor, each with its own strength: :math:`f \sum_i s_i (\theta_i - \hat\theta_i)^2`.

    This is the shape of every penalty here. It needs no autograd.
    """

    def __init__(self, strengths: Sequence[Tensor], anchors: Sequence[Tensor]) -> None:
        self.strengths = strengths
        self.anchors = anchors
        work = torch.empty(2, max(s.numel() for s in strengths))  # one parameter at a time
        self._work = [[row[: s.numel()].view_as(s) for row in work] for s in strengths]

    @torch.no_grad()
    def pull(self, theta: Sequence[Tensor], factor: float, gradient: Sequence[Tensor]) -> float:
        """Add the gradient of f times the sum to ``gradient``, and return the value."""
        value = 0.0
        for p, s, anchor, g, (delta, pull) in zip(
            theta, self.strengths, self.anchors, gradient, self._work, strict=True
        ):
            torch.sub(p, anchor, out=delta)
            torch.mul(delta, s, out=pull)
            g.add_(pull, alpha=2 * factor)
            value += pull.flatten().dot(delta.flatten()).item()
        return factor * value
