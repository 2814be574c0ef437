"""What a method's hooks return and keep: an error names the hook and says what it must do instead."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import ParamSpec

import numpy as np
import torch
from torch import Tensor

from relive._util.arrayfile import TYPES
from relive._util.errors import InputError
from relive.core.batch import Batch
from relive.core.facts import facts_of
from relive.core.method import Method
from relive.core.optimizers import Optimizer
from relive.core.state import check_form, form, same, tensors_in

P = ParamSpec("P")
STORED = [getattr(torch, np.dtype(kind).name) for kind in TYPES.values()]  # what checkpoints and model files hold


def name_of(hook: Callable[..., object]) -> str:
    """Return what to call a hook, which may be any function that was put in its place."""
    return getattr(hook, "__qualname__", repr(hook))


def wrong(hook: Callable[..., object], returned: object, should: str) -> InputError:
    """Return the error for a hook that returned something else than it must."""
    found = form(returned) if isinstance(returned, Tensor) else reprlib.repr(returned).partition("\n")[0]
    return InputError(f"{name_of(hook)} returned {type(returned).__name__} {found}: it must return {should}")


def in_place(hook: Callable[P, object], *given: P.args, **named: P.kwargs) -> None:
    """Call a hook that changes tensors in place, or the method's own attributes."""
    returned = hook(*given, **named)
    if returned is not None:
        raise wrong(hook, returned, "nothing: its result is not used, and gradients are changed in place, as g.add_(p)")


def check_rows(hook: Callable[..., object], found: object, current: Batch) -> None:
    """Refuse rows that cannot be joined with the current ones, which have the right widths and types."""
    if not isinstance(found, Batch):
        raise wrong(hook, found, "a relive.core.batch.Batch, as hard_rows makes it, or None")
    n = {field: len(found.x) if field in ("x", "task") else len(found.target) for field in _every_row(current)}
    expected = {field: t.new_empty(n[field], *t.shape[1:]) for field, t in _every_row(current).items()}
    try:
        check_form(_every_row(found), expected)
    except InputError as error:
        raise InputError(f"{name_of(hook)} returned rows that do not fit the current ones: {error}") from error


def _every_row(rows: Batch) -> dict[str, Tensor]:
    """Return the tensors that rows always have, by name."""
    named = {
        field.name: getattr(rows, field.name) for field in fields(rows) if field.name not in ("source", "generated")
    }
    return {name: value for name, value in named.items() if isinstance(value, Tensor)}


def check_logits(hook: Callable[..., object], logits: object, n: int, units: int) -> None:
    """Refuse what are not the logits of n inputs."""
    if not isinstance(logits, Tensor) or logits.shape != (n, units):
        raise wrong(hook, logits, f"a tensor of shape ({n}, {units}), a logit for every input and output unit")


def state_of(method: Method) -> dict[str, Tensor]:
    """Return a method's state, checked to be named tensors that a file can hold."""
    kept: object = method.state()
    if not isinstance(kept, dict):
        raise wrong(method.state, kept, "a dictionary of tensors by name")
    for name, value in kept.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise wrong(method.state, {name: value}, "tensors by name: torch.tensor(3) for a number")
        if value.dtype not in STORED:
            raise InputError(f"{name_of(method.state)} returned {name} of {value.dtype}, which files do not hold")
    return kept


def check_loaded(method: Method, loaded: Mapping[str, Tensor]) -> None:
    """Refuse a method whose state is not what it has just loaded."""
    now = state_of(method)
    try:
        check_form(now, loaded)
        for name, tensor in loaded.items():
            if not torch.equal(now[name].cpu(), tensor.cpu()):
                raise InputError(f"{name} is not restored, it has other values")
    except InputError as error:
        raise InputError(
            f"after {type(method).__name__}.load_state, state() is not what was loaded: {error}"
        ) from error


def check_forgets(method: Method) -> None:
    """Refuse to forget classes if that would leave their samples in the method."""
    if facts_of(type(method)).keeps_data and type(method).forget is Method.forget:
        name = type(method).__name__
        raise InputError(
            f"{name} keeps samples, but does not say how to delete those of a class, so nothing was forgotten: "
            f"override forget(net, gone) in {name}"
        )


def tensors_of(method: Method) -> dict[str, list[Tensor]]:
    """Return the tensors that a method holds, by attribute."""
    return {name: tensors_in(value) for name, value in vars(method).items()}


def warn_of_lost(method: Method, before: Mapping[str, Sequence[Tensor]]) -> None:
    """Warn if a method without a state has changed these tensors, by attribute."""
    if state_of(method):
        return
    now = tensors_of(method)
    names = [name for name, tensors in before.items() if not same(tensors, now.get(name, []))]
    if names:
        warnings.warn(
            f"{type(method).__name__} changed {', '.join(names)} while learning, but its state() "
            "returns nothing: they are lost when resuming, copying or loading, and results will differ. "
            "Return what later tasks need in state(), restore it in load_state(), and reset the rest in "
            "after_task()",
            stacklevel=2,
        )


def warn_of_undeclared(optimizer: Optimizer) -> None:
    """Warn if an optimizer holds tensors that its state does not have."""
    declared = {id(tensor) for tensor in [*optimizer.parameters, *optimizer.state().values()]}
    found = {name: {id(tensor) for tensor in tensors_in(value)} for name, value in vars(optimizer).items()}
    names = [name for name, tensors in found.items() if tensors - declared]
    if names:
        warnings.warn(
            f"{type(optimizer).__name__} holds {', '.join(names)}, but neither in its slots nor in its scalars: they "
            "are lost when resuming, copying or loading, and results will differ. Declare them in the constructor, as "
            f"self.slots = {{{names[0]!r}: [one tensor per parameter]}} or self.scalars = {{{names[0]!r}: a tensor}}",
            stacklevel=2,
        )
