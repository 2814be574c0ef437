"""A model as an ONNX file: the operations that NumPy executes, written one by one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relive._util.files import write_atomic
from relive.classifier.bookkeeping import Array
from relive.classifier.calibration import SMALLEST
from relive.core.scenarios import SCENARIOS
from relive.inference.graph import Graph
from relive.inference.predictor import SAMPLES, TASK, Predictor
from relive.inference.scores import OFF

OPSET, IR = 17, 8  # ONNX 1.12, of 2022, so that older runtimes work
TYPES = {"b": TensorProto.BOOL, "i": TensorProto.INT64, "u": TensorProto.UINT64, "f": TensorProto.DOUBLE}


def onnx_model(predictor: Predictor) -> onnx.ModelProto:
    """Return a model's predictions as ONNX.

    Its inputs are ``samples`` (n, features), float64, and in Task-IL ``task`` (n,), each sample's task number in
    the order of the metadata's ``tasks``. Its outputs are ``label`` (n,) and ``probabilities`` (n, classes), in the
    order of the metadata's ``classes``.
    """
    (graph, probabilities), classes = _calibrated(predictor), predictor.classes_
    needs_task = SCENARIOS[predictor.scenario].needs_task
    text = classes.dtype.kind == "U"
    constants = dict(graph.constants) | {"classes": classes.astype(object) if text else _widened(classes)}
    nodes = [helper.make_node(o.operator, o.inputs, [o.output], **o.attributes) for o in graph.operations]
    nodes += [
        helper.make_node("Identity", [probabilities], ["probabilities"]),
        helper.make_node("ArgMax", [predictor.probabilities], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["classes", "best"], ["label"], axis=0),
    ]
    n = predictor.n_features_in_
    inputs = [helper.make_tensor_value_info(SAMPLES, TensorProto.DOUBLE, ["n", n])]
    inputs += [helper.make_tensor_value_info(TASK, TensorProto.INT64, ["n"])] if needs_task else []
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.STRING if text else TYPES[classes.dtype.kind], ["n"]),
        helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", len(classes)]),
    ]
    arrays = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    made = helper.make_model(
        helper.make_graph(nodes, "relive", inputs, outputs, arrays),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="relive",
        ir_version=IR,
    )
    helper.set_model_props(
        made,
        {
            "classes": json.dumps(classes.tolist()),
            "tasks": json.dumps([lesson.name for lesson in predictor.lessons_]),
            "method": predictor.choice_.method,
            "scenario": predictor.scenario,
            "feature_names": json.dumps(list(predictor.header.feature_names)),
        },
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def _calibrated(predictor: Predictor) -> tuple[Graph, str]:
    """Return a model's graph, and the name of its probabilities: ``relive.classifier.calibration.tempered``."""
    if predictor.temperature_ == 1.0:
        return predictor.graph, predictor.probabilities
    graph, p = Graph(dict(predictor.graph.constants), list(predictor.graph.operations)), predictor.probabilities
    logits = graph.add("Log", graph.add("Max", p, np.array(SMALLEST)))
    possible = graph.add("Greater", p, np.array(0.0))
    logits = graph.add("Where", possible, graph.add("Div", logits, np.array(predictor.temperature_)), np.array(OFF))
    return graph, graph.add("Softmax", logits, axis=1)


def write_onnx(predictor: Predictor, path: Path) -> None:
    """Write a model's predictions as an ONNX file, atomically."""
    write_atomic(path, onnx_model(predictor).SerializeToString())


def _widened(classes: Array) -> Array:
    """Return labels as the widest type of their kind."""
    widest = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
    return classes.astype(widest[classes.dtype.kind])
