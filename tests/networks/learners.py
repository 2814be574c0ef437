"""Learners with an encoder of any kind, and encoders with unusual training behaviour."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.methods import make_method
from relive.networks import MLP
from relive.networks.catalogue import EncoderFactory
from tests import plain

Shape = tuple[int, ...]


def batch_norm(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    """A network with buffers that change in training, and with noise in training."""
    return nn.Sequential(
        nn.Linear(math.prod(shape), hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.3), nn.Linear(hidden, 5)
    )


def half_frozen(shape: Shape, hidden: int, rng: torch.Generator) -> nn.Module:
    """A frozen first layer, and another layer with only its bias frozen."""
    encoder = MLP(math.prod(shape), (hidden, hidden), rng)
    encoder.layers[0].requires_grad_(False)
    encoder.layers[1].bias.requires_grad_(False)
    return encoder


def learner_of(method: str, encoder: str | EncoderFactory, n_tasks: int = 3, scenario: str = "class") -> Learner:
    tasks = plain.split_tasks()[:n_tasks]
    return Learner(
        make_method(method),
        scenario_of(scenario, [task.classes for task in tasks]),
        16,
        encoder=encoder,
        shape=(4, 4),
        hidden=12,
        latent=5,
        batch_size=8,
        learning_rate=0.01,
    )


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
