"""One safe file per model: safetensors with a JSON header, no pickle. A loaded model goes on as if never stored."""

from __future__ import annotations

import math
import numbers
import os
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
from relive.classifier import parameters
from relive.classifier.bookkeeping import GONE, Bookkeeping
from relive.classifier.choice import AUTO, Choice
from relive.classifier.estimator import Array, ContinualClassifier
from relive.classifier.features import Features
from relive.classifier.learning import new_learner
from relive.classifier.lessons import Change, Lesson
from relive.classifier.memorylimit import MemoryLimit
from relive.classifier.waiting import Waiting
from relive.core.learner import Learner
from relive.core.state import check_form
from relive.methods import method_class
from relive.networks.likelihoods import LIKELIHOODS

KIND, VERSION = "relive model", 2  # 1 knew no changes of classes


def save(model: ContinualClassifier, path: Path) -> None:
    """Write a model; a file that was there is replaced at once or not at all."""
    if not model.__sklearn_is_fitted__():
        raise InputError("this model has not learned anything yet: call partial_fit before save")
    given = model.get_params(deep=False)
    parameters.check_unchanged(model.structure_, given)
    parameters.check_stored_data(given | {"method": model.choice_.method})
    waiting = model.waiting_
    if waiting is not None and not model.allow_stored_data:
        raise InputError(
            f"{len(waiting)} samples wait to be learned, and no sample is written to a file unless that is allowed: "
            "call consolidate() first, or say allow_stored_data=True (relive fit --allow-stored-data)"
        )
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    if not isinstance(model.random_state, numbers.Integral):
        given["random_state"] = None
    if isinstance(model.fidelity, Fidelity):
        given["fidelity"] = model.fidelity.to_json()
    if model.encoder is not None and not isinstance(model.encoder, str):
        raise InputError(
            f"a model with the encoder {model.encoder!r} cannot be saved: a file holds no code. "
            "Put what makes it into a file, and give its address: encoder='my_file.py:make'"
        )
    header = {
        "parameters": {name: _plain(value) for name, value in given.items()},
        "choice": asdict(model.choice_),
        "seed": model.seed_,
        "likelihood": model.features_.likelihood,
        "labels": _labels_to_json(model.labels_),
        "declared": _labels_to_json(model.bookkeeping_.declared),
        "lessons": [asdict(lesson) for lesson in model.lessons_],
        "tasks": model.bookkeeping_.tasks,
        "meaning": model.bookkeeping_.meaning,
        "changes": [asdict(change) for change in model.changes_],
        "n_features": model.n_features_in_,
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "notes": model.notes_,
        "versions": versions(),
    }
    tensors = {f"learner.{name}": tensor for name, tensor in model.learner_.state().items()}
    if waiting is not None:
        labels, index = np.unique(waiting.y, return_inverse=True)
        header["waiting"] = {
            "labels": _labels_to_json(labels),
            "index": index.tolist(),
            "declared": _labels_to_json(waiting.declared),
        }
        tensors["waiting.x"] = torch.from_numpy(np.ascontiguousarray(waiting.data))
    tensors["features.mean"] = torch.from_numpy(model.features_.mean)
    tensors["features.scale"] = torch.from_numpy(model.features_.scale)
    try:
        write_tensors(path, KIND, VERSION, header, tensors)
    except OSError as error:
        raise ReliveError(f"cannot write {path}: {error.strerror or error}") from error
    except TypeError as error:
        raise InputError(f"notes_ must be plain JSON values to be stored: {error}") from error


