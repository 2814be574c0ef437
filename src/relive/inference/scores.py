"""The score of each output unit, method by method: each function mirrors ``logits`` of a class.

==================  ================================================================
``plain``           ``relive.core.method.Method``: an encoder and an output layer
``gated``           ``relive.methods.xdg.XdG``
``closed_form``     ``relive.methods.closed_form.ClosedForm``
``discriminant``    ``relive.methods.discriminant.Discriminant``
``domains``         ``relive.methods.domains.Domains``
``nearest_mean``    ``relive.methods.icarl.ICaRL``
==================  ================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.classifier.modelheader import require
from relive.core.scenarios import ClassIL, Scenario
from relive.inference.encoders import Encoded, mlp, mlp_layers
from relive.inference.graph import Graph
from relive.inference.tensors import Tensors
from relive.methods import METHODS
from relive.methods.catalogue import FLOOR, PRIOR, WEIGHT, WEIGHT_ON_AXES
from relive.networks.blocks import full_width

Array = npt.NDArray[Any]
OFF = -1e30  # relive.networks.head.OFF
TINY = np.float32(1e-12)  # the smallest norm that torch.nn.functional.normalize divides by


@dataclass(frozen=True)
class Asked:
    """What a method needs to add its scores to a graph.

    Attributes
    ----------
    graph
        The graph.
    x, task
        The inputs, (n, inputs) float32, and each one's task number, (n,).
    net, kept
        Tensors of the network, and of the method's state.
    scenario
        With the classes of all tasks, declared ones last.
    encoder
        The function that adds an encoder to a graph.
    n_inputs, shape, gate
        As in ``Encoded``; how XdG gates.
    """

    graph: Graph
    x: str
    task: str
    net: Tensors
    kept: Tensors
    scenario: Scenario
    encoder: Callable[[Encoded], str]
    n_inputs: int
    shape: tuple[int, ...]
    gate: str

    def head(self, units: int) -> tuple[Array, Array]:
        """Return the output layer with this many units: weights (units, features) and biases (units,)."""
        return self.net.take("head.weight", (units, None)), self.net.take("head.bias", (units,))

    def encoded(self, graph: Graph, x: str, n_features: int) -> Encoded:
        """Return what the encoder needs."""
        return Encoded(graph, x, self.net.below("encoder."), self.n_inputs, n_features, self.shape)

    def features(self, n_features: int) -> str:
        """Return the encoder's features of the inputs, (n, features)."""
        return self.encoder(self.encoded(self.graph, self.x, n_features))


def plain(asked: Asked) -> str:
    """Return the output layer's logits, (n, units)."""
    weight, bias = asked.head(asked.scenario.width)
    return asked.graph.linear(asked.features(weight.shape[1]), weight, bias)


def gated(asked: Asked) -> str:
    """Hidden layers of which every task uses its own units."""
    graph, (weight, bias) = asked.graph, asked.head(asked.scenario.width)
    require(asked.encoder is mlp, "XdG gates the units of mlp")
    layers = mlp_layers(asked.encoded(graph, asked.x, weight.shape[1]))
    gates = asked.kept.take("gates", (len(asked.scenario.classes), len(layers), weight.shape[1]))
    require(bool(((gates == 0) | (gates == 1)).all()), "gates are not all 0 or 1")
    h = asked.x
    for i, (w, b) in enumerate(layers):
        gate = graph.gathered(gates[:, i], asked.task)  # (n, hidden)
        if asked.gate == "before_bias":
            h = graph.add("Relu", graph.add("Add", graph.add("Mul", gate, graph.linear(h, w, np.zeros_like(b))), b))
        else:
            h = graph.add("Mul", gate, graph.add("Relu", graph.linear(h, w, b)))
    return graph.linear(h, weight, bias)


def n_cells(scenario: Scenario) -> int:
    """Return the number of classes in the sums."""
    return full_width(sum(map(len, scenario.classes))) if scenario.shares_units else scenario.width


def closed_form(asked: Asked) -> str:
    """An output layer that was solved in closed form."""
    weight, bias = asked.head(n_cells(asked.scenario))
    return _by_unit(asked, _solved(asked.graph, asked.features(weight.shape[1]), weight, bias))


def _solved(graph: Graph, h: str, weight: Array, bias: Array) -> str:
    """Return an output layer's logits in float64: with few samples they are large, and cancel."""
    return graph.linear(graph.cast(h, np.float64), weight.astype(np.float64), bias.astype(np.float64))


