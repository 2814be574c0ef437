"""Context-dependent Gating: each task uses its own random subset of the hidden units.

For every task, a share X of each hidden layer's units is switched off, drawn once: an activation h becomes g ⊙ h with
g ∈ {0, 1}. The task must be known to choose the gates, so this is for Task-IL only.

Masse, Grant & Freedman (2018), "Alleviating catastrophic forgetting using context-dependent gating and synaptic
stabilization", PNAS 115. Departure: gates only, without the stabilisation; and as the 2018 code ran it, the gate
multiplies xWᵀ before the bias is added, so a gated unit still emits ReLU(bias).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from relive.methods.base import Method, Problem
from relive.networks import Classifier


class XdG(Method):
    """Gate off a share of the hidden units, other ones for each task."""

    title: ClassVar = "XdG"
    reference: ClassVar = "Masse et al. 2018, context-dependent gating"
    scenarios: ClassVar = ("task",)
    why_not: ClassVar = "it chooses which units to gate by the task, so the task must be known when predicting"
    limits: ClassVar = {"proportion": (0, 0.99)}
    explain: ClassVar = {"proportion": "X, the share of each hidden layer's units that is gated off"}
    choices: ClassVar = ("xdg_gate",)

    def __init__(self, proportion: float = 0.95) -> None:
        self.proportion = proportion

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        net = super().build(problem, rng)
        hidden, n_tasks = problem.sizes.hidden, len(problem.scenario.classes)
        off = int(self.proportion * hidden)
        order = torch.rand(n_tasks, 2, hidden, generator=rng).argsort(-1)
        self.gates_ = (order >= off).float()  # (tasks, layers, hidden)
        return net

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        gate1, gate2 = self.gates_[task].unbind(1)  # (n, hidden) each
        h = self._gated(net.encoder.layer1, x, gate1)
        logits: Tensor = net.head(self._gated(net.encoder.layer2, h, gate2))
        return logits

    def _gated(self, layer: nn.Linear, x: Tensor, gate: Tensor) -> Tensor:
        if self.problem.fidelity.xdg_gate == "before_bias":
            return relu(gate * linear(x, layer.weight) + layer.bias)
        return gate * relu(layer(x))

    def state(self) -> dict[str, Tensor]:
        return {"gates": self.gates_}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.gates_ = state["gates"]
