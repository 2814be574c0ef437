"""Adam on PyTorch's fused kernel, with its whole state in plain sight.

``torch.optim.Adam(fused=True)`` calls the same kernel. What it adds around it costs more than the kernel itself on
networks of this size, and its first step loads PyTorch's compiler, two seconds per process
(``docs/performance.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Kingma & Ba (2015), β = (0.9, 0.999), ε = 1e-8, without weight decay.

    Parameters
    ----------
    parameters
        What to train, changed in place.
    rate
        The learning rate.
    epsilon_first
        Whether ε is added before the bias correction, as PyTorch did until 2019: √v + ε instead of √v̂ + ε, which is
        ε / √(1 − 0.999ᵗ) instead of ε.
    """

    def __init__(self, parameters: Sequence[Tensor], rate: float, *, epsilon_first: bool = False) -> None:
        self.parameters = list(parameters)
        self.rate = rate
        self.epsilon_first = epsilon_first
        self.m = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.v = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.steps = torch.zeros(())

    @torch.no_grad()
    def step(self, gradient: Sequence[Tensor]) -> None:
        """Move every parameter by its gradient."""
        self.steps += 1
        epsilon = 1e-8 / math.sqrt(1 - 0.999 ** self.steps.item()) if self.epsilon_first else 1e-8
        torch._fused_adam_(
            self.parameters,
            list(gradient),
            self.m,
            self.v,
            [],
            [self.steps] * len(self.parameters),
            lr=self.rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=epsilon,
            amsgrad=False,
            maximize=False,
        )
