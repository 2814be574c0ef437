"""The encoders that come with the package, readable without torch, and how to find the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from relive._util.errors import InputError
from relive._util.registry import Entry, Registry

if TYPE_CHECKING:
    import torch

# (shape, hidden, rng) → a module from (n, inputs) to (n, features)
EncoderFactory: TypeAlias = "Callable[[tuple[int, ...], int, torch.Generator], torch.nn.Module]"

ENCODERS = Registry(
    "encoder",
    "relive.encoders",
    [
        Entry("mlp", "relive.networks.encoders:mlp", "two hidden layers with ReLU, the paper's"),
        Entry("conv", "relive.networks.convolution:conv", "two strided convolutions and a hidden layer"),
        Entry("inputs", "relive.networks.encoders:inputs", "none: the features are the inputs"),
        Entry("random", "relive.networks.random_features:random", "fixed random features: convolutions for images"),
        Entry("random-flat", "relive.networks.random_features:flat", "fixed random features of a plain row of numbers"),
    ],
    factory="a function (shape, hidden, rng) that returns a torch.nn.Module",
)


# of random features (relive.networks.random_features)
WIDE = 512  # inputs; beyond, principal axes replace them
BOUND = 3.0  # scaled inputs are compressed logarithmically beyond
FIRST = 32  # filters of the first convolution
COARSE, FINE = 3, 4  # the second convolution is averaged over 3 × 3 fields, the first over 4 × 4

LIKELIHOODS = ("bernoulli", "gaussian")  # names in relive.networks.likelihoods


def encoder_factory(encoder: str | EncoderFactory) -> EncoderFactory:
    """Return an encoder's factory: by name, by address (``my_file.py:make``), or the callable itself.

    >>> encoder_factory("mlp").__name__
    'mlp'
    """
    made: EncoderFactory = ENCODERS.find(encoder)
    from torch import nn

    if isinstance(made, nn.Module):
        raise InputError(f"encoder is a module, {type(made).__name__}: give the {ENCODERS.factory.removeprefix('a ')}")
    return made
