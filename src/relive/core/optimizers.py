"""Optimizers: Adam, SGD with momentum, and the interface for the user's own.

An optimizer's entire state is visible: slots (one tensor per parameter) and scalars. Growth, checkpoints and model
files iterate over them without knowing which optimizer it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, Fidelity


class Optimizer(ABC):
    """Moves parameters along gradients.

    Parameters
    ----------
    parameters
        The parameters to train, changed in place.
    rate
        The learning rate.
    fidelity
        The paper's text or its code; Adam looks at ``adam_epsilon``.
    """

    name: ClassVar[str]  # prefix of its tensors in checkpoints and model files
    never_negative: ClassVar[
        tuple[str, ...]
    ] = ()  # slots and scalars that are not, but may overflow; others are finite

    def __init__(self, parameters: Sequence[Tensor], rate: float, fidelity: Fidelity = AS_RUN) -> None:
        self.parameters = list(parameters)
        self.rate = rate
        self.fidelity = fidelity
        self.slots: dict[str, list[Tensor]] = {}  # per-parameter tensors, by name
        self.scalars: dict[str, Tensor] = {}

    @abstractmethod
    def step(self, gradient: Sequence[Tensor]) -> None:
        """Move every parameter by its gradient."""

    def _zeros(self) -> list[Tensor]:
        """Return a slot of zeros."""
        return [torch.zeros_like(p, requires_grad=False) for p in self.parameters]

    def state(self) -> dict[str, Tensor]:
        """Return slots and scalars as named tensors, not copied."""
        state = {f"{self.name}.{slot}{i}": t for slot, tensors in self.slots.items() for i, t in enumerate(tensors)}
        return state | {f"{self.name}.{scalar}": t for scalar, t in self.scalars.items()}

    def check_state(self, state: dict[str, Tensor]) -> None:
        """Refuse impossible values in tensors with the names and shapes of ``state``."""
        for name in self.state():
            never_negative = name.removeprefix(f"{self.name}.").startswith(self.never_negative)
            if not bool((state[name] >= 0 if never_negative else state[name].isfinite()).all()):
                raise InputError(f"{name} has impossible values")

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore what ``state`` returned; rows or parameters added since keep their values."""
        for name, mine in self.state().items():
            if name not in state:
                continue
            mine[tuple(map(slice, state[name].shape))] = state[name]


class Adam(Optimizer):
    """Kingma & Ba (2015), β = (0.9, 0.999), ε = 1e-8, without weight decay.

    It calls PyTorch's fused kernel. ``torch.optim.Adam(fused=True)`` calls the same one, but its overhead
    exceeds the kernel's cost on networks of this size, and its first step loads PyTorch's compiler, two seconds
    per process (``docs/performance.md``). Without the kernel, PyTorch's public optimizer is used.

    With ``adam_epsilon = "before_correction"`` ε is added before the bias correction, as PyTorch did until 2019:
    √v + ε instead of √v̂ + ε, which is ε / √(1 − 0.999ᵗ) instead of ε.
    """

    name = "adam"
    never_negative = ("v", "steps")

    def __init__(self, parameters: Sequence[Tensor], rate: float, fidelity: Fidelity = AS_RUN) -> None:
        super().__init__(parameters, rate, fidelity)
        self.m, self.v = self._zeros(), self._zeros()
        self.steps = torch.zeros((), device=self.parameters[0].device if self.parameters else None)
        self.slots = {"m": self.m, "v": self.v}
        self.scalars = {"steps": self.steps}

    @torch.no_grad()
    def step(self, gradient: Sequence[Tensor]) -> None:
        if not self.parameters:  # all are frozen
            return
        self.steps += 1
        epsilon = 1e-8
        if self.fidelity.adam_epsilon == "before_correction":
            epsilon /= math.sqrt(1 - 0.999 ** self.steps.item())
        kernel = getattr(torch, "_fused_adam_", None)
        if kernel is None:
            self._public_step(gradient, epsilon)
            return
        kernel(
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

    def _public_step(self, gradient: Sequence[Tensor], epsilon: float) -> None:
        """Take the step with PyTorch's public optimizer, on our slots."""
        optimizer = torch.optim.Adam(self.parameters, self.rate, eps=epsilon, foreach=False)
        for p, g, m, v in zip(self.parameters, gradient, self.m, self.v, strict=True):
            p.grad = g
            optimizer.state[p] = {"step": self.steps - 1, "exp_avg": m, "exp_avg_sq": v}
        optimizer.step()
        for p in self.parameters:
            p.grad = None


class SGD(Optimizer):
    r"""Stochastic gradient descent with momentum, as PyTorch writes it; Polyak (1964).

    .. math:: v \leftarrow 0.9 v + g \qquad \theta \leftarrow \theta - \eta v
    """

    name = "sgd"
    MOMENTUM: ClassVar = 0.9

    def __init__(self, parameters: Sequence[Tensor], rate: float, fidelity: Fidelity = AS_RUN) -> None:
        super().__init__(parameters, rate, fidelity)
        self.slots = {"velocity": self._zeros()}

    @torch.no_grad()
    def step(self, gradient: Sequence[Tensor]) -> None:
        for p, g, velocity in zip(self.parameters, gradient, self.slots["velocity"], strict=True):
            velocity.mul_(self.MOMENTUM).add_(g)
            p.sub_(velocity, alpha=self.rate)
