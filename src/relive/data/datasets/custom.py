"""The user's own data set: a file, a folder of images, or a function that returns one.

============================  ==========================================================================================
``my.npz``                    arrays ``X`` and ``y``, or ``X_train``, ``y_train``, ``X_test`` and ``y_test``
``my.csv``, ``my.parquet``    a column ``label``; all others are features
``my_pictures``               a folder with a sub-folder per class, or with ``train`` and ``test``, which have those
``my_file.py:load``           a function without arguments that returns ``X, y`` or all four arrays or a ``Dataset``
============================  ==========================================================================================

Without a test part, every fifth sample of each class is held out. Bytes and numbers within [0, 1] are unchanged;
images of whole numbers from 0 to 255 are treated as bytes; features of any other range are standardised with the first
task when tasks are made from them (``relive.data.standardise``).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError, unknown
from relive._util.registry import digest_of_address, is_address, load_object
from relive.data.catalogue import DATASETS
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.recipes import console
from relive.data.readers.folders import files_of, picture_shapes
from relive.data.readers.formats import read_any
from relive.data.readers.npz import array_names
from relive.data.readers.samples import Samples, check_shape, labels, numbers

Array = npt.NDArray[Any]
Say = Callable[[str], None]
Part = tuple[Array, Array]  # inputs (n, *shape) and their labels (n,)

EVERY = 5  # one in this many samples is held out
LARGEST = 128 * 128  # pixels of an image that is not resized
SMALLER = (28, 28)  # size of images that are larger, or of different sizes, as in relive fit
ROUNDING = 1e-6  # how far a scaler may miss [0, 1]


def load_custom(name: str, *, quiet: bool = False) -> Dataset:
    """Return the data set in a file or folder, or from a function at an address."""
    path = Path(name)
    tell = silent if quiet else say
    if not path.exists():
        _check_loader(name)
        data, notes = _loaded(name, digest_of_address(name))
        for note in notes:
            tell(note)
        return data
    digest = digest_of_custom(name)
    if path.is_dir():
        train, test = _folder(path, tell)
    elif path.suffix.lower() == ".npz":
        train, test = _npz(path)
    elif path.suffix.lower() == ".py":
        raise InputError(f"{name} is a Python file: name the function in it that returns the data, as {name}:load")
    else:
        train, test = _part(read_any(path)), None
    return _dataset(name, train, test, tell).with_digest(digest)


def returned_by(loader: Callable[[], object], name: str, say: Say) -> Dataset:
    """Return what a loader returned as a data set."""
    if not _needs_nothing(loader):
        raise InputError(f"{name} is {loader!r}: a loader must be a function without arguments")
    found = loader()
    if isinstance(found, Dataset):
        return _checked(replace(found, name=name))
    elif isinstance(found, tuple) and len(found) in (2, 4):
        parts = [
            (numbers(_array(x, f"X of {name}"), f"X of {name}"), labels(_array(y, f"y of {name}"), f"y of {name}"))
            for x, y in zip(found[::2], found[1::2], strict=True)
        ]
        return _dataset(name, parts[0], parts[1] if len(parts) > 1 else None, say)
    raise InputError(
        f"{name} returned {type(found).__name__}: a loader must return X and y, or X_train, y_train, X_test "
        "and y_test, or a relive.Dataset"
    )


def _array(values: object, name: str) -> Array:
    """Return values as an array; refuse samples of different shapes."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array: its parts have different shapes ({error})") from error


def _needs_nothing(loader: object) -> bool:
    """Return whether something can be called without arguments."""
    try:
        return callable(loader) and inspect.signature(loader).bind() is not None
    except TypeError:
        return False


def digest_of_custom(name: str) -> str:
    """Return a short SHA-256 of a file's contents, of a folder's names and contents, or of what a function returns."""
    path = Path(name)
    if not path.exists():
        _check_loader(name)
        return _loaded(name, digest_of_address(name))[0].digest
    try:
        files = files_of(path) if path.is_dir() else [path]
        for file in files:
            if file.exists() and not file.is_file():
                raise InputError(f"{file} is not a regular file, but a pipe or a device")
        stamps = tuple((str(file), *_stamp(file)) for file in files)
        return _digest(path, stamps)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _check_loader(name: str) -> None:
    """Refuse a name that is neither an existing file nor an address."""
    if not is_address(name):
        if Path(name).suffix or os.sep in name:
            raise InputError(f"there is no file or folder {name}")
        raise unknown("data set", name, [*DATASETS, "or your own file, folder or loader"])


