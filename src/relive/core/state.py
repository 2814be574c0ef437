"""Named tensors as states hold them, and what tells those of one learner from those of another."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from relive._util.errors import InputError


def check_form(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse tensors with other names, shapes or types than expected; values do not matter.

    >>> import torch
    >>> check_form({"a": torch.zeros(3)}, {"a": torch.zeros(2, 5)})
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: a is (3,) of torch.float32, and should be (2, 5) of torch.float32
    """
    for name in [*expected, *(name for name in found if name not in expected)]:
        is_, should_be = _form(found.get(name)), _form(expected.get(name))
        if is_ != should_be:
            raise InputError(f"{name} is {is_}, and should be {should_be}")


def _form(tensor: Tensor | None) -> str:
    return "not there" if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"
