"""The encoders that come with the package, readable without torch, and how one of one's own is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from relive._util.errors import InputError
from relive._util.registry import Registry, is_address, load_object

if TYPE_CHECKING:
    import torch

# (shape, hidden, rng) → a module from (n, inputs) to (n, features)
EncoderFactory: TypeAlias = "Callable[[tuple[int, ...], int, torch.Generator], torch.nn.Module]"


@dataclass(frozen=True)
class EncoderFacts:
    """An encoder that has a name.

    Attributes
    ----------
    name, title
        On the command line, and for people.
    home
        Where what makes it is: ``package.module:function``.
    """

    name: str
    home: str
    title: str


ENCODERS = Registry(
    "encoder",
    "relive.encoders",
    [
        EncoderFacts("mlp", "relive.networks.encoders:mlp", "two hidden layers with ReLU, the paper's"),
        EncoderFacts("conv", "relive.networks.convolution:conv", "two strided convolutions and a hidden layer"),
    ],
)


def check_encoder(name: str) -> None:
    """Refuse a name that no encoder has, and an address where there is none; a name is looked up without torch."""
    if is_address(name):
        encoder_factory(name)
    else:
        ENCODERS[name]


def encoder_factory(encoder: str | EncoderFactory) -> EncoderFactory:
    """Return what makes an encoder: that of a name, that at an address (``my_file.py:make``), or the callable itself.

    >>> encoder_factory("mlp").__name__
    'mlp'
    """
    found = encoder
    if isinstance(encoder, str):
        found = load_object(encoder if is_address(encoder) else ENCODERS[encoder].home)
    if not callable(found):
        raise InputError(
            f"encoder = {encoder!r}: it must be one of {', '.join(ENCODERS)}, an address such as my_file.py:make, or a "
            "function (shape, hidden, rng) that returns a torch.nn.Module"
        )
    return found
