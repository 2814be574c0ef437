"""Uploaded files: limited in size, also when unpacked, and written only to a folder of their own."""

from __future__ import annotations

import re
import stat
import zipfile
from pathlib import Path, PurePosixPath

from starlette.requests import Request

from relive._util.errors import DataError, InputError
from relive.serving.http import RefusedError, check_size

MOST_BYTES = 64_000_000  # of one upload
MOST_UNPACKED, MOST_FILES = 512_000_000, 20_000  # in an archive
KINDS = (".csv", ".npz", ".zip")


async def received(request: Request, folder: Path) -> Path:
    """Write a request's body to a folder, under a safe form of its name, and return the file or folder to read."""
    name = safe_name(request.query_params.get("file", ""))
    path = folder / name
    if path.suffix.lower() not in KINDS:
        raise InputError(f"{name} is of an unknown type: send a .csv or .npz file, or a .zip of a folder of pictures")
    length = request.headers.get("content-length", "0")
    if length.isdecimal():
        check_size(int(length), MOST_BYTES)
    written = 0
    with path.open("wb") as file:
        async for part in request.stream():
            written += len(part)
            check_size(written, MOST_BYTES)
            file.write(part)
    if not written:
        raise RefusedError(400, "the file is empty")
    return unpacked(path)


def safe_name(name: str) -> str:
    """Return the last part of a file's name, without characters special to a shell or a file system.

    >>> safe_name("../../etc/pass wd.csv"), safe_name("-rf.csv")
    ('pass_wd.csv', '_rf.csv')
    """
    last = re.split(r"[/\\]", name)[-1][-80:]
    return re.sub(r"^[^\w]", "_", re.sub(r"[^\w.+-]", "_", last)) or "_"


def unpacked(path: Path) -> Path:
    """Check an archive, and unpack it if it holds a folder; return the file or folder to read."""
    if path.suffix.lower() == ".csv":
        return path
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive)
            if path.suffix.lower() == ".npz":
                return path
            folder = path.parent / path.stem
            archive.extractall(folder)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error
    return _classes(folder)


def check_archive(archive: zipfile.ZipFile) -> None:
    """Refuse an archive that would unpack to too much, or elsewhere; no more is unpacked than its headers declare."""
    files = archive.infolist()
    if len(files) > MOST_FILES:
        raise InputError(f"the archive has {len(files):,} files: {MOST_FILES:,} at most")
    size = sum(file.file_size for file in files)
    if size > MOST_UNPACKED:
        raise InputError(f"the archive would unpack to {size:,} bytes: {MOST_UNPACKED:,} at most")
    for file in files:
        place = PurePosixPath(file.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or stat.S_ISLNK(file.external_attr >> 16):
            raise InputError(f"the archive has {file.filename!r}, which leads out of its folder")


def _classes(folder: Path) -> Path:
    """Return the folder whose sub-folders are the classes: an archive often holds it as its only entry."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "__MACOSX"))]
    if len(entries) == 1 and entries[0].is_dir() and any(entry.is_dir() for entry in entries[0].iterdir()):
        return entries[0]
    return folder
