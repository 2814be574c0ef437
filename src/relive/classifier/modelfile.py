"""One safe file per model: safetensors with a JSON header, no pickle. A loaded model goes on as if never stored."""

from __future__ import annotations

import numbers
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relive._util.errors import InputError, ReliveError
from relive._util.fidelity import Fidelity
from relive._util.registry import is_address
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive._util.versions import versions
from relive.classifier.estimator import Array, ContinualClassifier
from relive.classifier.features import Features
from relive.classifier.labels import joined
from relive.classifier.lessons import Lesson
from relive.methods import method_class, method_facts
from relive.networks.blocks import full_width
from relive.networks.likelihoods import LIKELIHOODS

KIND, VERSION = "relive model", 1


def save(model: ContinualClassifier, path: Path) -> None:
    """Write a model; a file that was there is replaced at once or not at all."""
    if not model.__sklearn_is_fitted__():
        raise InputError("this model has not learned anything yet: call partial_fit before save")
    model.check_unchanged()
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    parameters = model.get_params(deep=False)
    if not isinstance(model.random_state, numbers.Integral):
        parameters["random_state"] = None
    if isinstance(model.fidelity, Fidelity):
        parameters["fidelity"] = model.fidelity.to_json()
    if not isinstance(model.encoder, str):
        raise InputError(
            f"a model with the encoder {model.encoder!r} cannot be saved: a file holds no code. "
            "Put what makes it into a file, and give its address: encoder='my_file.py:make'"
        )
    header = {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "seed": model.seed_,
        "likelihood": model.features_.likelihood,
        "labels": _labels_to_json(model.labels_),
        "declared": _labels_to_json(model.declared_),
        "lessons": [asdict(lesson) for lesson in model.lessons_],
        "n_features": model.n_features_in_,
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "notes": model.notes_,
        "versions": versions(),
    }
    tensors = {f"learner.{name}": tensor for name, tensor in model.learner_.state().items()}
    tensors["features.mean"] = torch.from_numpy(model.features_.mean)
    tensors["features.scale"] = torch.from_numpy(model.features_.scale)
    try:
        write_tensors(path, KIND, VERSION, header, tensors)
    except OSError as error:
        raise ReliveError(f"cannot write {path}: {error.strerror or error}") from error
    except TypeError as error:
        raise InputError(f"notes_ must be plain JSON values to be stored: {error}") from error


