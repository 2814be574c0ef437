r"""Synaptic Intelligence: protect parameters in proportion to how much they lowered the loss along their path.

.. math::
    \omega_i \mathrel{+}= (\theta_i[t] - \theta_i[t-1]) \cdot -\frac{\partial L_\text{total}[t]}{\partial\theta_i}
    \qquad \Omega_i \mathrel{+}= \frac{\omega_i}{\Delta_i^2 + \xi}
    \qquad \text{penalty} = c \sum_i \Omega_i (\theta_i - \hat\theta_i)^2

ω is accumulated over a task's steps, Δ is the total change during the task, θ̂ the parameters after the last task.

Zenke, Poole & Ganguli (2017), "Continual learning through synaptic intelligence", ICML. As in the paper
reproduced here, ω uses the gradient of the total loss, penalty included, and there is no ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.losses import QuadraticPenalty
from relive.core.method import Method
from relive.core.sources import Part
from relive.core.state import check_form
from relive.methods.catalogue import METHODS
from relive.methods.ewc import copies, enlarged
from relive.networks import Classifier, trainable


class SI(Method):
    """A quadratic penalty whose importances are accumulated while learning."""

    facts: ClassVar = METHODS["si"]

    def __init__(self, c: float = 0.1, xi: float = 0.1) -> None:
        self.c = c
        self.xi = xi
        self.Omega_: list[Tensor] = []

    def before_task(self, net: Classifier, known: int) -> None:
        self.start_ = copies(net)  # θ[0] of this task, and θ̂ of the previous one
        self.previous_ = copies(net)  # θ[t-1]
        self.omega_ = [torch.zeros_like(p) for p in self.start_]
        self.penalty_ = QuadraticPenalty(self.Omega_, self.start_) if self.Omega_ else None

    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        if self.penalty_ is not None:
            self.penalty_.add_gradient(theta, self.c, gradient)

    @torch.no_grad()
    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        # ω += (θ[t] − θ[t−1]) · −∂L/∂θ, with θ[t−1] − θ[t] made in place
        for p, g, previous, omega in zip(theta, gradient, self.previous_, self.omega_, strict=True):
            omega.addcmul_(previous.sub_(p), g)
            previous.copy_(p)

    @torch.no_grad()
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        way = zip(trainable(net), self.start_, self.omega_, strict=True)
        gained = [omega / ((p - start) ** 2 + self.xi) for p, start, omega in way]
        self.Omega_ = [a + b for a, b in zip(self.Omega_, gained, strict=True)] if self.Omega_ else gained

    def grow(self, net: Classifier) -> None:
        self.Omega_ = enlarged(self.Omega_, net)

    def state(self) -> dict[str, Tensor]:
        return {f"Omega{i}": Omega for i, Omega in enumerate(self.Omega_)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.Omega_ = [state[f"Omega{i}"] for i in range(len(state))]

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        check_form(state, {f"Omega{i}": p for i, p in enumerate(trainable(net))})
