"""One safe file per model: safetensors with a JSON header, no pickle. A loaded model continues as if never stored."""

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
from relive._util.tensorfile import FileError, write_tensors
from relive._util.versions import versions
from relive.classifier import parameters, portraits
from relive.classifier.estimator import Array, ContinualClassifier
from relive.classifier.learning import new_learner
from relive.classifier.memorylimit import MemoryLimit
from relive.classifier.modelheader import (
    KIND,
    REFUSED,
    VERSION,
    Header,
    described,
    labels_to_json,
    not_whole,
    require,
)
from relive.classifier.waiting import Waiting
from relive.core.learner import Learner
from relive.methods import method_class


def save(model: ContinualClassifier, path: Path) -> None:
    """Write a model; an existing file is replaced atomically or not at all."""
    if not model.__sklearn_is_fitted__():
        raise InputError("this model has not learned anything yet: call partial_fit before save")
    given = model.get_params(deep=False)
    parameters.check_unchanged(model.structure_, given)
    parameters.check_stored_data(given | {"method": model.choice_.method})
    waiting = model.waiting_
    if waiting is not None and not model.allow_stored_data:
        raise InputError(
            f"{len(waiting)} samples are waiting to be learned, and samples are not written to a file unless "
            "you allow it: call consolidate() first, or set allow_stored_data=True (relive fit "
            "--allow-stored-data)"
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
            f"a model with the encoder {model.encoder!r} cannot be saved: a model file holds no code. Put the "
            "function that makes it into a file and give its address: encoder='my_file.py:make'"
        )
    header = {
        "parameters": {name: _plain(value) for name, value in given.items()},
        "choice": asdict(model.choice_),
        "seed": model.seed_,
        "likelihood": model.features_.likelihood,
        "labels": labels_to_json(model.labels_),
        "declared": labels_to_json(model.bookkeeping_.declared),
        "lessons": [asdict(lesson) for lesson in model.lessons_],
        "tasks": model.bookkeeping_.tasks,
        "meaning": model.bookkeeping_.meaning,
        "changes": [asdict(change) for change in model.changes_],
        "n_features": model.n_features_in_,
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "notes": model.notes_,
        "dreamt": {str(c): m.replayed for c, m in enumerate(model.report()) if m.replayed is not None},
        "asked": {"learned": model.asked_.learned, "usual": model.asked_.usual},
        "versions": versions(),
    }
    tensors = {f"learner.{name}": tensor for name, tensor in model.learner_.state().items()}
    if waiting is not None:
        labels, index = np.unique(waiting.y, return_inverse=True)
        header["waiting"] = {
            "labels": labels_to_json(labels),
            "index": index.tolist(),
            "declared": labels_to_json(waiting.declared),
        }
        tensors["waiting.x"] = torch.from_numpy(np.ascontiguousarray(waiting.data))
    tensors |= {f"asked.{name}": torch.from_numpy(array.copy()) for name, array in model.asked_.to_arrays().items()}
    pictured = portraits.to_arrays(model.portraits_)
    tensors |= {f"portraits.{name}": torch.from_numpy(array.copy()) for name, array in pictured.items()}
    tensors["features.mean"] = torch.from_numpy(model.features_.mean)
    tensors["features.scale"] = torch.from_numpy(model.features_.scale)
    try:
        write_tensors(path, KIND, VERSION, header, tensors, check=lambda written: load(written, allow_code=True))
    except FileError as error:
        raise ReliveError(
            f"cannot write {path}: it could not be read back: {error}. The old file is unchanged"
        ) from error
    except OSError as error:
        raise ReliveError(f"cannot write {path}: {error.strerror or error}") from error
    except TypeError as error:
        raise InputError(f"notes_ must be plain JSON values: {error}") from error


def load(path: str | Path, *, allow_code: bool = False) -> ContinualClassifier:
    """Return the model in a file that :meth:`ContinualClassifier.save` wrote.

    Parameters
    ----------
    path
        The file.
    allow_code
        Whether a model may refer to a method or an encoder by its address (``my_file.py:MyMethod``), whose code is
        then run. Only for files that you trust.

    Raises
    ------
    FileError
        If it is not a model, or from a newer version, cut short or modified.
    InputError
        If there is no such file, or it refers to user code and that was not allowed.
    """
    path = Path(path)
    header, arrays = described(path, allow_code=allow_code)
    try:
        return _model(header, arrays)
    except REFUSED as error:
        raise not_whole(path, error) from error


def _model(header: Header, arrays: dict[str, Array]) -> ContinualClassifier:
    """Create a model from the contents of a file."""
    model = ContinualClassifier(**header.parameters)
    model.structure_ = parameters.structure_of(header.parameters)
    model.choice_ = header.choice
    model.seed_ = header.seed
    model.n_features_in_ = header.n_features
    model.notes_ = header.notes
    if header.feature_names:
        model.feature_names_in_ = np.array(header.feature_names, dtype=object)
    model.bookkeeping_ = header.bookkeeping
    model.features_, model.asked_, model.portraits_ = header.features, header.asked, header.portraits
    if header.waiting is not None:
        model.waiting_ = Waiting(*header.waiting)
    elsewhere = ("features.", "asked.", "portraits.", *(["waiting."] if header.waiting is not None else []))
    tensors = {name: torch.from_numpy(a.copy()) for name, a in arrays.items() if not name.startswith(elsewhere)}
    require(all(name.startswith("learner.") for name in tensors), "it has tensors that do not belong to the model")
    state = _upgraded(header.choice.method, {name.removeprefix("learner."): t for name, t in tensors.items()})
    own = header.names_code  # user code is not limited
    model.learner_ = _restored(model, state, math.inf if own else sum(t.nbytes for t in state.values()))
    return model


def _upgraded(method: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a learner's state as this version of its method would have written it."""
    kept = method_class(method).upgraded(_part(state, "method."))
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("method.")}
    return rest | {f"method.{name}": tensor for name, tensor in kept.items()}


def _part(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _restored(model: ContinualClassifier, state: dict[str, Tensor], n_bytes: float) -> Learner:
    """Return the learner with a given state, created in little more memory than the state takes."""
    scenario = model.bookkeeping_.scenario_with()
    with MemoryLimit(n_bytes + 2**20):
        learner = new_learner(model, scenario)
    learner.restore(state)
    return learner


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value
