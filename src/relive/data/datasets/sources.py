"""Data sets by name in the catalogue, or by the user's own file, folder or loader."""

from __future__ import annotations

from pathlib import Path

from relive._util.errors import DataError
from relive._util.registry import load_object
from relive.data.catalogue import DATASETS
from relive.data.datasets.custom import digest_of_custom, load_custom, returned_by, say, silent
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.recipes import Copy, Recipe


def load_data(name: str, data_dir: Path | str | None = None, *, quiet: bool = False) -> Dataset:
    """Return a data set, downloading it first if it is not on this machine.

    Files of data sets in the catalogue are taken from the data folder (see :func:`recipes.data_home`); missing ones
    are requested from each of the data set's sources in turn, and stored in the folder's subfolder ``name``.
    A file is used only if its raw bytes have the right SHA-256, which is checked at every load.

    Parameters
    ----------
    name : str
        A name that ``relive data`` lists; or an NPZ, CSV or Parquet file, a folder of images with a sub-folder per
        class, or a function that returns a data set: ``my_file.py:load`` (see :mod:`relive.data.datasets.custom`).
    data_dir : Path or str, optional
        Where to look first and to store downloads, instead of the user's cache.
    quiet : bool
        Whether to hide progress and the note on held-out test samples. A warning about a damaged cache is always
        shown. All of it goes to stderr, and there is none if all files are in place.

    Raises
    ------
    InputError
        If there is no data set with that name, or it cannot be learned.
    DataError
        If a file in a folder that the user chose is damaged or different: the user's files are never
        replaced. In the user's cache, such a file is downloaded again with a warning. Also if no source has the
        files, or they cannot be stored.

    Examples
    --------
    >>> load_data("digits").train_inputs.shape
    (1438, 8, 8)
    """
    if name not in DATASETS:
        return load_custom(name, quiet=quiet)
    facts = DATASETS[name]
    loader = load_object(facts.home)
    if isinstance(loader, Recipe):
        return loader.load(data_dir, quiet=quiet).with_digest(DATASETS.digest(name))
    data = returned_by(loader, name, silent if quiet else say).with_digest(DATASETS.digest(name))
    if facts.sha256 and facts.sha256 != (data.sha256,):
        raise DataError(f"{name} has unexpected contents: expected SHA-256 {facts.sha256[0]}, found {data.sha256}")
    return data


def survey(name: str, data_dir: Path | str | None = None) -> list[Copy]:
    """Return what the data folder has for each file of a data set in the catalogue, possibly nothing."""
    loader = load_object(DATASETS[name].home)
    return loader.survey(data_dir) if isinstance(loader, Recipe) else []


def digest_of_data(name: str) -> str:
    """Return a short digest of a data set's contents, or of the file with an installed package's loader.

    It is empty for this package's data sets, which have their own.

    Raises
    ------
    InputError
        If there is no such data set.
    """
    return DATASETS.digest(name) if name in DATASETS else digest_of_custom(name)
