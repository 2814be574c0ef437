"""Matrix products at the processor's full speed, and the linear layers that use them.

PyTorch computes float32 products with MKL, which uses AVX-512 on Intel's processors only: on AMD's Zen 5 servers, half
of their speed is lost. PyTorch contains oneDNN too, which uses AVX-512 on both, so there large products go to it. The
numbers differ in the last bits, as they do between any two kinds of processor.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from relive._util.versions import processor

ZEN5 = 26  # AMD's first family with AVX-512 units as wide as its registers, at least in servers
WORTHWHILE = 3_000_000  # multiplications; the overhead of a smaller product is more than it gains


@functools.cache
def uses_onednn() -> bool:
    """Return whether large products go to oneDNN on this machine; with ``ATEN_CPU_CAPABILITY=avx2`` they never do."""
    amd = re.match(r"AMD .*\(family (\d+)", processor())
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    is_wide = amd is not None and int(amd[1]) >= ZEN5
    return is_wide and has_avx512 and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ + b: (n, outputs) from (n, inputs), (outputs, inputs) and (outputs,)."""
    if not _is_transformed() and uses_onednn() and _suits_onednn(x, weight, bias):
        product: Tensor = _Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return nn.functional.linear(x, weight, bias)


def _is_transformed() -> bool:
    """Return whether more than numbers is wanted: vmap, autocast, compiling, tracing, derivatives in forward mode.

    ``torch.fx`` and TorchScript's compiler read code instead of calling it, so they cannot take this layer.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch.is_autocast_enabled("cpu")
        or forward_ad._current_level >= 0
    )


def _suits_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Return whether this is a large product of matrices of float32 on the CPU."""
    return (
        bool(torch.backends.mkldnn.enabled)
        and x.dim() == weight.dim() == 2
        and x.shape[0] * x.shape[1] * weight.shape[0] >= WORTHWHILE
        and x.shape[1] == weight.shape[1]  # else PyTorch's own message says what is wrong
        and x.device.type == "cpu"
        and all(_is_simple(t) for t in (x, weight, bias) if t is not None)
        and (bias is None or bias.shape == weight.shape[:1])
    )


def _is_simple(t: Tensor) -> bool:
    """Return whether it is float32 and stored by rows or by columns: numbers next to each other, none of them twice."""
    if t.dtype != torch.float32 or t.layout != torch.strided:
        return False
    if t.dim() == 1:
        return t.stride(0) == 1
    (n, m), (down, across) = t.shape, t.stride()
    return (across == 1 and down >= m) or (down == 1 and across >= n)


class _Affine(torch.autograd.Function):
    """x Wᵀ + b by oneDNN; derivatives are such products again, so there are derivatives of any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        of_x, of_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if of_weight else None, weight if of_x else None)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return product

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        return (
            None if weight is None else affine(g, weight.T),
            None if x is None else affine(g.T, x.T),
            g.sum(0) if ctx.needs_input_grad[2] else None,
        )


class Linear(nn.Linear):
    """A linear layer whose products are :func:`affine`."""

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)
