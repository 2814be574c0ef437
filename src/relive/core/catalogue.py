"""The optimizers that come with the package, readable without torch, and how to find the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from relive._util.errors import InputError
from relive._util.registry import Entry, Registry

if TYPE_CHECKING:
    from torch import Tensor

    from relive._util.fidelity import Fidelity
    from relive.core.optimizers import Optimizer

# (parameters, rate, fidelity) → an optimizer
OptimizerFactory: TypeAlias = "Callable[[Sequence[Tensor], float, Fidelity], Optimizer]"

OPTIMIZERS = Registry(
    "optimizer",
    "relive.optimizers",
    [
        Entry("adam", "relive.core.optimizers:Adam", "Adam, β = (0.9, 0.999), the paper's"),
        Entry("sgd", "relive.core.optimizers:SGD", "stochastic gradient descent with momentum 0.9"),
    ],
    factory="a function (parameters, rate, fidelity) that returns a relive.core.optimizers.Optimizer",
)


def optimizer_factory(optimizer: str | OptimizerFactory) -> OptimizerFactory:
    """Return an optimizer's factory: by name, by address, or the callable itself.

    >>> optimizer_factory("sgd").__name__
    'SGD'
    """
    made: OptimizerFactory = OPTIMIZERS.find(optimizer)
    if isinstance(made, type):
        _check_class(made)
    return made


def _check_class(made: type) -> None:
    """Refuse a class that cannot be used as an optimizer, before it is."""
    from relive.core.optimizers import Optimizer

    if not issubclass(made, Optimizer) or inspect.isabstract(made) or not isinstance(getattr(made, "name", None), str):
        raise InputError(
            f"optimizer {made.__name__} must extend relive.core.optimizers.Optimizer, with a text `name` and a "
            "function `step`"
        )
    try:
        inspect.signature(made).bind([], 0.0, None)
    except TypeError as error:
        raise InputError(
            f"optimizer {made.__name__} must be created from (parameters, rate, fidelity): {error}"
        ) from error
