"""From inputs to features: encoders, layers that are initialised unit by unit, and the paper's encoder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from relive._util.errors import InputError, ReliveError, is_out_of_memory
from relive._util.seeds import drawing_from
from relive.networks.catalogue import EncoderFactory
from relive.networks.products import Linear
from relive.networks.random_features import SIZES, Size


def linear(n_in: int, n_out: int, rng: torch.Generator) -> Linear:
    """Return a linear layer with weights and biases from U(±1/√n_in).

    It is drawn unit by unit, so a layer that grows later has the same numbers as one created large.

    >>> small, large = (linear(3, n, torch.Generator().manual_seed(0)) for n in (2, 5))
    >>> torch.equal(small.weight, large.weight[:2])
    True
    """
    layer = Linear(n_in, n_out, device="meta")  # does not draw any numbers
    bound = 1 / math.sqrt(n_in)
    drawn = torch.rand(n_out, n_in + 1, generator=rng) * (2 * bound) - bound
    layer.weight = nn.Parameter(drawn[:, :-1].contiguous())  # to_empty would load PyTorch's compiler
    layer.bias = nn.Parameter(drawn[:, -1].contiguous())
    return layer


class MLP(nn.Module):
    """Hidden layers with ReLU, called ``layer1``, ``layer2`` and so on.

    Parameters
    ----------
    n_inputs, widths
        Numbers per input, and units of each hidden layer.
    rng
        The generator for the initial weights.
    """

    def __init__(self, n_inputs: int, widths: Sequence[int], rng: torch.Generator) -> None:
        super().__init__()
        for i, (n_in, n_out) in enumerate(zip((n_inputs, *widths), widths, strict=False), start=1):
            self.add_module(f"layer{i}", linear(n_in, n_out, rng))

    @property
    def layers(self) -> list[nn.Linear]:
        """The hidden layers, from the input on."""
        return [layer for layer in self.children() if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """Return the last layer's activations, (n, units)."""
        for layer in self.children():
            x = layer(x).relu_()
        return x


def mlp(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> MLP:
    """Return the paper's encoder: two hidden layers of the same width."""
    return MLP(math.prod(shape), (hidden, hidden), rng)


def inputs(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Identity:
    """Return no encoder at all: the features are the inputs."""
    return nn.Identity()


def mlp_of(*widths: int) -> EncoderFactory:
    """Return a factory for hidden layers of these widths, whatever ``hidden`` is.

    >>> [layer.out_features for layer in mlp_of(50, 20, 10)((8, 8), 400, torch.Generator()).layers]
    [50, 20, 10]
    """

    def make(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> MLP:
        return MLP(math.prod(shape), widths, rng)

    return make


@dataclass(frozen=True)
class Sizes:
    """The sizes of a network, and the factory of its encoder.

    Attributes
    ----------
    inputs
        Numbers per input.
    hidden
        Units per hidden layer.
    latent
        Latent variables of a generator.
    units
        Output units.
    likelihood
        How a generator models inputs: a name in ``LIKELIHOODS``.
    shape
        The shape of an input, such as (height, width); empty for a plain row of numbers.
    encoder
        The encoder's factory.
    """

    inputs: int
    hidden: int
    latent: int
    units: int
    likelihood: str = "bernoulli"
    shape: tuple[int, ...] = ()
    encoder: EncoderFactory = mlp


def make_encoder(sizes: Sizes, rng: torch.Generator) -> tuple[nn.Module, int]:
    """Return a new encoder and its number of features, found by a forward pass on zeros.

    Raises
    ------
    InputError
        If it cannot be created, is not a module, or does not return one row of features per input.
    """
    with drawing_from(rng):  # for layers that draw their own initial weights
        with _naming(sizes, "it is called with (shape, hidden, rng)"):
            encoder = sizes.encoder(sizes.shape or (sizes.inputs,), sizes.hidden, rng)
        if not isinstance(encoder, nn.Module):
            raise InputError(f"the encoder is {encoder!r}: the function that makes it must return a torch.nn.Module")
        with _naming(sizes, f"it is given rows (n, {sizes.inputs}): reshape them, e.g. {_reshaping(sizes.shape)}"):
            features = outputs_of(encoder, sizes.inputs)
    if not isinstance(features, Tensor):
        raise InputError(f"the encoder returns {type(features).__name__}: it must return a tensor (n, features)")
    if features.dim() != 2 or len(features) != 2:
        raise InputError(
            f"the encoder returns {tuple(features.shape)} for inputs of shape (2, {sizes.inputs}): it must "
            "return one row of features per input, (2, features)"
        )
    return encoder, features.shape[1]


def encoder_size(sizes: Sizes) -> Size:
    """Return an encoder's size; a user's own is created to find out."""
    if sizes.encoder in SIZES:
        return SIZES[sizes.encoder](sizes.shape or (sizes.inputs,), sizes.hidden)
    encoder, n_features = make_encoder(sizes, torch.Generator())
    return Size(sum(t.numel() for t in encoder.state_dict().values()), n_features)


@contextmanager
def _naming(sizes: Sizes, hint: str) -> Iterator[None]:
    """Make an error in a user's encoder name the function that makes it, and say what it is called with."""
    try:
        yield
    except ReliveError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        code = getattr(sizes.encoder, "__code__", None)
        place = f"{Path(code.co_filename).name}:" if code else ""
        name = f"{place}{getattr(sizes.encoder, '__name__', sizes.encoder)}"
        why = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        no_shape = (
            "" if len(sizes.shape) > 1 else f". An input's shape is {sizes.shape or (sizes.inputs,)}: if it is a "
        )
        advice = f"{no_shape}picture, say so with shape=(28, 28), or relive fit --shape 28x28" if no_shape else ""
        raise InputError(f"encoder {name}: {why}; {hint}{advice}") from error


def _reshaping(shape: tuple[int, ...]) -> str:
    """Return how rows become images for convolutions, (n, channels, height, width)."""
    if len(shape) == 3:
        return f"x.reshape(-1, {', '.join(map(str, shape))}).permute(0, 3, 1, 2)"
    return f"nn.Unflatten(1, (1, {', '.join(map(str, shape if len(shape) == 2 else (28, 28)))}))"


@torch.no_grad()
def outputs_of(module: nn.Module, n_inputs: int) -> Tensor:
    """Return a module's output for two rows of zeros, in evaluation mode."""
    with mode(module, training=False):
        outputs: Tensor = module(torch.zeros(2, n_inputs))
    return outputs


@contextmanager
def mode(net: nn.Module, *, training: bool) -> Iterator[None]:
    """Put a network into training or evaluation mode (for dropout and batch normalisation), and back."""
    before = net.training
    net.train(training)
    try:
        yield
    finally:
        net.train(before)


@torch.no_grad()
def fill(net: nn.Module, learned: Mapping[str, Tensor]) -> None:
    """Load the state of a network that has at most as many output units, including frozen parameters and buffers."""
    state = net.state_dict()
    for name, small in learned.items():
        state[name][tuple(map(slice, small.shape))] = small


def trainable(net: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are not frozen, in the network's order."""
    return [p for p in net.parameters() if p.requires_grad]