def _by_unit(asked: Asked, scores: str) -> str:
    """Return scores of cells (n, cells) as scores of units (n, units), added up over those that share one."""
    scenario = asked.scenario
    if not scenario.shares_units:
        return scores
    units = [unit for k in range(len(scenario.classes)) for unit in scenario.unit_numbers(k)]
    cells = asked.graph.add("Gather", scores, np.arange(len(units)), axis=1)
    return added_up(asked.graph, cells, units, scenario.width, "ReduceLogSumExp")


def added_up(graph: Graph, scores: str, units: Sequence[int], width: int, reduced: str) -> str:
    """Return scores (n, columns), each for some unit, as scores of all units (n, width)."""
    other = np.full((len(units), width), OFF)
    other[np.arange(len(units)), list(units)] = 0
    column = graph.add("Reshape", scores, np.array([0, len(units), 1]))
    return graph.add(reduced, graph.add("Add", column, other), axes=[1], keepdims=0)


def discriminant(asked: Asked) -> str:
    """A linear discriminant, and a Gaussian per class on the inputs or axes, which are the first features."""
    graph, cells = asked.graph, n_cells(asked.scenario)
    weight, bias = asked.head(cells)
    own = class_gaussians(asked)
    if own is None:
        return closed_form(asked)
    there, means, white, p = own.there, own.means, own.white, own.means.shape[1]
    constant = np.log(own.share) - own.log_det
    h = asked.features(weight.shape[1])
    z = graph.cast(graph.add("Gather", h, np.arange(p), axis=1), np.float64)  # (n, inputs)
    moved = graph.add("MatMul", white, graph.add("Transpose", z, perm=[1, 0]))  # (classes, inputs, n)
    moved = graph.add("Sub", moved, white @ means[:, :, None])
    distance = graph.add("ReduceSumSquare", moved, axes=[1], keepdims=0)  # (classes, n)
    density = graph.add("Sub", constant[:, None], graph.add("Mul", distance, np.array(0.5)))
    nowhere = graph.add("Mul", graph.add("Gather", distance, np.zeros(1, np.int64), axis=0), np.zeros((1, 1)))
    rows = graph.add("Concat", density, graph.add("Add", nowhere, np.array(OFF)), axis=0)
    place = np.full(cells, len(there))  # the last row: classes without samples
    place[there] = np.arange(len(there))
    gaussian = graph.add("Transpose", graph.add("Gather", rows, place, axis=0), perm=[1, 0])
    gaussian = graph.add(
        "Mul", graph.add("LogSoftmax", gaussian, axis=1), np.array(WEIGHT if p == asked.n_inputs else WEIGHT_ON_AXES)
    )
    linear = graph.add("LogSoftmax", _solved(graph, h, weight, bias), axis=1)
    return _by_unit(asked, graph.add("Add", linear, gaussian))


@dataclass(frozen=True)
class ClassGaussians:
    """A Gaussian for every class with samples, on the first features.

    Attributes
    ----------
    there
        (classes,) which classes have samples.
    share, log_det
        (classes,) the share of all samples; the log of the square root of the covariance's determinant.
    means, white
        (classes, inputs), and (classes, inputs, inputs) the inverse of the covariance's Cholesky factor.
    """

    there: Array
    share: Array
    log_det: Array
    means: Array
    white: Array


