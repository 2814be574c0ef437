r"""The diagonal of the Fisher information of a classifier, exact, for any encoder.

The gradient of a sample's log-likelihood with respect to a linear layer's weights is the outer product of g, the
gradient at the layer's output, and a, the layer's input. Its square is the outer product of the squares, so the sum
over samples is one matrix product, :math:`(g^2)^\top (a^2)`: no loop over samples. A convolution's gradient is a sum of
such outer products over positions, which must be squared sample by sample, in one batched product. All other
parameters get their gradients sample by sample from ``torch.func``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn, split
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.functional import one_hot, unfold

from relive.networks import Classifier
from relive.networks.encoders import mode
from relive.networks.head import masked
from relive.networks.products import Linear, affine

Labels = Literal["true", "predicted", "expected"]
AT_ONCE = 50  # samples whose gradients of a whole layer are held in memory together


@torch.no_grad()
def fisher_sum(
    net: Classifier, batches: Iterable[tuple[Tensor, Tensor]], active: Tensor, labels: Labels
) -> dict[str, Tensor]:
    r"""Return :math:`\sum_x (\partial \log p_\theta(Y=y|x) / \partial \theta_i)^2` for every parameter not frozen.

    The network is in evaluation mode, where samples do not depend on each other.

    Parameters
    ----------
    net
        The classifier, at the parameters where the information is wanted.
    batches
        Inputs (n, inputs) with their true units (n,), any number of samples at a time.
    active
        (units,) bool, the units in the softmax.
    labels
        Which y: the ``"true"`` one, the most likely one (``"predicted"``), or all of them, each weighted by its
        probability (``"expected"``: the Fisher information itself).
    """
    head, encoder = net.head, net.encoder
    trained = {name: p for name, p in encoder.named_parameters(prefix="encoder") if p.requires_grad}
    total = {name: torch.zeros_like(p) for name, p in trained.items()}
    total |= {f"head.{name}": torch.zeros_like(p) for name, p in head.named_parameters()}
    with mode(net, training=False):
        for x, unit in batches:
            h, taps = _tapped(encoder, x)
            tapped = {f"{tap.name}.{name}" for tap in taps for name, _ in tap.layer.named_parameters()}
            rest = {name: p.detach() for name, p in trained.items() if name not in tapped}
            p = masked(head(h), active).softmax(1)
            for y, share in _label_choices(p, unit, active, labels):
                g = p - one_hot(y, p.shape[1]).to(p.dtype)  # (n, units): minus the gradient of log p at the logits
                squared, h_squared = g.square() * share.unsqueeze(1), h.square()
                totals = (split(total[f"head.{name}"], head.blocks) for name in ("weight", "bias"))
                for part, weight, bias in zip(split(squared, head.blocks, 1), *totals, strict=True):
                    weight += part.T @ h_squared
                    bias += part.sum(0)
                for name, sums in _encoder_sums(encoder, x, h, g @ head.weight, share, taps, rest):
                    total[name] += sums
    return total


def _label_choices(p: Tensor, unit: Tensor, active: Tensor, labels: Labels) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the labels (n,) for which to take the gradient, with the weight (n,) of each sample."""
    if labels == "expected":
        for c in active.nonzero().flatten():
            yield c.expand(len(p)), p[:, c]
    else:
        yield (unit if labels == "true" else p.argmax(1)), p.new_ones(len(p))


@dataclass(frozen=True)
class _Tap:
    """A layer of the encoder with its input, and where to get the gradient at its output."""

    name: str
    layer: nn.Linear | nn.Conv2d
    a: Tensor
    output: GradientEdge  # before any later in-place change


def _tapped(encoder: nn.Module, x: Tensor) -> tuple[Tensor, list[_Tap]]:
    """Return the features (n, features), and a tap at each layer whose gradients follow from its inputs and outputs.

    That is a linear layer or convolution that is called once, on one row or image per sample, and shares its parameters
    with no other layer. We assume that its parameters are not used without calling it, and do without their gradients.
    """
    owners = Counter(id(p) for _, p in encoder.named_parameters(remove_duplicate=False))
    taps: list[_Tap] = []
    with ExitStack() as undo, torch.enable_grad():
        for name, layer in encoder.named_modules(prefix="encoder"):
            trained = [p for p in layer.parameters() if p.requires_grad]
            if trained and _is_plain(layer) and all(owners[id(p)] == 1 for p in layer.parameters()):
                undo.callback(layer.register_forward_hook(_tap_into(taps, name, len(x))).remove)
                for p in trained:
                    undo.callback(p.requires_grad_)
                    p.requires_grad_(False)
        h: Tensor = encoder(x.detach().requires_grad_())
    calls = Counter(tap.name for tap in taps)
    return h, [tap for tap in taps if calls[tap.name] == 1]


