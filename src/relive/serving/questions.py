"""Parsing and checking requests: JSON, or CSV with a header line."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from relive._util.errors import InputError
from relive.classifier.bookkeeping import Array
from relive.classifier.labels import spoken
from relive.data.readers.plain_csv import samples_in
from relive.data.readers.samples import arranged
from relive.inference.opening import Model

FIELDS = ("samples", "proba", "task", "reject")


@dataclass(frozen=True)
class Question:
    """Samples (n, features), the task of all or of each if given, and whether probabilities are wanted.

    ``reject`` is the share of typical samples that may be rejected; None to always predict a class.
    """

    samples: Array
    task: Any
    proba: bool
    reject: float | None = None


def from_json(body: bytes, most: int) -> Question:
    """Parse ``{"samples": [[…], …], "proba": true, "task": …, "reject": 0.05}``; all but the first are optional."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InputError(f"the body is not JSON: {error}") from error
    if not isinstance(said, dict) or not isinstance(said.get("samples"), list):
        raise InputError('the body must be an object with "samples", a list of rows of numbers')
    for name in said:
        if name not in FIELDS:
            raise InputError(f"unknown field {name!r}; known fields: {', '.join(FIELDS)}")
    rows, task, proba = said["samples"], said.get("task"), said.get("proba", False)
    _check_number(len(rows), most)
    if not isinstance(proba, bool):
        raise InputError(f'"proba" is {proba!r}: it must be true or false')
    if not all(isinstance(row, list) and all(_is_number(value) for value in row) for row in rows):
        raise InputError(
            '"samples" must be rows of numbers, in the order of feature_names in /model, without missing values'
        )
    if len({len(row) for row in rows}) > 1:
        raise InputError('"samples" has rows of different lengths')
    if not isinstance(task, str | int | list | None) or not all(isinstance(t, str | int) for t in _listed(task)):
        raise InputError('"task" must be a task\'s name, or a list with one per sample')
    reject = said.get("reject")
    if reject is not None and not _is_number(reject):
        raise InputError(f'"reject" is {reject!r}: it must be a number between 0 and 1, such as 0.05')
    return Question(np.array(rows, dtype=np.float64), task, proba, reject)


def from_csv(body: bytes, asked: Mapping[str, str], model: Model, most: int) -> Question:
    """Parse a table; ``task``, ``task_column``, ``proba`` and ``reject`` are in the address: ``/predict?proba=1``."""
    for name in asked:
        if name not in ("task", "task_column", "proba", "reject"):
            raise InputError(f"unknown query parameter {name!r}; known ones: task, task_column, proba, reject")
    try:
        reject = float(asked["reject"]) if "reject" in asked else None
    except ValueError:
        raise InputError(f"reject = {asked['reject']!r}: it must be a number between 0 and 1, such as 0.05") from None
    try:
        rows = [row for row in csv.reader(io.StringIO(body.decode("utf-8-sig")), skipinitialspace=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the body is not CSV in UTF-8: {error}") from error
    if not rows:
        raise InputError("the body is empty: its first line must hold the column names")
    _check_number(len(rows) - 1, most)
    noted = model.notes_.get("fit")
    label = str(noted.get("label", "label")) if isinstance(noted, dict) else "label"
    ignored = noted.get("ignore", []) if isinstance(noted, dict) else []
    ignored = list(map(str, ignored)) if isinstance(ignored, list) else []
    samples = samples_in(rows[0], rows[1:], label, asked.get("task_column"), text_labels=True, ignored=ignored)
    if samples is None:
        raise InputError(
            "the body must be a line of column names and rows with as many numbers, separated by commas, "
            "without missing values"
        )
    known = getattr(model, "feature_names_in_", None)
    samples = samples if known is None else arranged(samples, known.tolist(), "the body")
    names = {str(lesson.name): lesson.name for lesson in model.lessons_}
    given = list(samples.tasks) if samples.tasks is not None else asked.get("task")
    task = [names.get(t, t) for t in given] if isinstance(given, list) else names.get(given or "", given)
    return Question(samples.x, task, asked.get("proba", "0") not in ("0", "false", ""), reject)


def _check_number(n: int, most: int) -> None:
    if not 0 < n <= most:
        raise InputError(f"there are {n:,} samples: send at least 1 and at most {most:,} at a time")


def _listed(task: Any) -> list[Any]:
    return task if isinstance(task, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308


def answer(model: Model, question: Question) -> dict[str, Any]:
    """Return the labels and, if requested, the classes and their probabilities."""
    if question.samples.ndim != 2 or question.samples.shape[1] != model.n_features_in_:
        found = question.samples.shape[-1]
        raise InputError(f"the samples have {found} features, but this model was trained on {model.n_features_in_}")
    model.features_.check(question.samples)
    probabilities, refused = model.judged(question.samples, question.task, question.reject)
    found_labels = {"labels": spoken(model.classes_[probabilities.argmax(1)], refused, model.labels_)}
    if not question.proba:
        return found_labels
    return found_labels | {"classes": model.classes_.tolist(), "probabilities": probabilities.tolist()}
