"""Reading the user's own data, by file type."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from relive._util.errors import DataError, InputError
from relive.data.readers.folders import read_folder
from relive.data.readers.npz import read_npz
from relive.data.readers.samples import Samples
from relive.data.readers.tables import LABEL, read_csv, read_parquet


def read_any(
    path: Path,
    *,
    needed: bool = True,
    label: str = LABEL,
    x: str = "X",
    y: str = "y",
    image: tuple[int, ...] = (28, 28),
    task_column: str | None = None,
    text_labels: bool = False,
    ignored: Collection[str] = (),
) -> Samples:
    """Read samples from a CSV, Parquet or NPZ file, or from a folder of images.

    Parameters
    ----------
    path
        The file or the folder.
    needed
        Whether there must be labels. If not, an empty label column counts as none.
    label
        The label column of a table.
    x, y
        The arrays of samples and labels, for NPZ.
    image
        The size that images in a folder are resized to: height and width, plus 3 for colour.
    task_column
        The column, or array, with each sample's task.
    text_labels
        Whether labels of a CSV file stay strings even if all of them are numbers.
    ignored
        Columns of a table to leave out, if they are there.
    """
    name = path.name.lower()
    try:
        if path.is_dir():
            if task_column:
                raise InputError(f"{path} is a folder of images: it has no column {task_column!r}")
            return read_folder(path, image, needed)
        if not path.exists():
            loader = "; loaders are for relive run and compare, give a file or folder here" if ":" in name else ""
            raise InputError(f"there is no file or folder {path}{loader}")
        if not path.is_file():
            raise InputError(
                f"{path} is neither a file nor a folder, but a pipe or a device: save its contents to a file"
            )
        if name.endswith((".csv", ".csv.gz")):
            return read_csv(path, label, needed, task_column, text_labels, ignored)
        if name.endswith((".parquet", ".pq")):
            return read_parquet(path, label, needed, task_column, ignored)
        if name.endswith(".npz"):
            return read_npz(path, x, y, needed, task_column)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    raise InputError(f"{path} has an unsupported format: give a .csv, .parquet or .npz file, or a folder of images")
