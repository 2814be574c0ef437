"""The user's own samples, wherever they were read from."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError

Array = npt.NDArray[Any]
FIT = "relive fit, predict and evaluate"  # these have options for names; a run's data set does not
FEW_ROWS = 20
FAR = 1e4  # interquartile ranges from the median


@dataclass(frozen=True)
class Samples:
    """The contents of a file or folder.

    Attributes
    ----------
    x
        (n, features) float64, float32 or uint8.
    y
        (n,) labels, or None if there are none.
    names
        Of the features, for a table.
    files
        The file of each sample, for a folder of images.
    image
        Height, width and, in colour, 3, if the features are an image's pixels.
    tasks
        The task of each sample, if a column has it.
    """

    x: Array
    y: Array | None
    names: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    image: tuple[int, ...] | None = None
    tasks: tuple[Any, ...] | None = None


def arranged(samples: Samples, known: Sequence[str], where: str) -> Samples:
    """Return samples of a table with the columns that a model knows, in its order; refuse others, and missing ones."""
    if samples.names is None or list(samples.names) == list(known):
        return samples
    place = {name: i for i, name in enumerate(samples.names)}
    missing = [name for name in known if name not in place]
    foreign = [name for name in samples.names if name not in set(known)]
    if missing:
        raise InputError(
            f"{where} has no column {missing[0]!r}, which this model was trained on"
            + (f" ({len(missing)} such columns are missing)" if len(missing) > 1 else "")
            + (f"; it has a column {foreign[0]!r} that the model does not know" if foreign else "")
        )
    if foreign:
        raise InputError(
            f"{where} has a column {foreign[0]!r} that this model was not trained on: leave it out, or say that it "
            "holds the labels or tasks"
        )
    return replace(samples, x=np.ascontiguousarray(samples.x[:, [place[name] for name in known]]), names=tuple(known))


def id_column(samples: Samples) -> str | None:
    """Return the name of the first column that has a different whole number in every row, if there is one.

    With fewer than twenty rows that may be chance.

    >>> id_column(Samples(np.stack([np.arange(20) / 9, 100 - np.arange(20)], 1), None, ("size", "row")))
    'row'
    """
    if len(samples.x) < FEW_ROWS or samples.names is None or samples.image is not None:
        return None
    whole = np.flatnonzero((samples.x == np.round(samples.x)).all(0))
    return next((samples.names[i] for i in whole if len(np.unique(samples.x[:, i])) == len(samples.x)), None)


def far_value(samples: Samples) -> tuple[str, int] | None:
    """Return the column and row, from 1, of a value that is absurdly far from the others of its column, if any is.

    >>> far_value(Samples(np.append(np.arange(19.0), 1e9)[:, None], None, ("size",)))
    ('size', 20)
    """
    if len(samples.x) < FEW_ROWS or samples.names is None or samples.image is not None:
        return None
    x = samples.x.astype(np.float64)
    low, middle, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0)
    away = np.abs(x - middle) > FAR * (high - low)
    away[:, high == low] = False  # mostly one value: any other is far
    if not away.any():
        return None
    row, column = np.argwhere(away)[0]
    return samples.names[column], int(row) + 1


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Refuse arrays of an unsupported shape, rather than treat them as plain features.

    >>> check_shape((480, 3, 12, 20), "X")
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: X is (480, 3, 12, 20): colours come last, X.transpose(0, 2, 3, 1)
    """
    if len(shape) in (2, 3) or (len(shape) == 4 and shape[3] in (1, 3)):
        return
    advice = "give (n, features), (n, height, width) or (n, height, width, 3); X.reshape(len(X), -1) for plain features"
    if len(shape) == 4 and shape[1] in (1, 3):
        advice = "colours come last, X.transpose(0, 2, 3, 1)"
    elif len(shape) == 4 and shape[3] == 4:
        advice = "an image has at most 3 channels, X[..., :3] drops the transparency"
    raise InputError(f"{what} is {shape}: {advice}")


def numbers(values: Array, what: str) -> Array:
    """Return features as float64, float32 or uint8, whichever is closest to their type."""
    if values.dtype in (np.uint8, np.float32, np.float64):
        return values
    if values.dtype.kind not in "biuf":
        raise InputError(f"{what} has type {values.dtype}: features must be numbers")
    return values.astype(np.float64)