def load(path: str | Path, *, own_encoder: bool = False) -> ContinualClassifier:
    """Return the model in a file that :meth:`ContinualClassifier.save` wrote.

    Parameters
    ----------
    path
        The file.
    own_encoder
        Whether a model may name an encoder by its address (``my_file.py:make``), whose code is then run. Only for files
        that you trust.

    Raises
    ------
    FileError
        If it is no model, of a newer version, cut short or changed; nothing in a file is ever run.
    InputError
        If there is no such file, or it names an encoder by its address and that was not allowed.
    """
    path = Path(path)
    header, tensors = _read(path)
    parameters = header.get("parameters")
    encoder = parameters.get("encoder") if isinstance(parameters, dict) else None
    if not own_encoder and isinstance(encoder, str) and is_address(encoder):
        raise InputError(
            f"the network of {path} is made by code at {encoder}: if you trust that, "
            "load(path, own_encoder=True) runs it"
        )
    try:
        return _model(header, tensors)
    except (ReliveError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileError(f"{path} is not a whole model: {error}") from error


def versions_of(path: Path) -> dict[str, str]:
    """Return the versions of what wrote a model's file."""
    versions: dict[str, str] = _read(path)[0]["versions"]
    return versions


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        return read_tensors(path, KIND, VERSION)
    except FileNotFoundError:
        raise InputError(f"there is no model {path}") from None
    except OSError as error:
        raise ReliveError(f"cannot read {path}: {error.strerror or error}") from error


def _model(header: dict[str, Any], tensors: dict[str, Tensor]) -> ContinualClassifier:
    """Make a model of what a file says; whoever wrote it may have written anything."""
    parameters = header["parameters"]
    if isinstance(parameters["fidelity"], dict):
        parameters["fidelity"] = Fidelity(**parameters["fidelity"])
    if parameters.get("shape") is not None:
        parameters["shape"] = tuple(map(_whole, parameters["shape"]))
    model = ContinualClassifier(**parameters)
    model._check_parameters()
    model.made_ = model._structure()
    model.seed_ = _whole(header["seed"])
    model.n_features_in_ = _whole(header["n_features"])
    _require(isinstance(header["notes"], dict), "its notes are no dictionary")
    model.notes_ = header["notes"]
    names = header["feature_names"]
    if names:
        _require(len(names) == model.n_features_in_ and all(isinstance(n, str) for n in names), "its feature names")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.labels_ = _labels_from_json(header["labels"])
    model.declared_ = _labels_from_json(header["declared"])
    model.classes_ = np.sort(joined(model.labels_, model.declared_))
    model.lessons_ = [_lesson(values, len(model.labels_)) for values in header["lessons"]]
    model.n_tasks_ = len(model.lessons_)
    tensors = dict(tensors)
    model.features_ = _features(header["likelihood"], model.n_features_in_, tensors)
    _require(all(name.startswith("learner.") for name in tensors), "it has tensors of something else")
    state = {name.removeprefix("learner."): t for name, t in tensors.items()}
    kept = {name.removeprefix("method."): state.pop(name) for name in list(state) if name.startswith("method.")}
    state |= {f"method.{name}": t for name, t in method_class(model.method).upgraded(kept).items()}
    _check_sizes(model, state)
    model.restore(state)
    _check_tensors(model, state)
    return model


def _require(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(what)


def _whole(value: Any) -> int:
    """Return a whole number that is one."""
    _require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, f"{value!r} is no whole number")
    return int(value)


def _features(likelihood: Any, n: int, tensors: dict[str, Tensor]) -> Features:
    mean, scale = tensors.pop("features.mean"), tensors.pop("features.scale")
    for t in (mean, scale):
        _require(t.shape == (n,) and t.dtype == torch.float64 and bool(t.isfinite().all()), "its features' scale")
    _require(likelihood in LIKELIHOODS and bool((scale > 0).all()), "its features' scale or likelihood")
    return Features(likelihood, mean.numpy(), scale.numpy())


def _check_sizes(model: ContinualClassifier, state: dict[str, Tensor]) -> None:
    """Refuse a header that asks for more memory than the file has, or for another number of tasks."""
    of_method = method_facts(model.method).defaults | (model.settings or {})  # where it has sizes of its own
    hidden, n_latent = (int(of_method.get(name, getattr(model, name))) for name in ("hidden", "latent"))
    widths = {len(t) for name, t in state.items() if ".encoder." in name and t.dim()}
    if hidden not in widths and not is_address(str(model.encoder)):
        raise ValueError(f"it says {hidden} hidden units, and has layers of {sorted(widths)}")
    if int(state["seen"]) != model.n_tasks_ or not model.n_tasks_:
        raise ValueError(f"it says {model.n_tasks_} tasks, and has learned {int(state['seen'])}")
    latent = [t for name, t in state.items() if name.endswith("feedback.latent.bias")]
    if any(len(t) != 2 * n_latent for t in latent):
        raise ValueError(f"it says {n_latent} latent variables, and has another number")
    units = sum(len(lesson.classes) for lesson in model.lessons_) + len(model.declared_)
    head = state.get("net.head.bias")
    if head is not None and not len(model.classes_) <= len(head) <= full_width(units):
        raise ValueError(f"it says {len(model.classes_)} classes, and has {len(head)} output units")


def _check_tensors(model: ContinualClassifier, state: dict[str, Tensor]) -> None:
    """Refuse tensors that are not those of such a model."""
    learner = model.learner_
    found = {name: (t.shape, t.dtype) for name, t in learner.state().items()}
    _require(found == {name: (t.shape, t.dtype) for name, t in state.items()}, "its tensors are of another model")
    parameters = learner.optimizer.parameters
    for name, t in state.items():
        per_parameter = re.fullmatch(r"method\.(?:fisher|anchor|Omega)(\d+)", name)
        if per_parameter:
            i = int(per_parameter[1])
            _require(i < len(parameters) and t.shape == parameters[i].shape, f"its {name} is of another size")
        if not name.startswith(("adam.", "rng.")):
            _require(bool(t.isfinite().all()), f"its {name} is not finite")
    optimizer = learner.optimizer
    _require(all(bool((v >= 0).all()) for v in (*optimizer.slots["v"], optimizer.scalars["steps"])), "its optimizer")


def _lesson(values: dict[str, Any], n_labels: int) -> Lesson:
    classes, counts = (tuple(_whole(v) for v in values[name]) for name in ("classes", "counts"))
    _require(0 < len(classes) == len(set(classes)) == len(counts) and max(classes) < n_labels, "a task's classes")
    texts = isinstance(values["learned_at"], str) and isinstance(values["digest"], str)
    _require(texts and isinstance(values["name"], str | int) and values["seconds"] >= 0, "a task's description")
    agreement = {int(c): (_whole(n), _whole(agreed)) for c, (n, agreed) in values["agreement"].items()}
    return Lesson(**values | {"classes": classes, "counts": counts, "agreement": agreement})


def _labels_to_json(labels: Array) -> dict[str, Any]:
    return {"dtype": "str" if labels.dtype.kind == "U" else labels.dtype.name, "values": labels.tolist()}


def _labels_from_json(values: dict[str, Any]) -> Array:
    dtype, labels = np.dtype(values["dtype"]), values["values"]
    kinds: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float,), "U": (str,)}
    _require(dtype.kind in kinds and (dtype.kind != "U" or values["dtype"] == "str"), f"labels of type {dtype}")
    array = np.array(labels, dtype=dtype)
    exact = all(type(label) in kinds[dtype.kind] for label in labels) and array.tolist() == labels
    _require(exact and len(set(labels)) == len(labels), "its labels are not different ones of one type")
    return array


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value