def class_gaussians(asked: Asked) -> ClassGaussians | None:
    """Return a discriminant's Gaussians; None if it has none, as on images."""
    cells, encoder = n_cells(asked.scenario), asked.net.below("encoder.")
    width = asked.head(cells)[0].shape[1]
    squares = asked.kept.take("squares", (cells, None), np.float64)
    if not squares.shape[1]:
        return None
    p = len(encoder.take("axes", (None, asked.n_inputs))) if "axes" in encoder else asked.n_inputs
    require(width > p and squares.shape[1] == p * (p + 1) // 2, "its classes' covariances are invalid")
    count, total = counted(asked, width)
    there = np.flatnonzero(count > 0)
    means = total[there, :p] / count[there, None]
    roots = _roots(count[there], means, squares[there])
    log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(1)
    return ClassGaussians(there, count[there] / count.sum(), log_det, means, triangular_inverse(roots))


def counted(asked: Asked, width: int) -> tuple[Array, Array]:
    """Return how many samples each class has, (cells,), and the sums of their features, (cells, width)."""
    cells = n_cells(asked.scenario)
    count = asked.kept.take("count", (cells,), np.float64)
    require(bool((count >= 0).all() and (count > 0).any()), "its counts")
    return count, asked.kept.take("total", (cells, width), np.float64)


def _roots(count: Array, means: Array, squares: Array) -> Array:
    """Return the Cholesky factor of every class's covariance, (classes, inputs, inputs)."""
    p = means.shape[1]
    i, j = np.triu_indices(p)
    own = np.empty((len(count), p, p))
    own[:, i, j] = own[:, j, i] = squares
    own -= count[:, None, None] * means[:, :, None] * means[:, None, :]  # n_c Σ_c
    pooled = own.sum(0) / max(count.sum(), 1)
    own += p * pooled
    own /= (count + p)[:, None, None]
    own += (FLOOR * pooled.diagonal().mean() + 1e-12) * np.eye(p)
    roots: Array = np.linalg.cholesky(own)
    return roots


def triangular_inverse(root: Array) -> Array:
    """Return the inverses of lower triangular matrices (…, p, p): halves are inverted, and the corner follows.

    >>> triangular_inverse(np.array([[2.0, 0.0], [1.0, 4.0]])).tolist()
    [[0.5, 0.0], [-0.125, 0.25]]
    """
    p = root.shape[-1]
    if p == 1:
        return 1 / root
    inverse, half = np.zeros_like(root), p // 2
    upper = inverse[..., :half, :half] = triangular_inverse(root[..., :half, :half])
    lower = inverse[..., half:, half:] = triangular_inverse(root[..., half:, half:])
    inverse[..., half:, :half] = -lower @ root[..., half:, :half] @ upper
    return inverse


def domains(asked: Asked) -> str:
    """A discriminant for every domain, and how likely inputs are in each."""
    graph, scenario, kept = asked.graph, asked.scenario, asked.kept
    members = [kept.take(f"{k}.tasks", (None,), np.int64).tolist() for k in range(kept.count(".tasks"))]
    tasks = sorted(task for mine in members for task in mine)
    learned = set(range(len(scenario.classes)))
    require(
        bool(members) and all(members) and len(set(tasks)) == len(tasks) and set(tasks) <= learned,
        f"its domains' tasks {tasks} are invalid",
    )
    forms = [_domain(asked, k, mine) for k, mine in enumerate(members)]
    if scenario.needs_task:
        theirs = np.array([[0.0 if task in mine else OFF for mine in members] for task in sorted(learned)])
        log_p = graph.gathered(theirs, asked.task)
    else:
        x = graph.cast(asked.x, np.float64)
        both = graph.add("Concat", x, graph.add("Mul", x, x), axis=1)
        densities = [_log_density(form, kept.below(f"{k}."), both) for k, form in enumerate(forms)]
        log_p = graph.add("LogSoftmax", graph.add("Concat", *densities, axis=1), axis=1)
    parts: list[str] = []
    units: list[int] = []
    for k, (form, mine) in enumerate(zip(forms, members, strict=True)):
        pairs = [zip(form.scenario.unit_numbers(i), scenario.unit_numbers(t), strict=True) for i, t in enumerate(mine)]
        unit_of = {here: unit for some in pairs for here, unit in some}
        found = graph.add("Gather", discriminant(form), np.array(list(unit_of)), axis=1)
        of_domain = graph.add("Gather", log_p, np.array([k]), axis=1)
        parts.append(graph.add("Add", graph.add("LogSoftmax", found, axis=1), of_domain))
        units += unit_of.values()
    return added_up(graph, graph.add("Concat", *parts, axis=1), units, scenario.width, "ReduceLogSumExp")


def _domain(asked: Asked, k: int, tasks: Sequence[int]) -> Asked:
    """Return what a domain's discriminant needs; its network has what differs from the shared encoder."""
    net = asked.kept.below(f"{k}.net.").over(asked.net)
    return replace(asked, net=net, kept=asked.kept.below(f"{k}.form."), scenario=asked.scenario.only(tasks))


def _log_density(form: Asked, moments: Tensors, both: str) -> str:
    """Return log p(x) in a domain, (n, 1): ``relive.methods.input_gaussians.log_density`` of x and its squares."""
    cells, n = n_cells(form.scenario), form.n_inputs
    count = form.kept.take("count", (cells,), np.float64)
    total = moments.take("moments", (cells, 2 * n), np.float64)
    there = count > 0
    require(bool((count >= 0).all() and there.any()), "its counts")
    count = count[there, None]
    means, squares = np.split(total[there] / count, 2, axis=1)
    own = np.maximum(squares - means**2, 0)
    within = (count * own).sum(0) / count.sum()
    variances = (count * own + PRIOR * within) / (count + PRIOR) + FLOOR * within.mean() + np.finfo(np.float32).tiny
    weight = np.concatenate([means / variances, -0.5 / variances], 1)  # (classes, 2 · inputs)
    constant = np.log(count[:, 0]) - 0.5 * (means**2 / variances + np.log(variances)).sum(1)
    return form.graph.add("ReduceLogSumExp", form.graph.linear(both, weight, constant), axes=[1], keepdims=1)


def nearest_mean(asked: Asked) -> str:
    """Minus the distance to each class's exemplar mean in feature space; a unit takes the nearest."""
    weight, _ = asked.head(asked.scenario.width)
    numbers = {(k, u): n for k in range(len(asked.scenario.classes)) for u, n in _numbered(asked, k)}
    x = asked.kept.take("x", (None, asked.n_inputs))
    if not len(x):
        return plain(asked)
    number, task, unit = (asked.kept.take(name, (len(x),), np.int64) for name in ("number", "task", "unit"))
    said = zip(task.tolist(), unit.tolist(), number.tolist(), strict=True)
    require(all(numbers.get((k, u)) == n for k, u, n in said), "its exemplars' classes are invalid")
    graph = Graph()
    exemplars = graph.run({"x": x}, _unit_length(graph, asked.encoder(asked.encoded(graph, "x", weight.shape[1]))))
    classes = np.unique(number)
    sums = np.stack([exemplars[number == c].sum(0) for c in classes])
    means = (sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TINY)).astype(np.float64)
    graph = asked.graph
    phi = graph.cast(_unit_length(graph, asked.features(weight.shape[1])), np.float64)
    # |φ − μ|² = |φ|² + |μ|² − 2 φ · μ
    near = graph.add("Mul", graph.add("MatMul", phi, means.T), np.array(-2.0))
    square = graph.add("Add", graph.add("Add", near, (means**2).sum(1)), _squared(graph, phi))
    distance = graph.add("Sqrt", graph.add("Max", square, np.array(0.0)))
    pairs = np.unique(np.stack([number, unit], 1), axis=0)  # in Task-IL a class may have several units
    near = graph.add("Gather", graph.add("Neg", distance), np.searchsorted(classes, pairs[:, 0]), axis=1)
    return added_up(graph, near, pairs[:, 1].tolist(), asked.scenario.width, "ReduceMax")


