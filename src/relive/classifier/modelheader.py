"""The header of a model file, checked without torch: parameters, labels, tasks, feature scaling.

A file may contain anything: everything that is used later is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relive._util import schema
from relive._util.arrayfile import FileError, read_arrays
from relive._util.errors import InputError, ReliveError
from relive._util.fidelity import Fidelity
from relive._util.registry import is_address
from relive.classifier import parameters
from relive.classifier.asked import Asked, asked_from
from relive.classifier.bookkeeping import GONE, Array, Bookkeeping
from relive.classifier.choice import AUTO, Choice
from relive.classifier.features import Features
from relive.classifier.lessons import Change, Lesson
from relive.classifier.portraits import Portraits, portraits_from
from relive.networks.catalogue import LIKELIHOODS

KIND, VERSION = "relive model", 3  # version 1 had no changes of classes, version 2 no held-out scores
CHANGES = ("forget", "rename", "merge")
REFUSED = (ReliveError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError)


@dataclass(frozen=True)
class Header:
    """What a file says about its model.

    Attributes
    ----------
    parameters
        All of the estimator's, by name; those missing from older files at their defaults.
    choice
        The method, and why it was chosen.
    seed, n_features, feature_names, notes, features, bookkeeping
        As the estimator has them; no names if the features have none.
    waiting
        Samples waiting to be learned, their labels, and labels declared with them; None if there are none.
    replayed
        Each class's share of what the model would replay, by its position in the labels; None if the file does
        not say.
    asked, portraits
        Scores of samples that were not learned; portraits of how classes looked.
    versions
        Of the software that wrote the file.
    """

    parameters: dict[str, Any]
    choice: Choice
    seed: int
    n_features: int
    feature_names: tuple[str, ...]
    notes: dict[str, Any]
    features: Features
    bookkeeping: Bookkeeping
    waiting: tuple[Array, Array, Array] | None
    replayed: dict[int, float] | None
    asked: Asked
    portraits: Portraits
    versions: dict[str, str]

    @property
    def names_code(self) -> bool:
        """Whether the model was created with user code."""
        return any(is_address(name or "") for name in (self.choice.method, self.parameters["encoder"]))

    @property
    def pending(self) -> int:
        """How many samples wait to be learned."""
        return len(self.waiting[0]) if self.waiting is not None else 0


def read_model(path: Path, *, allow_code: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a model file's header, still unchecked, and its arrays.

    Raises
    ------
    FileError
        If it is not a model, or from a newer version, cut short or modified.
    InputError
        If there is no such file, or it refers to user code and that was not allowed.
    """
    try:
        said, arrays = read_arrays(path, KIND, VERSION)
    except FileNotFoundError:
        raise InputError(f"there is no model {path}") from None
    except OSError as error:
        raise ReliveError(f"cannot read {path}: {error.strerror or error}") from error
    found = addresses(said)
    if found and not allow_code:
        raise InputError(
            f"{path} refers to user code, {' and '.join(found)}, which would run when it is loaded: if you "
            "trust the file, allow it with load(path, allow_code=True), or --allow-code on the command line"
        )
    return said, arrays


def described(path: Path, *, allow_code: bool) -> tuple[Header, dict[str, Array]]:
    """Return a model file's header, checked, and its arrays; raises the errors of ``read_model``."""
    said, arrays = read_model(path, allow_code=allow_code)
    try:
        _find_code(said, path.parent)
        return header_of(said, arrays), arrays
    except REFUSED as error:
        raise not_whole(path, error) from error


def not_whole(path: Path, error: Exception) -> FileError:
    """Return the error for a file whose contents are not a valid model."""
    return FileError(f"{path} is not a valid model: {error}")


def addresses(said: dict[str, Any]) -> list[str]:
    """Return the addresses of user code that a model needs."""
    given = said.get("parameters")
    named = [given.get(name) for name in ("method", "encoder")] if isinstance(given, dict) else []
    chosen = said.get("choice")
    named += [chosen.get("method")] if isinstance(chosen, dict) else []
    return list(dict.fromkeys(name for name in named if isinstance(name, str) and is_address(name)))


