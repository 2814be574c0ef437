"""A model's predictions from its file alone, without torch and scikit-learn: mirrors ``predict_proba``.

samples → scaled (``relive.classifier.features.Features.inputs``) → the method's scores (``relive.inference.scores``)
→ probabilities of the competing units (``relive.classifier.answers``) → probabilities of classes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError, ReliveError
from relive.classifier import parameters
from relive.classifier.bookkeeping import GONE, Array, Bookkeeping
from relive.classifier.features import LIMIT, Features
from relive.classifier.learned import Learned
from relive.classifier.modelheader import REFUSED, Header, described, not_whole, require
from relive.classifier.portraits import novelty
from relive.core.scenarios import SCENARIOS, Scenario
from relive.inference.encoders import bounded, encoder_of
from relive.inference.graph import Graph
from relive.inference.novelty import Novelty, novelty_of
from relive.inference.scores import OFF, Asked, scores_of
from relive.inference.tensors import Tensors
from relive.methods import METHODS

CHUNK = 64  # samples at a time: their operands stay in the cache, and little memory is needed


class NeedsTorchError(InputError):
    """A model's predictions cannot be computed without torch; the message says why."""


class Predictor(Learned):
    """Predicts from a model file. Attributes are those of ``ContinualClassifier``.

    Parameters
    ----------
    header
        The file's header.
    arrays
        The file's arrays.

    Raises
    ------
    NeedsTorchError
        If the model is of a kind that only torch can compute.
    ValueError
        If the arrays are not those of the model.
    """

    def __init__(self, header: Header, arrays: dict[str, Array]) -> None:
        self.header = header
        self.features_: Features = header.features
        self.bookkeeping_, self.asked_ = header.bookkeeping, header.asked
        self.notes_, self.choice_, self.n_features_in_ = header.notes, header.choice, header.n_features
        if header.feature_names:
            self.feature_names_in_ = np.array(header.feature_names, dtype=object)
        self._question = question_of(header, arrays)
        self.graph, self.probabilities = graph_of(header, self._question)
        self._distances: Novelty | None = None  # created on demand

    def _answers(self, X: npt.ArrayLike, task: Any) -> Array:
        data = self._data(X)
        tasks = np.zeros(len(data), np.int64)
        for k, rows in self.bookkeeping_.rows_by_task(task, len(data)):
            tasks[rows] = k
        with np.errstate(over="ignore", invalid="ignore"):
            return self._run(self.graph, self.probabilities, data, tasks)

    def _novelty(self, X: npt.ArrayLike) -> Array | None:
        if self._distances is None:
            graph = Graph()
            try:
                self._distances = novelty_of(self._question, graph, _inputs(graph, self.features_))
            except (*REFUSED, np.linalg.LinAlgError) as error:
                raise ReliveError(f"this is not a valid model: {error}") from error
        known, data = self._distances, self._data(X)
        if known is None:
            graph = Graph()
            inputs = _inputs(graph, self.features_)
            return novelty(self.header.portraits, self._run(graph, inputs, data, np.zeros(len(data), np.int64)))
        return known(self._run(known.graph, known.features, data, np.zeros(len(data), np.int64)))

    def _run(self, graph: Graph, wanted: str, data: Array, tasks: Array) -> Array:
        """Return one of a graph's values for all samples, computed in chunks."""
        if data.dtype == np.uint8:
            data = (data.astype(np.float32) / np.float32(255)) if self.features_.likelihood == "bernoulli" else data
        rows = [slice(i, i + CHUNK) for i in range(0, len(data), CHUNK)]
        return np.concatenate([graph.run({SAMPLES: data[r].astype(np.float64), TASK: tasks[r]}, wanted) for r in rows])

    def _data(self, X: npt.ArrayLike) -> Array:
        """Return samples as an array (n, features) of numbers; refuse anything else."""
        try:
            data = np.asarray(X)
            data = data if data.dtype in (np.uint8, np.float32, np.float64) else data.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the samples are not a table of numbers: {error}") from error
        if data.ndim != 2 or not len(data):
            raise InputError(f"the samples have shape {data.shape}: give at least one row of features")
        if data.shape[1] != self.n_features_in_:
            raise InputError(
                f"the samples have {data.shape[1]} features, but this model was trained on {self.n_features_in_}"
            )
        if not np.isfinite(data).all():
            row, column = np.argwhere(~np.isfinite(data))[0]
            raise InputError(f"sample {row + 1} has a missing or infinite value in feature {column + 1}")
        return data

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return self.bookkeeping_.scenario

    @property
    def pending_(self) -> int:
        """How many samples wait to be learned; predictions do not reflect them yet."""
        return self.header.pending


