"""One safe file per model: safetensors with a JSON header, no pickle. A loaded model goes on as if never stored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relive.errors import InputError, ReliveError
from relive.estimator import Array, ContinualClassifier, Lesson
from relive.features import Features
from relive.fidelity import Fidelity
from relive.tensorfile import FileError, read_tensors, write_tensors
from relive.versions import versions

KIND, VERSION = "relive model", 1


def save(model: ContinualClassifier, path: Path) -> None:
    """Write a model; a file that was there is replaced at once or not at all."""
    if not model.__sklearn_is_fitted__():
        raise InputError("this model has not learned anything yet: call partial_fit before save")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    parameters = model.get_params(deep=False) | {"random_state": model.seed_}
    if isinstance(model.fidelity, Fidelity):
        parameters["fidelity"] = model.fidelity.to_json()
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


def load(path: str | Path) -> ContinualClassifier:
    """Return the model in a file that :meth:`ContinualClassifier.save` wrote.

    Raises
    ------
    FileError
        If it is no model, of a newer version, cut short or changed; nothing in a file is ever run.
    """
    path = Path(path)
    header, tensors = _read(path)
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
    parameters = header["parameters"]
    if isinstance(parameters["fidelity"], dict):
        parameters["fidelity"] = Fidelity(**parameters["fidelity"])
    model = ContinualClassifier(**parameters)
    model._check_parameters()
    model.seed_ = int(header["seed"])
    model.n_features_in_ = int(header["n_features"])
    if header["feature_names"]:
        model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    mean, scale = tensors["features.mean"].numpy(), tensors["features.scale"].numpy()
    model.features_ = Features(header["likelihood"], mean, scale)
    model.labels_ = _labels_from_json(header["labels"])
    model.declared_ = _labels_from_json(header["declared"])
    model.lessons_ = [_lesson(values) for values in header["lessons"]]
    model.n_tasks_ = len(model.lessons_)
    model.notes_ = header["notes"]
    state = {name.removeprefix("learner."): t for name, t in tensors.items() if name.startswith("learner.")}
    _check_sizes(model, state)
    model.restore(state)
    found = {name: (t.shape, t.dtype) for name, t in model.learner_.state().items()}
    if found != {name: (t.shape, t.dtype) for name, t in state.items()}:
        raise ValueError("its tensors are not those of such a model")
    return model


def _check_sizes(model: ContinualClassifier, state: dict[str, Tensor]) -> None:
    """Refuse a header that asks for more memory than the file has."""
    rows, columns = state["net.encoder.layer1.weight"].shape
    if (rows, columns) != (model.hidden, model.n_features_in_):
        raise ValueError(
            f"it says {model.hidden} hidden units of {model.n_features_in_} inputs, and has {rows} of {columns}"
        )
    if int(state["seen"]) != model.n_tasks_:
        raise ValueError(f"it says {model.n_tasks_} tasks, and has learned {int(state['seen'])}")
    latent = [t for name, t in state.items() if name.endswith("feedback.latent.bias")]
    if any(len(t) != 2 * model.latent for t in latent):
        raise ValueError(f"it says {model.latent} latent variables, and has another number")
    if any(len(t) != model.n_features_in_ for t in (model.features_.mean, model.features_.scale)):
        raise ValueError("its features are not as many as its inputs")


def _lesson(values: dict[str, Any]) -> Lesson:
    agreement = {int(c): (int(n), int(agreed)) for c, (n, agreed) in values["agreement"].items()}
    lists = {name: tuple(int(v) for v in values[name]) for name in ("classes", "counts")}
    return Lesson(**values | lists | {"agreement": agreement})


def _labels_to_json(labels: Array) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _labels_from_json(values: dict[str, Any]) -> Array:
    dtype = np.dtype(values["dtype"])
    if dtype.kind not in "biufU":
        raise ValueError(f"labels of type {dtype}")
    return np.array(values["values"], dtype=dtype)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value
