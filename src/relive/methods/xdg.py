"""Context-dependent Gating: each task uses its own random subset of the hidden units.

For every task, a random share X of each hidden layer's units is switched off for good: an activation h becomes g ⊙ h
with g ∈ {0, 1}. The task must be known to choose the gates, so this is for Task-IL only.

Masse, Grant & Freedman (2018), "Alleviating catastrophic forgetting using context-dependent gating and synaptic
stabilization", PNAS 115. Deviations: gates only, without the stabilisation; and, as in the 2018 code, the gate
multiplies xWᵀ before the bias is added, so a gated unit still emits ReLU(bias).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from relive._util.errors import InputError
from relive.core.method import Method, Problem
from relive.core.state import check_form
from relive.methods.catalogue import METHODS
from relive.networks import MLP, Classifier
from relive.networks.products import affine


class XdG(Method):
    """Gate off a share of the hidden units, a different one for each task."""

    facts: ClassVar = METHODS["xdg"]

    def __init__(self, proportion: float = 0.95) -> None:
        self.proportion = proportion

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        net = super().build(problem, rng)
        widths = {layer.out_features for layer in _layers(net)}
        if len(widths) != 1:
            raise InputError(f"XdG gates hidden layers of equal width, but this encoder's have {sorted(widths)} units")
        hidden, n_tasks = widths.pop(), len(problem.scenario.classes)
        off = int(self.proportion * hidden)
        order = torch.rand(n_tasks, len(_layers(net)), hidden, generator=rng).argsort(-1)
        self.gates_ = (order >= off).float().to(problem.device)  # (tasks, layers, hidden)
        return net

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        h = x
        for layer, gate in zip(_layers(net), self.gates_[task].unbind(1), strict=True):  # gate: (n, hidden)
            h = self._gated(layer, h, gate)
        logits: Tensor = net.head(h)
        return logits

    def _gated(self, layer: nn.Linear, x: Tensor, gate: Tensor) -> Tensor:
        if self.problem.fidelity.xdg_gate == "before_bias":
            return relu(gate * affine(x, layer.weight) + layer.bias)
        return gate * relu(layer(x))

    def state(self) -> dict[str, Tensor]:
        return {"gates": self.gates_}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.gates_ = state["gates"]

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        check_form(state, {"gates": self.gates_})
        if not bool(((state["gates"] == 0) | (state["gates"] == 1)).all()):
            raise InputError("gates are not all 0 or 1")


def _layers(net: Classifier) -> list[nn.Linear]:
    """Return the hidden layers that can be gated."""
    if not isinstance(net.encoder, MLP):
        raise InputError(
            f"XdG does not support the encoder {type(net.encoder).__name__}: it gates the units of hidden "
            "layers, as in mlp or any other relive.networks.MLP"
        )
    return net.encoder.layers