@functools.lru_cache(maxsize=4)
def _loaded(address: str, program: str) -> tuple[Dataset, list[str]]:
    """Return what a function returns, and the notes about it; ``program`` is the digest of its file."""
    notes: list[str] = []
    return returned_by(load_object(address), address, notes.append), notes


@functools.lru_cache(maxsize=16)
def _digest(path: Path, stamps: tuple[tuple[object, ...], ...]) -> str:
    """Return the digest of files; ``stamps`` tell whether they have changed since they were last read."""
    digest = hashlib.sha256()
    for file, *_ in stamps:
        content = Path(str(file)).read_bytes()
        if path.is_dir():
            relative = Path(str(file)).relative_to(path).as_posix()
            digest.update(f"{relative}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _stamp(file: Path) -> tuple[int, ...]:
    about = file.stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


def say(text: str) -> None:
    """Print to stderr."""
    console().print(text)


def silent(text: str) -> None:
    """Print nothing."""


def _npz(path: Path) -> tuple[Part, Part | None]:
    there = array_names(path)
    for x in ("X", "x"):
        if f"{x}_train" in there:
            train = read_any(path, x=f"{x}_train", y="y_train")
            return _part(train), _part(read_any(path, x=f"{x}_test", y="y_test"))
    if there and not {"X", "y"} <= set(there):
        raise InputError(
            f"{path} has the arrays {', '.join(there)}: a data set must have X and y, or X_train, y_train, "
            "X_test and y_test"
        )
    return _part(read_any(path)), None


def _folder(path: Path, say: Say) -> tuple[Part, Part | None]:
    shapes = picture_shapes(path)
    colour = any(len(shape) == 3 for shape in shapes)
    sizes = sorted({shape[:2] for shape in shapes})
    size = sizes[0] if len(sizes) == 1 and sizes[0][0] * sizes[0][1] <= LARGEST else SMALLER
    if sizes and sizes != [size]:
        found = f"{len(sizes)} sizes" if len(sizes) > 1 else f"{sizes[0][0]} × {sizes[0][1]} pixels"
        say(f"{path}: its images are of {found}, and are resized to {size[0]} × {size[1]}")
    image = (*size, 3) if colour else size
    entries = {entry.name for entry in path.iterdir() if entry.is_dir()}
    if {"train", "test"} == entries:
        return _part(read_any(path / "train", image=image)), _part(read_any(path / "test", image=image))
    return _part(read_any(path, image=image)), None


def _part(samples: Samples) -> Part:
    assert samples.y is not None  # labels are needed, so the reader has seen to it
    return samples.x.reshape(len(samples.x), *(samples.image or samples.x.shape[1:])), samples.y


def _dataset(name: str, train: Part, test: Part | None, say: Say) -> Dataset:
    """Return labelled samples as a data set, with classes numbered from 0."""
    for x, y in [train] if test is None else [train, test]:
        if x.ndim < 2 or len(x) != len(y) or not x.size:
            raise InputError(
                f"{name} has X of shape {x.shape} and y of shape {y.shape}: give one row and one label per sample"
            )
        check_shape(x.shape, f"X of {name}")
        if not np.isfinite(x).all():
            raise InputError(f"{name} has values that are missing or infinite: fill them in or leave these rows out")
    values, codes = np.unique(train[1], return_inverse=True)
    names = _texts(values)
    if test is None:
        held_out = _held_out(codes, names, name)
        train, test = (train[0][~held_out], codes[~held_out]), (train[0][held_out], codes[held_out])
        say(
            f"{name}: every fifth sample of each class is held out for testing, {len(test[1]):,} of {len(codes):,}, "
            "the same ones each time"
        )
    else:
        train, test = (train[0], codes), (test[0], _coded(test[1], names, name))
    if train[0].shape[1:] != test[0].shape[1:]:
        raise InputError(
            f"{name} has training inputs of shape {train[0].shape[1:]}, but test inputs of shape {test[0].shape[1:]}"
        )
    x_train, x_test, top = _as_inputs(_grey(train[0]), _grey(test[0]))
    return _checked(Dataset(name, x_train, train[1], x_test, test[1], top, tuple(names)))


def _held_out(codes: Array, names: list[str], name: str) -> npt.NDArray[np.bool_]:
    """Return which samples are for testing, (n,): every fifth of each class; with fewer than five, the last."""
    held_out = np.zeros(len(codes), bool)
    for code, called in enumerate(names):
        rows = np.flatnonzero(codes == code)
        if len(rows) < 2:
            raise InputError(
                f"{name} has 1 sample of class {called!r}: it needs one to learn from and one to test with"
            )
        held_out[rows[EVERY - 1 :: EVERY] if len(rows) >= EVERY else rows[-1:]] = True
    return held_out


def _coded(y: Array, names: list[str], name: str) -> Array:
    """Return test labels as positions among the learned classes."""
    values, codes = np.unique(y, return_inverse=True)
    texts = _texts(values)
    strange = [text for text in texts if text not in names]
    if strange:
        raise InputError(f"{name} tests with class {strange[0]!r}, but has no training samples of it")
    places: Array = np.array([names.index(text) for text in texts])[codes]
    return places


def _texts(values: Array) -> list[str]:
    """Return class names; 1.0 becomes 1."""
    return [str(value) for value in (values.astype(np.int64) if values.dtype.kind == "f" else values).tolist()]


def _grey(x: Array) -> Array:
    """Remove the channel axis of single-channel images."""
    return x[..., 0] if x.ndim == 4 and x.shape[3] == 1 else x


def _as_inputs(train: Array, test: Array) -> tuple[Array, Array, int]:
    """Return bytes, numbers in [0, 1], or features of any range, and the byte value that becomes 1."""
    if train.ndim > 2 and all(_are_bytes(x) for x in (train, test)) and train.max() > 1:
        train, test = train.astype(np.uint8), test.astype(np.uint8)
    if train.dtype == test.dtype == np.uint8:
        return train, test, 255 if max(train.max(), test.max()) > 1 else 1
    if train.min() >= -ROUNDING and train.max() <= 1 + ROUNDING:
        return train.clip(0, 1).astype(np.float32), test.clip(0, 1).astype(np.float32), 255
    return train.astype(np.float64), test.astype(np.float64), 255


def _are_bytes(x: Array) -> bool:
    """Say whether all numbers are whole and from 0 to 255."""
    return x.dtype == np.uint8 or bool(x.min() >= 0 and x.max() <= 255 and (x == np.floor(x)).all())


def _checked(data: Dataset) -> Dataset:
    """Return a valid data set, with numbers in [0, 1] as 32-bit floats; refuse any other."""
    for part in ("train", "test"):
        x, y = getattr(data, f"{part}_inputs"), getattr(data, f"{part}_labels")
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray) or x.ndim < 2 or y.shape != (len(x),):
            raise InputError(f"{data.name}: {part}_inputs must have shape (n, …), and {part}_labels shape (n,)")
        if x.dtype != np.uint8 and x.dtype.kind != "f":
            raise InputError(f"{data.name}: {part}_inputs has type {x.dtype}: give bytes (uint8) or floats")
        if y.dtype.kind not in "iu" or not len(y) or y.min() < 0:
            raise InputError(f"{data.name}: {part}_labels must be whole numbers from 0, and not empty")
    n = data.n_classes
    if n < 2:
        raise InputError(f"{data.name} has one class, {data.class_names[0]!r}: at least 2 are needed")
    if len(data.class_names) != n:
        raise InputError(f"{data.name} has {n} classes, but {len(data.class_names)} names for them")
    for part, y in (("to learn from", data.train_labels), ("to test with", data.test_labels)):
        missing = sorted(set(range(n)) - set(np.unique(y).tolist()))
        if missing:
            raise InputError(f"{data.name} has nothing {part} of class {data.class_names[missing[0]]!r}")
    if data.test_labels.max() >= n:
        raise InputError(f"{data.name} tests with class {data.test_labels.max()}, which is not learned")
    if data.train_inputs.shape[1:] != data.test_inputs.shape[1:]:
        raise InputError(f"{data.name} has training inputs of shape {data.shape}, but test inputs of another shape")
    if data.train_inputs.dtype != data.test_inputs.dtype:
        raise InputError(
            f"{data.name} has training inputs of type {data.train_inputs.dtype}, but test inputs of type "
            f"{data.test_inputs.dtype}"
        )
    if data.train_inputs.dtype == np.uint8:
        return data
    kind = np.float32 if data.likelihood == "bernoulli" else np.float64  # which are rounded once standardised
    return replace(data, train_inputs=data.train_inputs.astype(kind), test_inputs=data.test_inputs.astype(kind))