def load(path: str | Path, *, allow_code: bool = False) -> ContinualClassifier:
    """Return the model in a file that :meth:`ContinualClassifier.save` wrote.

    Parameters
    ----------
    path
        The file.
    allow_code
        Whether a model may name a method or an encoder by its address (``my_file.py:MyMethod``), whose code is then
        run. Only for files that you trust.

    Raises
    ------
    FileError
        If it is no model, of a newer version, cut short or changed.
    InputError
        If there is no such file, or it names code of one's own and that was not allowed.
    """
    path = Path(path)
    header, tensors = _read(path)
    addresses = _addresses(header)
    if addresses and not allow_code:
        raise InputError(
            f"{path} names code of your own, {' and '.join(addresses)}, which loading it would run: if you trust the "
            "file, allow that with load(path, allow_code=True), or on the command line with --allow-code"
        )
    try:
        _find_code(header, path.parent)
        return _model(header, tensors)
    except (ReliveError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise FileError(f"{path} is not a whole model: {error}") from error


def _addresses(header: dict[str, Any]) -> list[str]:
    """Return where the code of one's own is that a model is made with."""
    given = header.get("parameters")
    named = [given.get(name) for name in ("method", "encoder")] if isinstance(given, dict) else []
    chosen = header.get("choice")
    named += [chosen.get("method")] if isinstance(chosen, dict) else []
    return list(dict.fromkeys(name for name in named if isinstance(name, str) and is_address(name)))


def _find_code(header: dict[str, Any], folder: Path) -> None:
    """Have addresses of files that are not here lead to files beside the model, where there are such."""
    for address in _addresses(header):
        place, _, name = address.rpartition(":")
        if not place.endswith(".py") or Path(place).is_file():
            continue
        beside = folder / Path(place).name
        if not beside.is_file():
            raise InputError(f"there is no file {place}, neither from {Path.cwd()} nor beside the model, {beside}")
        for values in (header["parameters"], header.get("choice", {})):
            values.update({key: f"{beside}:{name}" for key, value in values.items() if value == address})


def _choice(header: dict[str, Any]) -> Choice:
    """Return a model's method, and why it was chosen; before there was a choice, the method was a parameter."""
    choice = Choice(**header.get("choice", {"method": header["parameters"]["method"]}))
    said = header["parameters"]["method"]
    _require(said in (AUTO, choice.method) and isinstance(choice.reason, str), "its choice of a method")
    return choice


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
    given = header["parameters"]
    if isinstance(given["fidelity"], dict):
        given["fidelity"] = Fidelity(**given["fidelity"])
    if given.get("shape") is not None:
        given["shape"] = tuple(map(_whole, given["shape"]))
    model = ContinualClassifier(**given)
    given = model.get_params(deep=False)
    parameters.check(given)
    model.structure_ = parameters.structure_of(given)
    model.choice_ = _choice(header)
    parameters.check_method(given | {"method": model.choice_.method})
    model.seed_ = _whole(header["seed"])
    model.n_features_in_ = _whole(header["n_features"])
    _require(isinstance(header["notes"], dict), "its notes are no dictionary")
    model.notes_ = header["notes"]
    names = header["feature_names"]
    if names:
        _require(len(names) == model.n_features_in_ and all(isinstance(n, str) for n in names), "its feature names")
        model.feature_names_in_ = np.array(names, dtype=object)
    labels, declared = _labels_from_json(header["labels"]), _labels_from_json(header["declared"])
    lessons = tuple(_lesson(values, len(labels)) for values in header["lessons"])
    taught = {c for lesson in lessons for c, n in zip(lesson.classes, lesson.counts, strict=True) if n}
    _require(len(taught) == len(labels), "it has labels that it was never taught")
    model.bookkeeping_ = Bookkeeping(model.scenario, labels, declared, lessons, **_structure(header, len(labels)))
    tensors = dict(tensors)
    model.features_ = _features(header["likelihood"], model.n_features_in_, tensors)
    if "waiting" in header:
        model.waiting_ = _waiting(header["waiting"], tensors.pop("waiting.x"), model.n_features_in_)
    _require(all(name.startswith("learner.") for name in tensors), "it has tensors of something else")
    state = _upgraded(model.choice_.method, {name.removeprefix("learner."): t for name, t in tensors.items()})
    trusted = bool(_addresses(header))  # code of one's own, which may make what it likes
    model.learner_ = _restored(model, state, math.inf if trusted else sum(t.nbytes for t in state.values()))
    seen = model.learner_.seen
    said = len(model.bookkeeping_.tasks)
    _require(0 < said == seen, f"it says {said} tasks, and has learned {seen}")
    return model


def _waiting(values: dict[str, Any], x: Tensor, n: int) -> Waiting:
    """Return the samples that wait to be learned."""
    labels, index = _labels_from_json(values["labels"]), [_whole(i) for i in values["index"]]
    fine = x.ndim == 2 and x.shape == (len(index), n) and x.dtype in (torch.float64, torch.float32, torch.uint8)
    _require(fine and len(index) > 0 and bool(x.isfinite().all()), "the samples that wait to be learned")
    return Waiting(x.numpy(), labels[index], _labels_from_json(values["declared"]))


def _structure(header: dict[str, Any], n_labels: int) -> dict[str, Any]:
    """Return which classes each task has, what they are called, and what was done to them; at first nothing was."""
    tasks = header.get("tasks", [lesson["classes"] for lesson in header["lessons"]])
    meaning = header.get("meaning", list(range(n_labels)))
    tasks = tuple(tuple(_whole(c) for c in classes) for classes in tasks)
    known = {c for classes in tasks for c in classes}
    named = {p for p in meaning if p != GONE}
    _require(len(tasks) == len(header["lessons"]) and known == set(range(len(meaning))), "its tasks' classes")
    _require(all(isinstance(p, int) for p in meaning) and named == set(range(n_labels)), "what its classes are called")
    changes = tuple(Change(**values | {"labels": tuple(values["labels"])}) for values in header.get("changes", []))
    _require(all(isinstance(c.what, str) and isinstance(c.changed_at, str) for c in changes), "what was changed")
    return {"tasks": tasks, "meaning": tuple(meaning), "changes": changes}


def _upgraded(method: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a learner's state as this version of its method would have written it."""
    kept = method_class(method).upgraded(_part(state, "method."))
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("method.")}
    return rest | {f"method.{name}": tensor for name, tensor in kept.items()}


def _part(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _restored(model: ContinualClassifier, state: dict[str, Tensor], n_bytes: float) -> Learner:
    """Return the learner that a state is of, made in not much more memory than that."""
    scenario = model.bookkeeping_.scenario_with()
    with MemoryLimit(n_bytes + 2**20):
        learner = new_learner(model, scenario)
    learner.check_state(state)
    learner.load_state(state)
    check_form(learner.method.state(), _part(state, "method."))
    return learner


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


def _lesson(values: dict[str, Any], n_labels: int) -> Lesson:
    classes, counts = (tuple(_whole(v) for v in values[name]) for name in ("classes", "counts"))
    _require(len(classes) == len(set(classes)) == len(counts), "a task's classes")
    _require(all(c < n_labels for c in classes), "a task's classes")
    texts = isinstance(values["learned_at"], str) and isinstance(values["digest"], str)
    _require(texts and isinstance(values["name"], str | int) and values["seconds"] >= 0, "a task's description")
    agreement, tested = (_pairs(values.get(name, {})) for name in ("agreement", "tested"))
    _require(_whole(values.get("batches", 1)) > 0 and all(c < n_labels for c in tested), "a task's description")
    return Lesson(**values | {"classes": classes, "counts": counts, "agreement": agreement, "tested": tested})


def _pairs(values: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """Return what JSON has pairs of counts by position for."""
    return {int(c): (_whole(n), _whole(some)) for c, (n, some) in values.items()}


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
