"""Earlier versions of a file next to it: ``FILE.kept-1`` the newest, ``FILE.kept-2`` the one before, and so on.

The file itself is never moved: an earlier version is a hard link to the same bytes. Whatever is interrupted, the
file is intact, and the next change puts the numbers in order again.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from relive._util.errors import InputError, ReliveError
from relive._util.files import acquire, release, sync


def kept(path: Path) -> list[Path]:
    """Return the existing earlier versions of a file, newest first."""
    prefix = f"{path.name}.kept-"
    names = (entry.name for entry in os.scandir(path.parent) if entry.is_file(follow_symlinks=False))
    numbers = [int(n) for name in names if name.startswith(prefix) and _is_number(n := name.removeprefix(prefix))]
    return [_numbered(path, n) for n in sorted(numbers)]


@contextmanager
def keeping(path: Path, n: int) -> Iterator[None]:
    """Make the current contents the newest earlier version while the file is replaced; keep n versions.

    If replacing it fails, nothing changes.
    """
    try:
        with _told(path):
            _settle(path)
            if n and path.exists():
                for i, version in reversed(list(enumerate(kept(path), 1))):
                    os.replace(version, _numbered(path, i + 1))
                _second_name(path, _numbered(path, 1))
        yield
        with _told(path):
            for version in kept(path)[n:]:
                version.unlink()
            sync(path.parent)
    except BaseException:
        with suppress(OSError):
            _settle(path)
        raise


def roll_back(path: Path, check: Callable[[Path], object]) -> Path | None:
    """Restore the newest earlier version; return where the file it replaced is now, if any.

    ``check`` gets that version first; if it raises, nothing changes.
    """
    with _told(path):
        _settle(path)
        versions = kept(path)
        if not versions and not path.exists():
            raise InputError(f"there is no model {path}")
        if not versions:
            raise InputError(f"there is no earlier version of {path}: relive fit keeps them with --keep N")
        check(versions[0])
        aside = _free(path) if path.exists() else None
        if aside is not None:
            _second_name(path, aside)
        _second_name(versions[0], path)
        _settle(path)
        sync(path.parent)
    return aside


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file; it is released however this process ends."""
    lock = path.with_name(f".{path.name}.lock")
    with _told(path):
        handle = acquire(lock)
    if handle is None:
        raise InputError(f"{path} is being changed by another process: wait for it, or stop it")
    try:
        yield
    finally:
        release(lock, handle)


def tidy(path: Path) -> None:
    """Remove files that killed processes left half-written. The caller must hold the lock."""
    with _told(path):
        for entry in list(os.scandir(path.parent)):
            if entry.name.startswith(f".{path.name}.") and entry.name.endswith(".tmp"):
                Path(entry.path).unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Finish or undo an interrupted change: no version that is the file itself, no gap in the numbers."""
    versions = kept(path)
    if versions and path.exists() and filecmp.cmp(versions[0], path, shallow=False):
        versions.pop(0).unlink()
    for i, version in enumerate(versions, 1):
        if version != _numbered(path, i):
            os.replace(version, _numbered(path, i))


def _second_name(path: Path, other: Path) -> None:
    """Atomically create a hard link; a copy on file systems without hard links."""
    temporary = path.with_name(f".{path.name}.name.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(path, temporary)
    except OSError:
        mode = stat.S_IMODE(path.stat().st_mode)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with path.open("rb") as source, os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(handle)
    os.replace(temporary, other)


def undone(path: Path) -> list[Path]:
    """Return the existing versions of a file that were rolled back."""
    first = f"{path.name}.undone"
    names = sorted(entry.name for entry in os.scandir(path.parent) if entry.is_file(follow_symlinks=False))
    return [path.with_name(n) for n in names if n == first or _is_number(n.removeprefix(f"{first}-"))]


def _free(path: Path) -> Path:
    """Return an unused name for a file that is rolled back."""
    free, i = path.with_name(f"{path.name}.undone"), 2
    while free.exists():
        free, i = path.with_name(f"{path.name}.undone-{i}"), i + 1
    return free


def _numbered(path: Path, n: int) -> Path:
    return path.with_name(f"{path.name}.kept-{n}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and text[0] != "0"


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReliveError(f"cannot write {path}: {error.strerror or error}") from error