def _find_code(said: dict[str, Any], folder: Path) -> None:
    """Make addresses of missing files point to files next to the model, if they exist."""
    for address in addresses(said):
        place, _, name = address.rpartition(":")
        if not place.endswith(".py") or Path(place).is_file():
            continue
        beside = folder / Path(place).name
        if not beside.is_file():
            raise InputError(f"there is no file {place}, neither in {Path.cwd()} nor next to the model, {beside}")
        for values in (said["parameters"], said.get("choice", {})):
            values.update({key: f"{beside}:{name}" for key, value in values.items() if value == address})


def header_of(said: dict[str, Any], arrays: dict[str, Array]) -> Header:
    """Check a file's header; raises one of ``REFUSED`` if it is invalid."""
    given = _parameters(said["parameters"])
    choice = _choice(said)
    parameters.check_method(given | {"method": choice.method})
    n = whole(said["n_features"])
    names = tuple(schema.items(said["feature_names"], "feature_names"))
    require(
        not names or (len(names) == n and all(isinstance(name, str) for name in names)), "its feature names are invalid"
    )
    labels, declared = _labels_from_json(said["labels"]), _labels_from_json(said["declared"])
    lessons = tuple(_lesson(values, len(labels)) for values in said["lessons"])
    taught = {c for lesson in lessons for c, count in zip(lesson.classes, lesson.counts, strict=True) if count}
    require(len(taught) == len(labels), "it has labels that were never learned")
    seen = arrays["learner.seen"]
    require(seen.shape == () and seen.dtype == np.int64, "learner.seen is not a whole number")
    books = Bookkeeping(given["scenario"], labels, declared, lessons, **_structure(said, len(labels)))
    require(0 < len(books.tasks) == int(seen), f"it lists {len(books.tasks)} tasks but has learned {seen}")
    return Header(
        given,
        choice,
        whole(said["seed"]),
        n,
        names,
        schema.record(said["notes"], "notes"),
        _features(said["likelihood"], n, arrays),
        books,
        _waiting(said["waiting"], arrays["waiting.x"], n) if "waiting" in said else None,
        _replayed(said.get("dreamt"), len(labels)),
        _asked(said.get("asked"), arrays, len(books.meaning)),
        portraits_from(_below(arrays, "portraits."), n, books),
        schema.texts(said["versions"], "versions"),
    )


def require(fine: bool, what: str) -> None:
    """Raise an error unless the condition holds."""
    if not fine:
        raise ValueError(what)


def whole(value: Any) -> int:
    """Check that a value is a whole number, and return it."""
    return schema.whole(value, "a count")


def labels_to_json(labels: Array) -> dict[str, Any]:
    """Return labels for JSON, with their type."""
    return {"dtype": "str" if labels.dtype.kind == "U" else labels.dtype.name, "values": labels.tolist()}


def _parameters(said: dict[str, Any]) -> dict[str, Any]:
    for name in said:
        require(name in parameters.DEFAULTS, f"unknown parameter {name!r}")
    given = parameters.DEFAULTS | said
    if isinstance(given["fidelity"], dict):
        given["fidelity"] = Fidelity(**given["fidelity"])
    if given["shape"] is not None:
        given["shape"] = tuple(map(whole, given["shape"]))
    parameters.check(given)
    require(given["random_state"] is None or isinstance(given["random_state"], int), "its random_state is invalid")
    return given


def _choice(said: dict[str, Any]) -> Choice:
    """Return a model's method and why it was chosen; in older files the method was a parameter."""
    choice = Choice(**said.get("choice", {"method": said["parameters"]["method"]}))
    named = said["parameters"]["method"]
    require(named in (AUTO, choice.method) and isinstance(choice.reason, str), "its choice of method is invalid")
    return choice


def _features(likelihood: Any, n: int, arrays: dict[str, Array]) -> Features:
    mean, scale = arrays["features.mean"], arrays["features.scale"]
    for a in (mean, scale):
        require(
            a.shape == (n,) and a.dtype == np.float64 and bool(np.isfinite(a).all()), "its feature scaling is invalid"
        )
    require(likelihood in LIKELIHOODS and bool((scale > 0).all()), "its feature scaling or likelihood is invalid")
    return Features(likelihood, mean.copy(), scale.copy())


