"""Samples from CSV and Parquet, with a column of labels, and from arrays in an NPZ file."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relive.data.samples import Array, Samples, labels, numbers
from relive.errors import DataError, InputError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MISSING = ["", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "<NA>"]


def read_csv(path: Path, label: str, needed: bool, task_column: str | None = None) -> Samples:
    """Read a CSV file with a line of column names; a class may well be called NA there, or None.

    Parameters
    ----------
    path
        Ends with .csv or .csv.gz.
    label
        The column of labels.
    needed
        Whether that column must be there.
    task_column
        A column with each sample's task.
    """
    pandas = _needed("pandas")
    names = _header(path)
    texts = {label, task_column}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # lines longer than the first would be cut off
            table = pandas.read_csv(
                path,
                encoding="utf-8-sig",
                skipinitialspace=True,
                low_memory=False,
                keep_default_na=False,
                na_values={name: [""] if name in texts else MISSING for name in names},
                index_col=False,
            )
    except (ValueError, pandas.errors.ParserWarning) as error:
        raise DataError(f"{path} is not a CSV file that can be read: {error}") from error
    return _samples(table, path, label, needed, task_column)


def read_parquet(path: Path, label: str, needed: bool, task_column: str | None = None) -> Samples:
    """Read a Parquet file; the parameters are those of :func:`read_csv`."""
    pandas = _needed("pandas")
    _needed("pyarrow")
    try:
        table = pandas.read_parquet(path, engine="pyarrow").reset_index(drop=True)
    except (ValueError, OSError) as error:
        raise DataError(f"{path} is not a Parquet file that can be read: {error}") from error
    return _samples(table.rename(columns=str), path, label, needed, task_column)


def read_npz(path: Path, x: str, y: str, needed: bool, task_array: str | None = None) -> Samples:
    """Read samples (n, features), or pictures (n, height, width[, 3]), and labels (n,) from a NumPy file.

    Parameters
    ----------
    path
        What ``numpy.savez`` wrote; nothing in it is ever run.
    x, y
        Names of the two arrays.
    needed
        Whether the labels must be there.
    task_array
        An array with each sample's task.
    """
    wanted = [x, *([y] if needed else []), *([task_array] if task_array else [])]
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            for name in wanted:
                if name not in file.files:
                    raise InputError(f"{path} has no array {name!r}: it has {_listed(file.files)}{_hint(name, x, y)}")
            arrays = {name: file[name] for name in [*wanted, y] if name in file.files}
    except InputError:
        raise
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not an NPZ file of plain arrays: {error}") from error
    data = numbers(arrays[x], f"array {x!r} of {path}")
    if data.ndim < 2 or not len(data):
        raise InputError(f"array {x!r} of {path} has shape {data.shape}: it must be (samples, features)")
    image = data.shape[1:] if data.ndim == 3 or (data.ndim == 4 and data.shape[3] == 3) else None
    flat = data.reshape(len(data), -1)
    if not np.isfinite(flat).all():
        row, column = np.argwhere(~np.isfinite(flat))[0]
        raise InputError(
            f"array {x!r} of {path} has a value that is missing or infinite, first in row {row}, feature {column}: "
            "fill it in or leave the row out"
        )
    found = {name: _column_of(array, len(flat), name, path) for name, array in arrays.items() if name != x}
    answers = labels(found[y], f"array {y!r} of {path}") if y in found else None
    tasks = tuple(found[task_array].tolist()) if task_array else None
    return Samples(flat, answers, image=image, tasks=tasks)


def _samples(table: DataFrame, path: Path, label: str, needed: bool, task_column: str | None) -> Samples:
    """Take a table apart into features, labels and tasks."""
    columns = list(table.columns)
    for name in (label if needed else None, task_column):
        if name is not None and name not in columns:
            hint = "; name the column of labels with --label" if name == label else ""
            raise InputError(f"{path} has no column {name!r}: it has {_listed(columns)}{hint}")
    if not len(table):
        raise InputError(f"{path} has no rows")
    apart = [name for name in (label, task_column) if name in columns]
    for name in apart:
        if table[name].isna().any():
            raise InputError(f"column {name!r} of {path} has no value in row {_first(table[name].isna())}")
    features = table.drop(columns=apart)
    if not features.shape[1]:
        raise InputError(f"{path} has no columns besides {_listed(apart)}: there is nothing to learn from")
    return Samples(
        _features(features, path),
        labels(table[label].to_numpy(), f"column {label!r} of {path}") if label in columns else None,
        names=tuple(features.columns),
        tasks=tuple(table[task_column].tolist()) if task_column else None,
    )


def _features(table: DataFrame, path: Path) -> Array:
    """Return columns of numbers as one array."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for name, column in table.items():
        if not (is_numeric_dtype(column) or is_bool_dtype(column)) or column.dtype.kind == "c":
            raise InputError(
                f"column {name!r} of {path} is not numeric: {_first_text(column)}. Turn it into numbers "
                "(pandas.get_dummies does, for categories), leave it out, or name it with --label if it has the labels"
            )
        if column.isna().any():
            raise InputError(
                f"column {name!r} of {path} has {int(column.isna().sum())} missing values, the first in row "
                f"{_first(column.isna())}: fill them in or leave these rows out"
            )
    kinds = set(table.dtypes)
    common = next((kind for kind in (np.uint8, np.float32) if kinds == {np.dtype(kind)}), np.float64)
    array: Array = table.to_numpy(dtype=common)
    if not np.isfinite(array).all():
        row, column_number = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"column {table.columns[column_number]!r} of {path} has an infinite value in row {row + 1}")
    return array


def _header(path: Path) -> list[str]:
    """Return the column names of a CSV file, each of which must be there once."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, skipinitialspace=True), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file in UTF-8: {error}") from error
    except (csv.Error, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a CSV file that can be read: {error}") from error
    if not names:
        raise InputError(f"{path} is empty: its first line must have the names of the columns")
    for i, name in enumerate(names):
        if not name:
            raise InputError(
                f"column {i + 1} of {path} has no name. If it only counts the rows, leave it out "
                "(with pandas: to_csv(…, index=False)); if the first line has no names, add such a line"
            )
        if name in names[:i]:
            raise InputError(f"{path} has two columns {name!r}: give each a name of its own")
    for separator in ";\t":
        if len(names) == 1 and separator in names[0]:
            raise InputError(f"{path} is separated by {separator!r}: write it with commas")
    return names


def _column_of(array: Array, n: int, name: str, path: Path) -> Array:
    if array.shape not in ((n,), (n, 1)):
        raise InputError(f"array {name!r} of {path} has shape {array.shape}: it must have one value for {n} samples")
    return array.reshape(n)


def _first(mask: Series[bool]) -> int:
    """Return the number of the first row that is meant, from 1."""
    return int(mask.to_numpy().argmax()) + 1


def _first_text(column: Series[Any]) -> str:
    """Say which value of a column is no number."""
    from pandas import to_numeric

    if column.dtype.kind not in "OU" and str(column.dtype) not in ("str", "string", "category"):
        return f"it has type {column.dtype}"
    wrong = to_numeric(column.astype(object), errors="coerce").isna() & column.notna()
    row = _first(wrong)
    return f"row {row} has {column.iloc[row - 1]!r}"


def _listed(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _hint(name: str, x: str, y: str) -> str:
    return {x: "; name the samples with --x", y: "; name the labels with --y"}.get(name, "")


def _needed(name: str) -> Any:
    """Import a package that not everybody has."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DataError(f"reading tables needs {name}: pip install 'relive[tables]'") from error
