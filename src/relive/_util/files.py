"""Files that are either whole or not there, whatever happens while they are written, and locks on them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomic(path: Path, content: bytes | Callable[[IO[bytes]], object], *, durable: bool = True) -> None:
    """Write a file so that a reader sees the old one or the new one, even after a crash or a power cut.

    Parameters
    ----------
    path
        Where; its directory must exist. A link stays one, and what is no file (a pipe, a device) is written to.
    content
        The bytes, or a function that writes them to an open file.
    durable
        Whether it must be there after a power cut; what is soon written again need not be.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as pipe:
            _write(pipe, content)
        return
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less what the umask takes
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):  # who may read it stays as it was
            os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def _write(file: IO[bytes], content: bytes | Callable[[IO[bytes]], object]) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def sync_directory(path: Path) -> None:
    """See to it that what was renamed in a directory stays so after a power cut."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def acquire(path: Path) -> int | None:
    """Lock a file and return its handle, or None if another process has it locked."""
    import portalocker

    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            portalocker.lock(handle, portalocker.LOCK_EX | portalocker.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except portalocker.AlreadyLocked:
            os.close(handle)
            return None
        except portalocker.LockException as error:  # a file system without locks
            os.close(handle)
            raise OSError(errno.ENOLCK, f"cannot be locked ({error})", str(path)) from error
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last owner removed it between our two looks: take the new one


def release(path: Path, handle: int) -> None:
    """Give a lock back."""
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)