def labels(values: Array, what: str) -> Array:
    """Return labels as an array of whole numbers, booleans or strings; each sample must have one."""
    check_filled(values, what)
    if values.dtype.kind == "O":
        values = _typed(values.tolist(), what)
    if values.dtype.kind not in "biufU":
        raise InputError(f"{what} has type {values.dtype}: labels must be numbers or strings")
    broken = ~np.isfinite(values) | (values != np.floor(values)) if values.dtype.kind == "f" else np.zeros(1, bool)
    if broken.any():
        row = int(broken.argmax())
        raise InputError(
            f"{what} has {values[row].item()!r} in row {row + 1}: labels are classes, so whole numbers or "
            "strings, not continuous values. If these are classes, give them names, such as 'half' for 0.5"
        )
    return values


def blank(values: Array) -> npt.NDArray[np.bool_]:
    """Return where values are missing, (n,): None, NaN, or blank strings.

    >>> blank(np.array(["x", "", " "])).tolist(), blank(np.array([0.0, np.nan])).tolist()
    ([False, True, True], [False, True])
    """
    return np.array([_nothing(value) for value in values.tolist()], dtype=bool)


def _nothing(value: Any) -> bool:
    return value is None or (
        not value.strip() if isinstance(value, str) else isinstance(value, float) and value != value
    )


def check_filled(values: Array, what: str) -> None:
    """Refuse labels or tasks with missing values."""
    missing = blank(values)
    if missing.any():
        raise InputError(f"{what} has a missing value in row {int(missing.argmax()) + 1}")


def parsed(texts: list[str]) -> Array:
    """Return labels from a file as numbers or booleans, or unchanged if converting would alter any.

    >>> parsed(["1", "2"]).tolist(), parsed(["01", "1"]).tolist(), parsed(["True", "False"]).tolist()
    ([1, 2], ['01', '1'], [True, False])
    """
    if set(texts) <= {"True", "False"}:
        return np.array([text == "True" for text in texts])
    values = {text: value for text in set(texts) if (value := number(text)) is not None}
    alone = len(set(texts)) == len(values) == len(set(values.values()))  # 1 and 1.0 are two texts, but one number
    array = exact([values[text] for text in texts]) if alone else None
    return text_array(texts) if array is None else array


def text_array(texts: Sequence[str], what: str = "a label") -> Array:
    r"""Return strings as an array, unchanged: NumPy cuts off trailing NUL characters, so these are refused.

    >>> text_array(["a\0", "a"])
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: a label is 'a\x00': labels cannot contain a NUL character; remove it
    """
    for text in texts:
        if "\0" in text:
            raise InputError(f"{what} is {reprlib.repr(text)}: labels cannot contain a NUL character; remove it")
    return np.array(texts)


def number(text: str) -> int | float | None:
    """Return the number that is written in exactly this way, None if there is none.

    >>> number("7"), number("0.5"), number("07"), number("1e5"), number("nan")
    (7, 0.5, None, None, None)
    """
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text and value - value == 0:
            return value
    return None


def exact(values: list[Any], types: Sequence[npt.DTypeLike] = ()) -> Array | None:
    """Return values as an array of the first type that keeps each of them exactly, None if there is none.

    By default the types are those of whole numbers and of other numbers.
    """
    whole = all(isinstance(value, int) for value in values)
    for dtype in types or ((np.int64, np.uint64) if whole else (np.float64,)):
        try:
            array = np.array(values, dtype=dtype)
        except OverflowError:
            continue
        if array.tolist() == values:
            return array
    return None


def _typed(values: list[Any], what: str) -> Array:
    """Return Python objects as an array of strings, booleans or numbers."""
    types = {type(value) for value in values}
    array = None
    if types == {str}:
        array = text_array(values, what)
    elif types == {bool}:
        array = np.array(values)
    elif types <= {int, float}:
        array = exact(values)
    if array is None:
        too_long = [isinstance(value, int) and exact([value]) is None for value in values]
        row = next((i for i, value in enumerate(values) if too_long[i] or type(value) is not type(values[0])), 0)
        raise InputError(
            f"{what} has {reprlib.repr(values[row])} in row {row + 1}: labels must be all strings, or all "
            "whole numbers of at most 64 bits"
        )
    return array


def answers_in(values: Array | None, what: str, needed: bool) -> Array | None:
    """Return labels; if they are optional, labels that are all empty count as none."""
    if values is None or (not needed and blank(values).all()):
        return None
    return labels(values, what)


def tasks_in(values: Array, what: str) -> tuple[Any, ...]:
    """Return the task of each sample; refuse missing ones."""
    check_filled(values, what)
    return tuple(values.tolist())


def listed(names: list[str], most: int = 20) -> str:
    """Return names, and of many the first and the last ones: labels are often last."""
    if len(names) <= most:
        return ", ".join(map(repr, names))
    return f"{listed(names[:10])}, … {listed(names[-5:])} ({len(names)} in all)"


def in_one_line(error: BaseException) -> str:
    """Return the first line of an error message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
