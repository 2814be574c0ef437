"""Data files in folders: found raw or packed, checked against their SHA-256, and stored atomically."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from relive._util.errors import DataError
from relive._util.files import write_atomic
from relive.data.datasets import idx

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_LEFTOVERS = ".*-ubyte.*.tmp"
_STALE = 3600.0
"""Seconds after which a temporary file is considered abandoned: writing a file takes well under a second."""


@dataclass(frozen=True)
class File:
    """One raw IDX file of a data set, known by its bytes.

    Parameters
    ----------
    name : str
        Its name, without ``.gz``.
    shape : tuple of int
        The shape of the array in it.
    sha256 : str
        The SHA-256 of its raw bytes, in hexadecimal.
    """

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def size(self) -> int:
        """How many bytes the raw file has."""
        return idx.size(self.shape)


def find(file: File, folders: tuple[Path, ...]) -> Path | None:
    """Return the first location of ``file``, raw or as ``.gz``, or None."""
    for folder in folders:
        for path in (folder / file.name, folder / f"{file.name}.gz"):
            if os.path.isfile(path):  # unlike Path.is_file, False where a folder may not be looked into
                return path
    return None


def read(path: Path, file: File) -> bytes:
    """Return the raw bytes of the file at ``path``, checked to be those of ``file``.

    Raises
    ------
    DataError
        If the file cannot be read, or its bytes differ; the message has both digests.
    """
    try:
        with path.open("rb") as stream:
            return check(stream, file, str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def check(stream: io.BufferedIOBase, file: File, where: str) -> bytes:
    """Return the raw bytes in ``stream``, packed with gzip or not, checked to be those of ``file``.

    Parameters
    ----------
    stream : binary file
        Open for reading, at its beginning, and seekable. Its first bytes tell whether it is packed.
    file : File
        What it should be.
    where : str
        The stream's name in errors.

    Raises
    ------
    DataError
        If the bytes differ; the message has both digests.
    """
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    source = gzip.GzipFile(fileobj=stream) if packed else stream
    try:
        raw = source.read(file.size)
        digest, length = hashlib.sha256(raw), len(raw)
        while length <= 2 * file.size + 2**26 and (more := source.read(_CHUNK)):  # packed data may unpack to anything
            digest.update(more)
            length += len(more)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        stream.seek(0)
        as_is = hashlib.file_digest(stream, "sha256").hexdigest()
        raise DataError(
            f"{where} is damaged and cannot be unpacked ({error}): expected SHA-256 {file.sha256} of the "
            f"unpacked bytes, found {as_is} of the packed ones"
        ) from error
    if digest.hexdigest() != file.sha256:
        raise DataError(
            f"{where} is damaged or not the right file: expected SHA-256 {file.sha256} ({file.size:,} bytes), "
            f"found {digest.hexdigest()} ({length:,} bytes)"
        )
    return raw


def prepare(folder: Path) -> None:
    """Create ``folder`` if necessary, check that it is writable, and remove what killed writers left.

    Raises
    ------
    DataError
        If nothing can be stored there: which folder, and why.
    """
    with _storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    for path in folder.glob(_LEFTOVERS):
        with suppress(OSError):  # another process may be clearing away the same files
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink()


def write(folder: Path, name: str, raw: bytes) -> None:
    """Store ``raw`` as ``folder/name`` atomically: at every moment either the old or the new file is there.

    A killed process leaves a temporary file that nobody reads; :func:`prepare` removes it
    after an hour. Processes that store the same file at the same time do not interfere.

    Raises
    ------
    DataError
        If it cannot be stored: which folder, and why.
    """
    with _storing(folder):
        write_atomic(folder / name, raw, check=partial(_same, raw))


def _same(raw: bytes, path: Path) -> None:
    """Refuse a file that does not contain what was written to it."""
    if path.read_bytes() != raw:
        raise DataError(f"what was written to {path} cannot be read back: the disk may be failing")


@contextmanager
def _storing(folder: Path) -> Iterator[None]:
    """Turn the system's write errors into an error that says what to do."""
    try:
        yield
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | IsADirectoryError)
        why = f"{error.filename2 or error.filename} is in the way" if in_the_way else error.strerror or str(error)
        raise DataError(
            f"cannot store data in {folder}: {why}. Choose a writable folder with --data-dir DIR or RELIVE_DATA=DIR"
        ) from error
