"""The required ONNX operators in NumPy, each as ONNX defines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

Array = npt.NDArray[Any]
TYPES = {1: np.float32, 7: np.int64, 11: np.float64}


def gemm(x: Array, weight: Array, bias: Array, transB: int) -> Array:
    """Return x Wᵀ + b."""
    return x @ (weight.T if transB else weight) + bias


def windows(x: Array, sides: Sequence[int], strides: Sequence[int]) -> Array:
    """Return all windows of planes (n, channels, height, width): (n, channels, rows, columns, *sides)."""
    found = sliding_window_view(x, tuple(sides), axis=(2, 3))
    view: Array = found[:, :, :: strides[0], :: strides[1]]
    return view


def conv(x: Array, weight: Array, bias: Array, pads: Sequence[int], strides: Sequence[int]) -> Array:
    """Apply filters (out, in, height, width) at every position of zero-padded planes."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    places = windows(padded, weight.shape[2:], strides).transpose(0, 2, 3, 1, 4, 5)  # (n, rows, columns, in, h, w)
    n, rows, columns = places.shape[:3]
    out = places.reshape(n * rows * columns, -1) @ weight.reshape(len(weight), -1).T + bias
    return np.ascontiguousarray(out.reshape(n, rows, columns, -1).transpose(0, 3, 1, 2))


def average_pool(x: Array, kernel_shape: Sequence[int], strides: Sequence[int], ceil_mode: int) -> Array:
    """Return means over windows; with ``ceil_mode`` the last ones may extend beyond the edge, which does not count."""
    beyond = [-(n - k) % s if ceil_mode else 0 for n, k, s in zip(x.shape[2:], kernel_shape, strides, strict=True)]
    around = ((0, 0), (0, 0), (0, beyond[0]), (0, beyond[1]))
    inside = np.pad(np.ones((1, 1, *x.shape[2:]), x.dtype), around)
    total, count = (windows(a, kernel_shape, strides).sum((-2, -1)) for a in (np.pad(x, around), inside))
    means: Array = total / count
    return means


def log_sum_exp(x: Array, axes: Sequence[int], keepdims: int) -> Array:
    """Return log Σ exp x along an axis."""
    (axis,) = axes
    top = x.max(axis, keepdims=True)
    total: Array = top + np.log(np.exp(x - top).sum(axis, keepdims=True))
    return total if keepdims else total.squeeze(axis)


def clip(x: Array, low: Array, high: Array) -> Array:
    """Return x within bounds."""
    return np.clip(x, low, high)


OPERATORS: dict[str, Callable[..., Array]] = {
    "Abs": np.abs,
    "Add": np.add,
    "AveragePool": average_pool,
    "Cast": lambda x, to: x.astype(TYPES[to], copy=False),
    "Clip": clip,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Conv": conv,
    "Div": np.divide,
    "Flatten": lambda x, axis: x.reshape(len(x), -1),
    "Gather": lambda rows, where, axis: np.take(rows, where, axis),
    "Gemm": gemm,
    "Log": np.log,
    "LogSoftmax": lambda x, axis: x - log_sum_exp(x, [axis], 1),
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "ReduceL2": lambda x, axes, keepdims: np.sqrt(np.square(x).sum(tuple(axes), keepdims=bool(keepdims))),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": lambda x, axes, keepdims: x.max(tuple(axes), keepdims=bool(keepdims)),
    "ReduceSumSquare": lambda x, axes, keepdims: np.square(x).sum(tuple(axes), keepdims=bool(keepdims)),
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": lambda x, shape: x.reshape([n or x.shape[i] for i, n in enumerate(shape.tolist())]),
    "Sign": np.sign,
    "Softmax": lambda x, axis: np.exp(x - log_sum_exp(x, [axis], 1)),
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Transpose": lambda x, perm: x.transpose(perm),
    "Where": np.where,
}
