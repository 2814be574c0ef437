"""Samples from CSV and Parquet files, with a label column."""

from __future__ import annotations

import csv
import gzip
import importlib
import reprlib
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relive._util.errors import DataError, InputError, nearest
from relive._util.files import memory
from relive.data.readers.plain_csv import read_plain_csv
from relive.data.readers.samples import (
    FIT,
    Array,
    Samples,
    answers_in,
    in_one_line,
    listed,
    parsed,
    tasks_in,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

LABEL = "label"  # what the column of labels is called if nothing else is said
LARGEST = sys.float_info.max
MISSING = ["", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "<NA>"]


def read_csv(
    path: Path,
    label: str,
    needed: bool,
    task_column: str | None = None,
    text_labels: bool = False,
    ignored: Collection[str] = (),
) -> Samples:
    """Read a CSV file with a header line; NA or None may well be class names there.

    Parameters
    ----------
    path
        Ends with .csv or .csv.gz.
    label
        The label column.
    needed
        Whether that column must be there, and filled in.
    task_column
        A column with each sample's task; its values stay strings.
    text_labels
        Whether labels stay strings even if all of them are numbers.
    ignored
        Columns to leave out, if they are there.
    """
    plain = None if needed else read_plain_csv(path, label, task_column, text_labels, ignored)
    if plain is not None:
        return plain
    pandas = _needed("pandas")
    if _zipped(path):
        _check_unpacked(path)
    names = _header(path)
    texts = [name for name in (label, task_column) if name in names]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # longer lines would be cut off silently
            table = pandas.read_csv(
                path,
                encoding="utf-8-sig",
                compression="gzip" if _zipped(path) else None,
                skipinitialspace=True,
                low_memory=False,
                dtype=dict.fromkeys(texts, str),
                keep_default_na=False,
                na_values={name: [""] if name in texts else MISSING for name in names},
                index_col=False,
            )
    except (ValueError, EOFError, zlib.error, pandas.errors.ParserWarning) as error:
        _check_widths(path, len(names))
        raise DataError(f"{path} is not a readable CSV file: {in_one_line(error)}") from error
    for name in texts:
        table[name] = table[name].str.strip()
    if label in names and not text_labels and table[label].notna().all():
        table[label] = parsed(table[label].tolist())
    return _samples(table.drop(columns=list(ignored), errors="ignore"), path, label, needed, task_column)


def read_parquet(
    path: Path, label: str, needed: bool, task_column: str | None = None, ignored: Collection[str] = ()
) -> Samples:
    """Read a Parquet file; the parameters are those of :func:`read_csv`."""
    pandas = _needed("pandas")
    parquet = _needed("pyarrow.parquet")
    try:
        _check_different(parquet.read_schema(path).names, path)
        table = pandas.read_parquet(path, engine="pyarrow").reset_index(drop=True)
    except InputError:
        raise
    except Exception as error:  # Arrow raises errors of many kinds for damaged files
        raise DataError(f"{path} is not a readable Parquet file: {in_one_line(error)}") from error
    table = table.rename(columns=str).drop(columns=list(ignored), errors="ignore")
    return _samples(table, path, label, needed, task_column)


def column_names(path: Path) -> list[str]:
    """Return the names of a table's columns; refuse anything that is not a table."""
    if path.name.lower().endswith((".csv", ".csv.gz")):
        return _header(path)
    if path.name.lower().endswith((".parquet", ".pq")):
        return [str(name) for name in _needed("pyarrow.parquet").read_schema(path).names]
    raise InputError(f"{path} has no named columns: --ignore is for CSV and Parquet files")


def _samples(table: DataFrame, path: Path, label: str, needed: bool, task_column: str | None) -> Samples:
    """Split a table into features, labels and tasks."""
    columns = list(table.columns)
    for name in (label if needed else None, task_column):
        if name is not None and name not in columns:
            near = nearest(name, columns)
            said = f": did you mean {near!r}? It" if near else ": it"
            hint = f"; call the label column {LABEL!r}, or pass its name to {FIT} with --label"
            hint = hint if name == label == LABEL else ""
            raise InputError(f"{path} has no column {name!r}{said} has {listed(columns)}{hint}")
    if not len(table):
        raise InputError(f"{path} has no rows")
    apart = {name: _objects(table[name]) for name in (label, task_column) if name in columns}
    answers = answers_in(apart.get(label), f"column {label!r} of {path}", needed)
    features = table.drop(columns=list(apart))
    if not features.shape[1]:
        raise InputError(f"{path} has no columns besides {listed(list(apart))}: there is nothing to learn from")
    return Samples(
        _features(features, path),
        answers,
        names=tuple(features.columns),
        tasks=tasks_in(apart[task_column], f"column {task_column!r} of {path}") if task_column else None,
    )


def _objects(column: Series[Any]) -> Array:
    """Return a column's values as Python objects, None for missing ones."""
    values: Array = column.astype(object).where(column.notna(), None).to_numpy()
    return values


def _features(table: DataFrame, path: Path) -> Array:
    """Return columns of numbers as one array."""
    from pandas.api.types import is_numeric_dtype

    for name, column in table.items():
        if column.isna().any():
            raise InputError(f"column {name!r} of {path} has {_missing(column)}")
    odd = [name for name, column in table.items() if column.dtype == object and column.map(_is_number).all()]
    table = table.astype(dict.fromkeys(odd, np.float64))
    for name, column in table.items():
        if not is_numeric_dtype(column) or column.dtype.kind == "c":
            raise InputError(
                f"column {name!r} of {path} is not numeric: {_first_text(column)}. Turn it into numbers "
                f"(pandas.get_dummies does, for categories), leave it out, or, if it has the labels, pass its name to "
                f"{FIT} with --label"
            )
    kinds = set(table.dtypes)
    common = next((kind for kind in (np.uint8, np.float32) if kinds == {np.dtype(kind)}), np.float64)
    array: Array = table.to_numpy(dtype=common)
    if not np.isfinite(array).all():
        row, column_number = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"column {table.columns[column_number]!r} of {path} has an infinite value in row {row + 1}")
    return array


