"""Matrix products at the processor's full speed, and the linear layers that use them.

PyTorch computes float32 products with MKL, which uses AVX-512 on Intel's processors only: on AMD's that have it, half
of their speed is lost. PyTorch contains oneDNN too, which uses AVX-512 on both, so there the products go to it. The
numbers differ in the last bits, as they do between any two kinds of processor.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from relive._util.versions import processor


@functools.cache
def uses_onednn() -> bool:
    """Return whether products go to oneDNN on this machine; with ``ATEN_CPU_CAPABILITY=avx2`` they never do."""
    is_amd = processor().startswith("AMD")
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return is_amd and has_avx512 and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ + b: (n, outputs) from (n, inputs), (outputs, inputs) and (outputs,)."""
    if uses_onednn() and _suits_onednn(x, weight):
        product: Tensor = _Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return nn.functional.linear(x, weight, bias)


def _suits_onednn(x: Tensor, weight: Tensor) -> bool:
    """Return whether these are rows of float32 on the CPU, and nothing else (vmap, autocast) wants to handle them."""
    return (
        x.dim() == 2
        and x.numel() > 0
        and x.shape[1] == weight.shape[1]  # else PyTorch's own message says what is wrong
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and not torch._C._are_functorch_transforms_active()
        and not torch.is_autocast_enabled("cpu")
    )


class _Affine(torch.autograd.Function):
    """x Wᵀ + b by oneDNN; its derivatives are such products themselves, so it can be derived any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return product

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            affine(g, weight.T) if of_x else None,
            affine(g.T, x.T) if of_weight else None,
            g.sum(0) if of_bias else None,
        )


class Linear(nn.Linear):
    """A linear layer whose products are :func:`affine`."""

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)
