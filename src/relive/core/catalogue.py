"""The optimizers that come with the package, readable without torch, and how to find the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

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
    return made