def _lesson(values: dict[str, Any], n_labels: int) -> Lesson:
    classes, counts = (tuple(whole(v) for v in values[name]) for name in ("classes", "counts"))
    require(len(classes) == len(set(classes)) == len(counts), "a task's classes are invalid")
    require(all(c < n_labels for c in classes), "a task's classes are invalid")
    require(type(values["name"]) in (str, int), "a task's name is neither a string nor a number")
    for name in ("learned_at", "digest"):
        schema.text(values[name], name)
    whole(values["iterations"])
    schema.number(values["seconds"], "seconds", low=0)
    schema.whole(values.get("batches", 1), "batches", low=1)
    tested = _pairs(values.get("tested", {}), n_labels)
    rest = {name: value for name, value in values.items() if name != "agreement"}  # which older files have
    return Lesson(**rest | {"classes": classes, "counts": counts, "tested": tested})


def _pairs(values: Any, n_labels: int) -> dict[int, tuple[int, int]]:
    """Return counts by label position: how many, and how many of them were correct."""
    pairs = {int(c): (whole(n), whole(some)) for c, (n, some) in schema.record(values, "counts").items()}
    require(all(c in range(n_labels) and some <= n for c, (n, some) in pairs.items()), "a task's counts are invalid")
    return pairs


def _structure(said: dict[str, Any], n_labels: int) -> dict[str, Any]:
    """Return each task's classes, their names and the changes made to them; older files have no changes."""
    tasks = said.get("tasks", [lesson["classes"] for lesson in said["lessons"]])
    meaning = said.get("meaning", list(range(n_labels)))
    tasks = tuple(tuple(whole(c) for c in classes) for classes in tasks)
    known = {c for classes in tasks for c in classes}
    named = {p for p in meaning if p != GONE}
    require(len(tasks) == len(said["lessons"]) and known == set(range(len(meaning))), "its tasks' classes are invalid")
    require(all(type(p) is int for p in meaning) and named == set(range(n_labels)), "its class names are invalid")
    return {"tasks": tasks, "meaning": tuple(meaning), "changes": tuple(map(_change, said.get("changes", [])))}


def _change(values: dict[str, Any]) -> Change:
    change = Change(**values | {"labels": tuple(schema.items(values["labels"], "labels"))})
    labels = (*change.labels, *(() if change.into is None else (change.into,)))
    require(change.what in CHANGES and bool(change.labels), "its history of changes is invalid")
    require(all(type(label) in (str, int, float, bool) for label in labels), "its history of changes is invalid")
    require((change.into is None) == (change.what == "forget"), "its history of changes is invalid")
    schema.text(change.changed_at, "changed_at")
    return change


def _waiting(values: dict[str, Any], x: Array, n: int) -> tuple[Array, Array, Array]:
    """Return the samples that wait to be learned."""
    labels, index = _labels_from_json(values["labels"]), [whole(i) for i in values["index"]]
    fine = x.shape == (len(index), n) and x.dtype in (np.float64, np.float32, np.uint8)
    require(fine and len(index) > 0 and bool(np.isfinite(x).all()), "its samples waiting to be learned are invalid")
    return x.copy(), labels[index], _labels_from_json(values["declared"])


def _replayed(said: Any, n_labels: int) -> dict[int, float] | None:
    if said is None:
        return None
    shares = {int(c): schema.number(share, "dreamt", 0, 1) for c, share in schema.record(said, "dreamt").items()}
    some = not shares or sum(shares.values()) > 0
    require(some and all(c in range(n_labels) for c in shares), "its replay shares are invalid")
    return shares


def _asked(said: Any, arrays: dict[str, Array], n_classes: int) -> Asked:
    """Return the scores of samples that were not learned; none in older files."""
    if said is None:
        return Asked.nothing()
    usual = schema.number(said["usual"], "usual")
    return asked_from(_below(arrays, "asked."), whole(said["learned"]), usual, n_classes)


def _below(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array.copy() for name, array in arrays.items() if name.startswith(prefix)}


def _labels_from_json(values: dict[str, Any]) -> Array:
    dtype, labels = np.dtype(values["dtype"]), schema.items(values["values"], "labels")
    kinds: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (float,), "U": (str,)}
    require(
        dtype.kind in kinds and (dtype.kind != "U" or values["dtype"] == "str"),
        f"labels of type {dtype} are not supported",
    )
    array = np.array(labels, dtype=dtype)
    exact = all(type(label) in kinds[dtype.kind] for label in labels) and array.tolist() == labels
    require(exact and len(set(labels)) == len(labels), "its labels are not distinct values of one type")
    return array
