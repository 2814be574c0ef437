"""Named tensors in states: whether they fit a learner, and whether samples are among them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive._util import schema
from relive._util.errors import InputError


def check_form(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse tensors whose names, shapes or types differ from the expected ones; values do not matter.

    >>> import torch
    >>> check_form({"a": torch.zeros(3)}, {"a": torch.zeros(2, 5)})
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: a is (3,) of torch.float32, but should be (2, 5) of torch.float32
    """
    for name in [*expected, *(name for name in found if name not in expected)]:
        is_, should_be = form(found.get(name)), form(expected.get(name))
        if is_ != should_be:
            raise InputError(f"{name} is {is_}, but should be {should_be}")


def check_range(state: Mapping[str, Tensor], name: str, low: float, below: float = math.inf) -> None:
    """Refuse a tensor with numbers that are not whole, or out of range.

    >>> check_range({"task": torch.tensor([0, 7])}, "task", 0, 2)
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: task has numbers that are not whole, or not in the range from 0 to below 2
    """
    tensor = state[name]
    if not bool(((tensor >= low) & (tensor < below) & (tensor.floor() == tensor)).all()):
        raise InputError(f"{name} has numbers that are not whole, or not in the range from {low:g} to below {below:g}")


def check_numbers(name: str, tensor: Tensor) -> None:
    """Refuse numbers that are not finite, and float32 ones too large to calculate with.

    >>> check_numbers("sums", torch.tensor([1.0, -1e20]))
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: sums has numbers that are not finite, or too large (beyond ±1e+18)
    """
    bounded = tensor.dtype == torch.float32 and not name.endswith("bias")  # a bias switches a unit off
    if not bool(tensor.isfinite().all()) or (bounded and not bool((tensor.abs() <= schema.WEIGHT).all())):
        raise InputError(f"{name} has numbers that are not finite, or too large (beyond ±{schema.WEIGHT:g})")


def form(tensor: Tensor | None) -> str:
    """Return a tensor's shape and type, for messages."""
    return "not there" if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"


def tensors_in(value: object) -> list[Tensor]:
    """Return the tensors in a value: itself, or those in a list, a tuple, a deque or a dictionary, however deep.

    >>> len(tensors_in([(torch.zeros(2), torch.zeros(3)), "no tensor"]))
    2
    """
    if isinstance(value, Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | deque) else ()
    return [tensor for item in inner for tensor in tensors_in(item)]


def same(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Return whether there are as many tensors, of the same types and values."""
    alike = len(some) == len(others) and all(a.dtype == b.dtype for a, b in zip(some, others, strict=True))
    return alike and all(map(torch.equal, some, others))


def holding_rows(state: Mapping[str, Tensor], rows: Tensor) -> list[str]:
    """Return the names of the tensors that contain any of the rows (n, inputs), number for number.

    Constant rows, such as empty images, say nothing and are ignored.

    >>> rows = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    >>> holding_rows({"buffer": torch.tensor([[5.0, 6.0, 7.0], [1.0, 2.0, 3.0]]), "sums": torch.zeros(2, 3)}, rows)
    ['buffer']
    """
    width = rows.shape[1]
    known = _as_items(rows, width)
    return [
        name
        for name, tensor in state.items()
        if tensor.numel() and tensor.numel() % width == 0 and np.isin(_as_items(tensor, width), known).any()
    ]


def _as_items(tensor: Tensor, width: int) -> npt.NDArray[np.void]:
    """Return non-constant rows of this many numbers each as (n,) items that compare as a whole."""
    rows = tensor.detach().cpu().float().reshape(-1, width) + 0.0  # -0.0 becomes 0.0
    rows = rows[(rows != rows[:, :1]).any(1)]
    return rows.contiguous().numpy().view(np.dtype((np.void, 4 * width))).reshape(-1)
