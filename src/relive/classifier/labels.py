"""Labels as users give them: numbers or strings of any kind, kept exactly, in the order in which they were first seen.

Torch and scikit-learn are imported only when new labels are given; reading a model's labels needs neither.
"""

from __future__ import annotations

import hashlib
import warnings
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive.data.readers.samples import blank, exact, number, text_array

Array = npt.NDArray[Any]
FEW = 20  # with at most this many samples, all may be of different classes


def label_array(y: Any) -> Array:
    """Return labels as an array of whole numbers, numbers, booleans or strings.

    >>> label_array(["yes", "no"]).tolist()
    ['yes', 'no']
    """
    from sklearn.utils import assert_all_finite
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d
    from torch import Tensor

    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    if isinstance(y, list | tuple):
        text_array([label for label in y if isinstance(label, str)])
    array: Array = column_or_1d(np.asarray(y) if hasattr(y, "dtype") else y, warn=True)  # pandas' own types as objects
    if array.dtype.kind not in "biufU":
        array = _typed(array.tolist())
    try:
        assert_all_finite(array, input_name="y")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about many classes, which is normal when they are only declared
            check_classification_targets(array)
    except ValueError as error:
        raise InputError(f"{error} Labels are whole numbers, booleans or strings, one per sample.") from error
    if array.dtype.kind not in "biufU":
        raise InputError(f"labels have type {array.dtype}: they must be numbers or strings")
    if array.dtype.kind == "U" and blank(array).any():
        raise InputError("a label is an empty string: label every sample, or leave out those without a label")
    return array


def _typed(values: list[Any]) -> Array:
    """Return Python objects as an array of one type, without changing any of them."""
    kinds = {_kind(value): type(value).__name__ for value in values}
    if len(kinds) > 1:
        raise InputError(
            f"labels have types {', '.join(sorted(kinds.values()))}: they must be all strings, all numbers or "
            "all booleans"
        )
    if "strings" in kinds:
        return text_array([str(value) for value in values])
    if "numbers" in kinds and all(isinstance(value, int) for value in values):
        array = exact(values)
        if array is None:
            raise InputError(f"labels have more than 64 bits, such as {max(values, key=abs)}: give them as strings")
        return array
    return np.array(values)


def _kind(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "booleans"
    return "strings" if isinstance(label, str) else "numbers" if isinstance(label, Number) else type(label).__name__


def warn_of_many_labels(y: Array) -> None:
    """Warn about labels that are nearly all different; the warning points at the caller of ``fit``."""
    n = len(np.unique(y))
    if len(y) > FEW and 2 * n > len(y):
        warnings.warn(
            f"y has {n:,} different labels for {len(y):,} samples: are these classes? A classifier cannot "
            "predict continuous values",
            stacklevel=4,
        )


def kind_of(labels: Array) -> str:
    """Return the kind of labels; labels of different kinds are never equal.

    >>> kind_of(np.array([True])), kind_of(np.array([1, 2])), kind_of(np.array(["1"]))
    ('booleans', 'numbers', 'strings')
    """
    return {"b": "booleans", "U": "strings"}.get(labels.dtype.kind, "numbers")


UNKNOWN = "unknown"  # the answer for rejected samples, if labels are strings


def with_unknown(labels: Array, refused: Array, known: Array) -> Array:
    """Return answers (n,) with rejected ones (n,) replaced by a marker; ``known`` are the labels of classes.

    >>> with_unknown(np.array(["a", "b"]), np.array([True, False]), np.array(["a", "b"])).tolist()
    ['unknown', 'b']
    >>> with_unknown(np.array([3, 4], np.uint8), np.array([True, False]), np.array([3, 4])).tolist()
    [-1, 4]
    """
    kind = kind_of(known)
    marks: dict[str, Any] = {"strings": UNKNOWN, "numbers": -1, "booleans": None}
    mark = marks[kind]
    _check_free(mark, known)
    answers: Array = labels.astype(object)
    answers[refused] = mark
    return answers if kind == "booleans" else np.array(answers.tolist(), dtype=_room_for(labels.dtype))


def spoken(labels: Array, refused: Array, known: Array) -> list[Any]:
    """Return answers for text output: rejected ones are "unknown", whatever the labels are.

    >>> spoken(np.array([3, 4]), np.array([True, False]), np.array([3, 4]))
    ['unknown', 4]
    """
    if refused.any():
        _check_free(UNKNOWN, known)
    return [UNKNOWN if no else label for label, no in zip(labels.tolist(), refused.tolist(), strict=True)]


def _check_free(mark: Any, known: Array) -> None:
    if mark in known.tolist():
        raise InputError(
            f"rejected samples are answered with {mark!r}, but there is a class of that name: rename it "
            "(model.rename, relive rename)"
        )


def _room_for(dtype: np.dtype[Any]) -> npt.DTypeLike:
    """Return a label type that can hold the marker for unknown."""
    if dtype.kind == "U":
        return np.result_type(dtype, f"U{len(UNKNOWN)}")
    return np.int64 if dtype.kind == "u" else dtype


def joined(known: Array, new: Array) -> Array:
    """Return the known labels, then the new ones, without changing any of them.

    >>> joined(np.array([3, 1]), np.array([1.0, 2.0])).tolist()
    [3, 1, 2]
    """
    if not len(known) or not len(new):
        return new if len(new) else known
    if kind_of(known) != kind_of(new):
        unlike = next(
            (label for label in new.tolist() if isinstance(label, str) and number(label) is None), new[0].item()
        )
        raise InputError(
            f"labels are {kind_of(new)} ({unlike!r}), but those known so far are {kind_of(known)} "
            f"({known[0].item()!r}): give {kind_of(known)}, or start a new model with {kind_of(new)} from its "
            "first task on (in a CSV file 1 is a number, c1 a string)"
        )
    met = set(known.tolist())
    values = [*known.tolist(), *(label for label in new.tolist() if label not in met)]
    types: list[npt.DTypeLike] = [np.result_type(known, new)]
    if known.dtype.kind in "iu" and all(int(label) == label for label in values):
        values, types = [int(label) for label in values], [known.dtype, np.int64, np.uint64]
    array = exact(values, types)
    if array is None:
        raise InputError(
            f"labels of type {new.dtype} cannot be combined exactly with the known ones, of type "
            f"{known.dtype}: use one type of label"
        )
    return array


def digest_of(data: Array, y: Array) -> str:
    """Return a digest of samples with their labels that does not depend on their order.

    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["x", "y"])
    >>> digest_of(a, b) == digest_of(a[::-1], b[::-1])
    True
    """
    rows = np.ascontiguousarray(data, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    digests = sorted(
        hashlib.sha256(row.tobytes() + repr(label).encode()).digest()
        for row, label in zip(rows, y.tolist(), strict=True)
    )
    return hashlib.sha256(b"".join(digests)).hexdigest()