SAMPLES, TASK = "samples", "task"  # the graph's inputs: (n, features) float64, and (n,) int64 tasks' numbers


def predictor_of(path: Path, *, allow_code: bool = False) -> Predictor:
    """Return a predictor for the model in a file; user code in it is never run, and needs torch.

    Raises
    ------
    NeedsTorchError
        If the model is of a kind that only torch can compute.
    FileError, InputError
        As ``relive.load``.
    """
    return checked(path, *described(path, allow_code=allow_code))


def checked(path: Path, header: Header, arrays: dict[str, Array]) -> Predictor:
    """Return a predictor for a model that was read from a file; raises the errors of ``predictor_of``."""
    try:
        return Predictor(header, arrays)
    except NeedsTorchError:
        raise
    except (*REFUSED, np.linalg.LinAlgError) as error:
        raise not_whole(path, error) from error


def question_of(header: Header, arrays: dict[str, Array]) -> Asked:
    """Return what a model's method needs to add its scores to a graph."""
    made = header.parameters
    if header.names_code:
        raise NeedsTorchError("the model uses user code, which needs torch")
    facts = METHODS[header.choice.method]
    encoder = encoder_of(made["encoder"] or facts.encoder)
    if scores_of(header.choice.method) is None:
        raise NeedsTorchError(f"method {header.choice.method!r} ({facts.title}) needs torch to predict")
    if encoder is None:
        raise NeedsTorchError(f"the encoder {made['encoder']!r} needs torch")
    shape = made["shape"] or ()
    require(not shape or math.prod(shape) == header.n_features, f"its shape {shape} does not fit its features")
    graph = Graph()
    return Asked(
        graph,
        _inputs(graph, header.features),
        TASK,
        Tensors(arrays, "learner.net."),
        Tensors(arrays, "learner.method."),
        header.bookkeeping.scenario_with(),
        encoder,
        header.n_features,
        tuple(shape),
        parameters.fidelity_from(made["fidelity"]).xdg_gate,
    )


def graph_of(header: Header, asked: Asked) -> tuple[Graph, str]:
    """Return how a model predicts, and the name of the probabilities (n, classes) among the graph's values."""
    scores = scores_of(header.choice.method)
    assert scores is not None
    return asked.graph, _probabilities(asked.graph, scores(asked), asked.scenario, header.bookkeeping)


def _inputs(graph: Graph, features: Features) -> str:
    """Return samples as network inputs, (n, inputs) float32."""
    if features.likelihood == "bernoulli":
        return graph.cast(SAMPLES, np.float32)
    standard = graph.add("Div", graph.add("Sub", SAMPLES, features.mean), features.scale)
    return graph.cast(bounded(graph, standard, np.array(LIMIT)), np.float32)


def _probabilities(graph: Graph, logits: str, scenario: Scenario, books: Bookkeeping) -> str:
    """Return the probabilities of classes, (n, classes), in the order of ``classes_``."""
    n_tasks = len(books.tasks)
    active = np.zeros((n_tasks, scenario.width), bool)
    place = np.zeros((scenario.width, len(books.classes)))  # the class of each unit
    column = np.searchsorted(books.classes, books.labels)
    for k in range(n_tasks):
        active[k, scenario.active_numbers(k, n_tasks)] = True
        for unit, c in zip(scenario.unit_numbers(k), scenario.classes[k], strict=True):
            if books.meaning[c] != GONE:
                place[unit, column[books.meaning[c]]] = 1  # two classes may share a label
    may = graph.gathered(active, TASK) if SCENARIOS[books.scenario].needs_task else active[-1:]
    shares = graph.add("Softmax", graph.add("Where", may, graph.cast(logits, np.float64), np.array(OFF)), axis=1)
    return graph.add("MatMul", shares, place)
