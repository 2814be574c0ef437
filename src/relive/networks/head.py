"""The output layer: it grows, and only some of its units are active for each row."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from relive.networks.blocks import block_sizes
from relive.networks.encoders import linear

OFF = -1e30  # the logit of an inactive unit: its probability is exactly 0, and 0 · log p stays 0


def masked(logits: Tensor, active: Tensor) -> Tensor:
    """Return the logits (n, units) with every inactive unit switched off."""
    return logits.masked_fill(~active, OFF)


class Head(nn.Module):
    """The output layer, a matrix product per block of units (``relive.networks.blocks``)."""

    def __init__(self, n_in: int, n_out: int, rng: torch.Generator) -> None:
        super().__init__()
        layer = linear(n_in, n_out, rng)
        self.weight, self.bias = layer.weight, layer.bias
        self.blocks = block_sizes(n_out)

    def forward(self, h: Tensor) -> Tensor:
        """Return the logits, (n, units)."""
        if len(self.blocks) == 1:
            return functional.linear(h, self.weight, self.bias)
        parts = zip(torch.split(self.weight, self.blocks), torch.split(self.bias, self.blocks), strict=True)
        return torch.cat([functional.linear(h, weight, bias) for weight, bias in parts], dim=1)
