"""Labels as users give them: numbers or strings of any kind, kept exactly, in the order in which they were met."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from relive.errors import InputError

Array = npt.NDArray[Any]


def label_array(y: Any) -> Array:
    """Return labels as an array of whole numbers, numbers, booleans or strings.

    >>> label_array(["yes", "no"]).tolist()
    ['yes', 'no']
    """
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    array: Array = column_or_1d(np.asarray(y) if hasattr(y, "dtype") else y, warn=True)  # pandas' own types as objects
    if array.dtype.kind not in "biufU":
        values = array.tolist()
        strings = [isinstance(label, str) for label in values]
        if any(strings) and not all(strings):
            kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in values})
            raise InputError(f"labels of type {', '.join(kinds)}: they must all be strings, or all be numbers")
        array = np.array([str(label) for label in values]) if all(strings) and values else np.array(values)
    assert_all_finite(array, input_name="y")
    check_classification_targets(array)
    if array.dtype.kind not in "biufU":
        raise InputError(f"labels of type {array.dtype}: they must be numbers or strings")
    return array


def joined(known: Array, new: Array) -> Array:
    """Return the known labels, then those that are new; none is changed by being put beside the others.

    >>> joined(np.array([3, 1]), np.array([1.0, 2.0])).tolist()
    [3, 1, 2]
    """
    if not len(known) or not len(new):
        return new if len(new) else known
    if (known.dtype.kind == "U") != (new.dtype.kind == "U"):
        raise InputError(
            f"labels are {_kind(new)} ({new[0].item()!r}), but those known so far are {_kind(known)} "
            f"({known[0].item()!r})"
        )
    met = set(known.tolist())
    values = [*known.tolist(), *(label for label in new.tolist() if label not in met)]
    types = [np.result_type(known, new)]
    if known.dtype.kind in "iu" and all(int(label) == label for label in values):
        values, types = [int(label) for label in values], [known.dtype, np.dtype(np.int64), np.dtype(np.uint64)]
    for dtype in types:
        try:
            result = np.array(values, dtype=dtype)
        except OverflowError:
            continue
        if result.tolist() == values:
            return result
    raise InputError(
        f"labels of type {new.dtype} cannot be kept exactly beside those known so far, of type {known.dtype}: "
        "use one type of label"
    )


def _kind(labels: Array) -> str:
    return "strings" if labels.dtype.kind == "U" else "numbers"


def digest_of(data: Array, y: Array) -> str:
    """Return a digest of samples with their labels that does not depend on their order.

    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["x", "y"])
    >>> digest_of(a, b) == digest_of(a[::-1], b[::-1])
    True
    """
    rows = np.ascontiguousarray(data, dtype=np.float32)
    digests = sorted(
        hashlib.sha256(row.tobytes() + repr(label).encode()).digest()
        for row, label in zip(rows, y.tolist(), strict=True)
    )
    return hashlib.sha256(b"".join(digests)).hexdigest()
