"""From inputs to features, for the encoders of the catalogue: each function mirrors ``forward`` of a module.

==================  ==============================================================
``mlp``             ``relive.networks.encoders.MLP``
``inputs``          ``relive.networks.encoders.inputs``
``conv``            ``relive.networks.convolution.Conv``
``flat``            ``relive.networks.random_features.FlatFeatures``
``convolutional``   ``relive.networks.random_features.ConvolutionalFeatures``
==================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.classifier.modelheader import require
from relive.inference.graph import Graph
from relive.inference.tensors import Tensors
from relive.networks.catalogue import BOUND, COARSE, ENCODERS, FINE, FIRST
from relive.networks.pictures import Picture, fields, overlapping, pooled_by

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Encoded:
    """What an encoder needs to add itself to a graph.

    Attributes
    ----------
    graph
        The graph.
    x
        The inputs, (n, inputs) float32.
    tensors
        Of the encoder.
    n_inputs, n_features
        Numbers per input; features, as the output layer expects them.
    shape
        The shape of an input; empty for a plain row.
    """

    graph: Graph
    x: str
    tensors: Tensors
    n_inputs: int
    n_features: int
    shape: tuple[int, ...]


def mlp_layers(asked: Encoded) -> list[tuple[Array, Array]]:
    """Return the weights and biases of two hidden layers of equal width, which are the features."""
    hidden = asked.n_features
    return [
        (asked.tensors.take(f"layer{i}.weight", (hidden, n)), asked.tensors.take(f"layer{i}.bias", (hidden,)))
        for i, n in enumerate((asked.n_inputs, hidden), start=1)
    ]


def mlp(asked: Encoded) -> str:
    """Two hidden layers with ReLU."""
    h = asked.x
    for weight, bias in mlp_layers(asked):
        h = asked.graph.add("Relu", asked.graph.linear(h, weight, bias))
    return h


def inputs(asked: Encoded) -> str:
    """Return the inputs themselves."""
    require(asked.n_features == asked.n_inputs, "its output layer does not fit its inputs")
    return asked.x


def conv(asked: Encoded) -> str:
    """Two strided convolutions and a hidden layer, all with ReLU."""
    picture = Picture.of(asked.shape, "encoder 'conv'")
    graph, tensors = asked.graph, asked.tensors
    maps, channels = _planes(asked, picture), picture.channels
    for name in ("conv1", "conv2"):
        weight = tensors.take(f"{name}.weight", (None, channels, 3, 3))
        channels = len(weight)
        bias = tensors.take(f"{name}.bias", (channels,))
        maps = graph.add("Relu", graph.add("Conv", maps, weight, bias, pads=[1] * 4, strides=[2, 2]))
    small = channels * -(-picture.height // 4) * -(-picture.width // 4)
    hidden = asked.n_features
    weight, bias = tensors.take("layer.weight", (hidden, small)), tensors.take("layer.bias", (hidden,))
    return graph.add("Relu", graph.linear(graph.add("Flatten", maps, axis=1), weight, bias))


def flat(asked: Encoded) -> str:
    """Return scaled inputs, compressed logarithmically, or their axes, and random ReLU features of them."""
    graph, tensors, n = asked.graph, asked.tensors, asked.n_inputs
    middle, spread = tensors.take("middle", (n,)), tensors.take("spread", (n,))
    require(bool((spread != 0).all()), "its encoder's spread has zeros")
    z = bounded(graph, graph.add("Div", graph.add("Sub", asked.x, middle), spread), np.array(BOUND, np.float32))
    if "axes" in tensors:
        axes = tensors.take("axes", (None, n))
        z, n = graph.linear(z, axes, tensors.take("origin", (len(axes),))), len(axes)
    weight = tensors.take("weight", (None, n))
    h = graph.add("Relu", graph.linear(z, weight, tensors.take("bias", (len(weight),))))
    require(asked.n_features - len(weight) in (0, n), "its output layer does not fit its random features")
    return graph.add("Concat", z, h, axis=1) if asked.n_features > len(weight) else h


def bounded(graph: Graph, z: str, limit: Array) -> str:
    """Compress numbers logarithmically beyond a limit: z within it, ± limit (1 + log(|z| / limit)) outside."""
    far = graph.add("Div", graph.add("Abs", z), limit)
    beyond = graph.add("Mul", graph.add("Log", graph.add("Max", far, np.ones_like(limit))), limit)
    return graph.add("Add", graph.add("Clip", z, -limit, limit), graph.add("Mul", graph.add("Sign", z), beyond))


def convolutional(asked: Encoded) -> str:
    """Two random convolutions, averaged over fields."""
    picture = Picture.of(asked.shape, "encoder 'random'")
    graph, tensors = asked.graph, asked.tensors
    step = pooled_by(picture)
    weight1 = tensors.take("weight1", (FIRST, picture.channels, None, None))
    k = weight1.shape[-1]
    weight2 = tensors.take("weight2", (None, FIRST, k, k))
    bias2 = tensors.take("bias2", (len(weight2),))
    require(weight1.shape[2] == k and k % 2 == 1, "its filters are not square, or have no centre")
    same: dict[str, Any] = {"pads": [k // 2] * 4, "strides": [1, 1]}
    first = graph.add("Abs", graph.add("Conv", _planes(asked, picture), weight1, np.zeros(FIRST, np.float32), **same))
    first = graph.add("AveragePool", first, kernel_shape=[step] * 2, strides=[step] * 2, ceil_mode=1)
    second = graph.add("Relu", graph.add("Conv", first, weight2, bias2, **same))
    sides = -(-picture.height // step), -(-picture.width // step)
    h, n = _averaged(graph, second, sides, COARSE), len(weight2) * fields(picture, COARSE)
    of_first = FIRST * fields(picture, FINE)
    require(asked.n_features - n in (0, of_first), "its output layer does not fit its random features")
    return graph.add("Concat", h, _averaged(graph, first, sides, FINE), axis=1) if asked.n_features > n else h


def random(asked: Encoded) -> str:
    """Return random features: convolutional if the file has filters, otherwise flat."""
    return (convolutional if "weight1" in asked.tensors else flat)(asked)


def _averaged(graph: Graph, maps: str, sides: tuple[int, int], grid: int) -> str:
    windows, strides = zip(*(overlapping(n, grid) for n in sides), strict=True)
    means = graph.add("AveragePool", maps, kernel_shape=list(windows), strides=list(strides), ceil_mode=0)
    return graph.add("Sqrt", graph.add("Flatten", means, axis=1))


def _planes(asked: Encoded, picture: Picture) -> str:
    """Return rows as (n, channels, height, width)."""
    c, h, w = picture.channels, picture.height, picture.width
    require(c * h * w == asked.n_inputs, f"an input of shape {asked.shape} does not have {asked.n_inputs} numbers")
    shape = np.array([0, h, w, c] if picture.colours_last else [0, c, h, w])  # 0: any number
    planes = asked.graph.add("Reshape", asked.x, shape)
    return asked.graph.add("Transpose", planes, perm=[0, 3, 1, 2]) if picture.colours_last else planes


BY_HOME: dict[str, Callable[[Encoded], str]] = {
    "relive.networks.encoders:mlp": mlp,
    "relive.networks.encoders:inputs": inputs,
    "relive.networks.convolution:conv": conv,
    "relive.networks.random_features:flat": flat,
    "relive.networks.random_features:random": random,
}


def encoder_of(name: str) -> Callable[[Encoded], str] | None:
    """Return the function that adds an encoder to a graph, by name; None if it needs torch."""
    return BY_HOME.get(ENCODERS[name].home)
