"""Small CSV files of plain numbers without pandas, whose import takes longer than reading them.

Anything that is not plain (a missing value, text, a row that is too long) is left to
:func:`relive.data.readers.tables.read_csv`, which can read more, and reports what is wrong.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from relive.data.readers.samples import Samples, labels, parsed, text_array

LARGEST = 2**20  # bytes; pandas is faster with more
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_plain_csv(
    path: Path, label: str, task_column: str | None, text_labels: bool, ignored: Collection[str] = ()
) -> Samples | None:
    """Return the samples of a CSV file whose labels are optional, or None if it is large or not plain.

    The parameters are those of ``read_csv``.
    """
    if path.stat().st_size > LARGEST or path.suffix.lower() != ".csv":
        return None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = [values for values in csv.reader(file, skipinitialspace=True) if values]
    except (csv.Error, ValueError):
        return None
    return samples_in(names, rows, label, task_column, text_labels, ignored)


def samples_in(
    names: list[str],
    rows: list[list[str]],
    label: str,
    task_column: str | None,
    text_labels: bool,
    ignored: Collection[str] = (),
) -> Samples | None:
    """Return the samples of a table of strings, or None if it is not plain."""
    features = [i for i, name in enumerate(names) if name not in (label, task_column, *ignored)]
    whole = all(names) and len(set(names)) == len(names) and all(len(row) == len(names) for row in rows)
    if not whole or not rows or not features or (task_column is not None and task_column not in names):
        return None
    if not all(NUMBER.fullmatch(row[i]) for row in rows for i in features):
        return None
    x = np.array([[float(row[i]) for i in features] for row in rows])
    apart = {name: [row[names.index(name)].strip() for row in rows] for name in (label, task_column) if name in names}
    answers = apart.get(label) if any(apart.get(label, [])) else None
    if not np.isfinite(x).all() or not all(answers or ["x"]) or not all(apart.get(task_column or "", ["x"])):
        return None
    y = (
        None
        if answers is None
        else labels(text_array(answers) if text_labels else parsed(answers), f"column {label!r}")
    )
    tasks = tuple(apart[task_column]) if task_column is not None else None
    return Samples(x, y, names=tuple(names[i] for i in features), tasks=tasks)