def _numbered(asked: Asked, task: int) -> zip[tuple[int, int]]:
    """Return the units of a task's classes, and the numbers of these classes (``relive.methods.classes.numbers``)."""
    numbers = ClassIL(asked.scenario.classes).unit_numbers(task)
    return zip(asked.scenario.unit_numbers(task), numbers, strict=True)


def _squared(graph: Graph, phi: str) -> str:
    return graph.add("ReduceSumSquare", phi, axes=[1], keepdims=1)


def _unit_length(graph: Graph, h: str) -> str:
    length = graph.add("Max", graph.add("ReduceL2", h, axes=[1], keepdims=1), np.array(TINY))
    return graph.add("Div", h, length)


BY_HOME: dict[str, Callable[[Asked], str]] = {
    "relive.methods.none:FineTuning": plain,
    "relive.methods.xdg:XdG": gated,
    "relive.methods.ewc:EWC": plain,
    "relive.methods.ewc:OnlineEWC": plain,
    "relive.methods.si:SI": plain,
    "relive.methods.lwf:LwF": plain,
    "relive.methods.generative_replay:DGR": plain,
    "relive.methods.generative_replay:DGRDistill": plain,
    "relive.methods.generative_replay:RtF": plain,
    "relive.methods.bir:BIR": plain,
    "relive.methods.pseudo_rehearsal:PseudoRehearsal": plain,
    "relive.methods.er:ER": plain,
    "relive.methods.er:AGEM": plain,
    "relive.methods.icarl:ICaRL": nearest_mean,
    "relive.methods.ncm:NCM": closed_form,
    "relive.methods.slda:SLDA": closed_form,
    "relive.methods.analytic:Analytic": closed_form,
    "relive.methods.discriminant:Discriminant": discriminant,
    "relive.methods.domains:Domains": domains,
}


def scores_of(method: str) -> Callable[[Asked], str] | None:
    """Return the function that adds a method's scores to a graph; None if it needs torch."""
    return BY_HOME.get(METHODS[method].home)