def _is_plain(layer: nn.Module) -> bool:
    """Return whether the gradients of a layer of this kind follow from its inputs and outputs."""
    if type(layer) is nn.Conv2d:
        return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return type(layer) in (nn.Linear, Linear)


def _tap_into(taps: list[_Tap], name: str, n: int) -> Any:
    def hook(layer: nn.Linear | nn.Conv2d, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        dims = 2 if isinstance(layer, nn.Linear) else 4
        if inputs and inputs[0].dim() == dims and len(inputs[0]) == n and output.requires_grad:
            taps.append(_Tap(name, layer, inputs[0].detach(), get_gradient_edge(output)))

    return hook


def _encoder_sums(
    encoder: nn.Module, x: Tensor, h: Tensor, g: Tensor, share: Tensor, taps: list[_Tap], rest: dict[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield, by name, the sum over samples of each parameter's squared gradient, given that at the features, g."""
    at_outputs: tuple[Tensor | None, ...] = ()
    if taps:
        edges = [tap.output for tap in taps]
        with torch.enable_grad():
            along_g = (h * g).sum()  # its gradient at h is g; given g itself, PyTorch would load sympy, for 0.3 s
        at_outputs = torch.autograd.grad(along_g, edges, retain_graph=True, allow_unused=True)
    for tap, g_output in zip(taps, at_outputs, strict=True):
        if g_output is None:  # the features do not depend on this layer
            continue
        of_layer = _convolution if isinstance(tap.layer, nn.Conv2d) else _linear
        for (name, p), sums in zip(tap.layer.named_parameters(), of_layer(tap, g_output, share), strict=False):
            if p.requires_grad:
                yield f"{tap.name}.{name}", sums
    if rest:
        yield from _one_by_one(encoder, x, g, share, rest)


def _linear(tap: _Tap, g: Tensor, share: Tensor) -> Iterator[Tensor]:
    """Yield a linear layer's sums: of its weights, and of its biases."""
    squared = g.square() * share.unsqueeze(1)
    yield affine(squared.T, tap.a.square().T)
    yield squared.sum(0)


def _convolution(tap: _Tap, g: Tensor, share: Tensor) -> Iterator[Tensor]:
    """Yield a convolution's sums: of its weights, and of its biases."""
    layer, total = tap.layer, torch.zeros_like(tap.layer.weight)
    assert isinstance(layer, nn.Conv2d)
    assert not isinstance(layer.padding, str)
    for some_a, some_g, some_share in zip(*(split(t, AT_ONCE) for t in (tap.a, g, share)), strict=True):
        n, groups = len(some_a), layer.groups
        patches = unfold(some_a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        patches = patches.reshape(n, groups, -1, patches.shape[2])  # (n, groups, channels · kernel, places)
        outputs = some_g.reshape(n, groups, -1, patches.shape[3])  # (n, groups, channels, places)
        total += _squares(outputs @ patches.mT, some_share).view_as(total)
    yield total
    yield _squares(g.sum((2, 3)), share)


def _one_by_one(
    encoder: nn.Module, x: Tensor, g: Tensor, share: Tensor, theta: dict[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield, by name, the sums of any parameters, computing each sample's gradient separately."""
    from torch.func import functional_call, grad, vmap

    def along_g(theta: dict[str, Tensor], row: Tensor, g_row: Tensor) -> Tensor:
        own_names = {name.removeprefix("encoder."): p for name, p in theta.items()}
        features: Tensor = functional_call(encoder, own_names, (row.unsqueeze(0),))
        return features.squeeze(0) @ g_row

    gradients = vmap(grad(along_g), in_dims=(None, 0, 0))
    for some_x, some_g, some_share in zip(*(split(t, AT_ONCE) for t in (x, g, share)), strict=True):
        with warnings.catch_warnings():  # operations that vmap loops over are slower, but correct
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            of_parameters = gradients(theta, some_x, some_g)
        for name, of_samples in of_parameters.items():
            yield name, _squares(of_samples, some_share).view_as(theta[name])


def _squares(of_samples: Tensor, share: Tensor) -> Tensor:
    """Return the weighted sum over samples of their squares, as one row."""
    return share @ of_samples.square().reshape(len(of_samples), -1)