def _is_number(value: Any) -> bool:
    """Return whether it is a number for which NumPy has no type: more than 64 bits, or decimal."""
    return isinstance(value, int | float | Decimal) and -LARGEST <= value <= LARGEST


def _missing(column: Series[Any]) -> str:
    n, row = int(column.isna().sum()), int(column.isna().to_numpy().argmax()) + 1
    if n == 1:
        return f"1 missing value, in row {row}: fill it in or leave the row out"
    return f"{n} missing values, the first in row {row}: fill them in or leave these rows out"


def _zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _check_unpacked(path: Path) -> None:
    """Refuse a packed file that unpacks to more than fits into memory, as a few megabytes can."""
    most, size = memory() // 4, 0  # a table takes several times the memory of its text
    try:
        with gzip.open(path) as file:
            while more := len(file.read(2**20)):
                size += more
                if size > most:
                    raise DataError(f"{path} unpacks to more than {most / 1e9:.1f} GB, which does not fit into memory")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not a readable CSV file: {error}") from error


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[list[str]]]:
    """Open a CSV file, and yield the values of each line that is not blank."""
    try:
        opened = gzip.open if _zipped(path) else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield (values for values in csv.reader(file, skipinitialspace=True) if values)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file: {error}") from error
    except (csv.Error, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a readable CSV file: {error}") from error


def _header(path: Path) -> list[str]:
    """Return the column names of a CSV file; each must be present and unique."""
    with _lines(path) as lines:
        names = next(lines, [])
    if not names:
        raise InputError(f"{path} is empty: its first line must hold the column names")
    for i, name in enumerate(names):
        if not name:
            raise InputError(
                f"column {i + 1} of {path} has no name. If it only numbers the rows, leave it out (with "
                "pandas: to_csv(…, index=False)); if the first line has no names, add them"
            )
    _check_different(names, path)
    for separator in ";\t":
        if len(names) == 1 and separator in names[0]:
            raise InputError(f"{path} is separated by {separator!r}: separate its columns with commas")
    return names


def _check_different(names: list[str], path: Path) -> None:
    """Refuse duplicate column names."""
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{path} has two columns named {name!r}: give each its own name")


def _check_widths(path: Path, n: int) -> None:
    """Refuse a CSV file with a row of more values than there are columns."""
    with _lines(path) as lines:
        for row, values in enumerate(lines):
            if len(values) > n:
                raise InputError(
                    f"row {row} of {path} has {len(values)} values for {n} columns: put values that contain a "
                    "comma in quotation marks"
                )


def _first_text(column: Series[Any]) -> str:
    """Describe the first value of a column that is not a number."""
    if column.dtype.kind not in "OU" and str(column.dtype) not in ("str", "string", "category"):
        return f"it has type {column.dtype}"
    values = column.tolist()
    row = next((i for i, value in enumerate(values) if not _can_be_number(value)), 0)
    return f"row {row + 1} has {reprlib.repr(values[row])}"


def _can_be_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _needed(name: str) -> Any:
    """Import an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DataError(f"reading tables needs {name.partition('.')[0]}: pip install 'relive[tables]'") from error
