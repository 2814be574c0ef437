r"""Elastic Weight Consolidation: pull parameters back to their old values, each as strongly as earlier tasks need it.

EWC adds one quadratic term per past task, anchored where that task ended:

.. math:: \lambda \sum_{k=1}^{K-1} \tfrac12 \sum_i F^{(k)}_{ii} (\theta_i - \hat\theta^{(k)}_i)^2

Kirkpatrick et al. (2017), "Overcoming catastrophic forgetting in neural networks", PNAS 114. Online EWC keeps a single
term, anchored after the last task, with a running sum :math:`\tilde F^{(k)} = \gamma\tilde F^{(k-1)} + F^{(k)}`:

.. math:: \lambda \sum_i \tilde F^{(K-1)}_{ii} (\theta_i - \hat\theta^{(K-1)}_i)^2

as the reproduced paper writes it. Its code (``as_run``, the default) has a factor ½γ in front, as do Schwarz et al.
(2018), "Progress & Compress", ICML; see also Huszár (2018), PNAS 115. Deviations: F is the diagonal over the task's
whole training set; in ``as_run`` it uses predicted labels and is divided by N − 1. The fidelity choices are
``fisher_labels``, ``fisher_divisor`` and ``online_ewc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive.core.losses import QuadraticPenalty
from relive.core.method import Method, Problem
from relive.core.sources import Part
from relive.core.state import check_form
from relive.methods.catalogue import METHODS
from relive.networks import Classifier, trainable
from relive.networks.fisher import fisher_sum


def fisher(net: Classifier, learned: Sequence[Part], seen: int, problem: Problem, chunk: int = 1000) -> list[Tensor]:
    """Return the Fisher information of what was learned, one tensor per parameter that is not frozen."""
    scenario, fidelity = problem.scenario, problem.fidelity
    total: dict[str, Tensor] = {}
    for part in learned:
        units, examples = scenario.units(part.task), part.examples
        chunks = [slice(start, start + chunk) for start in range(0, len(examples), chunk)]
        batches = ((examples.inputs(rows), units[examples.labels[rows]]) for rows in chunks)
        of_part = fisher_sum(net, batches, scenario.active(part.task, seen), fidelity.fisher_labels)
        total = {name: total[name] + sums for name, sums in of_part.items()} if total else of_part
    n = sum(len(part.examples) for part in learned) - (fidelity.fisher_divisor == "n_minus_1")
    return [total[name] / max(n, 1) for name, p in net.named_parameters() if p.requires_grad]


def copies(net: Classifier) -> list[Tensor]:
    """Return the current values of all parameters except frozen ones."""
    return [p.detach().clone() for p in trainable(net)]


def enlarged(tensors: list[Tensor], net: Classifier) -> list[Tensor]:
    """Return one tensor per parameter, padded with zeros for rows that the parameter has gained."""
    large = [t.new_zeros(p.shape) for t, p in zip(tensors, trainable(net) if tensors else (), strict=True)]
    for t, zeros in zip(tensors, large, strict=True):
        zeros[tuple(map(slice, t.shape))] = t
    return large


class EWC(Method):
    """One quadratic penalty per past task; a sum of quadratics is a quadratic, so it is stored and computed as one.

    Its minimum is stored in float64: float32 would round it by as much as parameters move under a strong penalty.
    """

    facts: ClassVar = METHODS["ewc"]

    def __init__(self, lam: float = 5000.0) -> None:
        self.lam = lam
        self.fisher_: list[Tensor] = []  # Σ F of the past tasks
        self.anchor_: list[Tensor] = []  # the mean of their θ̂, weighted with F, in float64

    def before_task(self, net: Classifier, known: int) -> None:
        self.penalty_ = None
        if self.fisher_:
            newest = copies(net)  # θ̂ of the previous task
            offsets = [(a - p).float() for a, p in zip(self.anchor_, newest, strict=True)]
            self.penalty_ = QuadraticPenalty(self.fisher_, newest, offsets)

    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        if self.penalty_ is not None:
            self.penalty_.add_gradient(theta, 0.5 * self.lam, gradient)

    @torch.no_grad()
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        new, theta = fisher(net, learned, seen, self.problem), [p.double() for p in copies(net)]
        if not self.fisher_:
            self.fisher_, self.anchor_ = new, theta
            return
        for i, (S, a, F, p) in enumerate(zip(self.fisher_, self.anchor_, new, theta, strict=True)):
            # S (θ − a)² + F (θ − p)² = (S + F) (θ − a')² + constant,  a' = a + w (p − a),  w = F / (S + F)
            w = torch.where(F > 0, F.double() / (S.double() + F), 0)
            self.anchor_[i] = torch.where(S > 0, a + w * (p - a), p)
            S += F

    def grow(self, net: Classifier) -> None:
        self.fisher_, self.anchor_ = enlarged(self.fisher_, net), enlarged(self.anchor_, net)

    def state(self) -> dict[str, Tensor]:
        state = {f"fisher{i}": tensor for i, tensor in enumerate(self.fisher_)}
        return state | {f"anchor{i}": tensor for i, tensor in enumerate(self.anchor_)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.fisher_ = [t.clone() for t in _numbered(state, "fisher")]
        self.anchor_ = [t.clone() for t in _numbered(state, "anchor")]

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        theta = trainable(net)
        expected: dict[str, Tensor] = {f"fisher{i}": p for i, p in enumerate(theta)}
        check_form(state, expected | {f"anchor{i}": p.double() for i, p in enumerate(theta)})

    @staticmethod
    def upgraded(state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Until 0.1 anchors were float32, and the sum's constant was stored."""
        old = [name for name, t in state.items() if name.startswith("anchor") and t.dtype == torch.float32]
        return {name: t.double() if name in old else t for name, t in state.items() if name != "rest"}


class OnlineEWC(Method):
    """One quadratic penalty, with a decaying sum of the tasks' Fisher informations."""

    facts: ClassVar = METHODS["online-ewc"]

    def __init__(self, lam: float = 5000.0, gamma: float = 1.0) -> None:
        self.lam = lam
        self.gamma = gamma
        self.fisher_: list[Tensor] = []

    def before_task(self, net: Classifier, known: int) -> None:
        self.penalty_ = QuadraticPenalty(self.fisher_, copies(net)) if self.fisher_ else None

    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        if self.penalty_ is not None:
            half_gamma_twice = self.problem.fidelity.online_ewc == "half_gamma_twice"
            factor = 0.5 * self.gamma if half_gamma_twice else 1.0
            self.penalty_.add_gradient(theta, self.lam * factor, gradient)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        F = fisher(net, learned, seen, self.problem)
        if self.fisher_:
            F = [self.gamma * old + new for old, new in zip(self.fisher_, F, strict=True)]
        self.fisher_ = F

    def grow(self, net: Classifier) -> None:
        self.fisher_ = enlarged(self.fisher_, net)

    def state(self) -> dict[str, Tensor]:
        return {f"fisher{i}": tensor for i, tensor in enumerate(self.fisher_)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.fisher_ = _numbered(state, "fisher")

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        check_form(state, {f"fisher{i}": p for i, p in enumerate(trainable(net))})


def _numbered(state: dict[str, Tensor], prefix: str) -> list[Tensor]:
    """Return the tensors named prefix0, prefix1, … in that order."""
    found: list[Tensor] = []
    while f"{prefix}{len(found)}" in state:
        found.append(state[f"{prefix}{len(found)}"])
    return found
