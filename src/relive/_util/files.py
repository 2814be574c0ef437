"""Files that are either complete or not there, whatever happens during a write, and locks on them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomic(
    path: Path,
    content: bytes | Callable[[IO[bytes]], object],
    check: Callable[[Path], object] | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write a file so that a reader sees the old one or the new one, even after a crash or a power cut.

    Parameters
    ----------
    path
        Where; its directory must exist. A link stays a link, and a pipe or device is written to directly.
    content
        The bytes, or a function that writes them to an open file.
    check
        Reads what was written before it replaces the old file; if it raises, nothing is replaced.
    durable
        Whether it must survive a power cut; files that are soon rewritten need not.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as pipe:
            _write(pipe, content)
        return
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    mode = _mode(path)  # the permissions stay the same from the first moment
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, content)
            if mode is not None:
                os.chmod(temporary, mode)  # the umask may have removed some
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if check is not None:
            check(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:  # a full disk: a write does not know its file
            error.filename = str(path)
        with contextlib.suppress(OSError):  # report the first error
            temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def _mode(path: Path) -> int | None:
    """Return a file's permissions, None if it does not exist."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _write(file: IO[bytes], content: bytes | Callable[[IO[bytes]], object]) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def sync(path: Path) -> None:
    """Make a file's contents, or renames in a directory, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def memory() -> int:
    """Return this machine's memory in bytes; 8 GiB if the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**33


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
        os.close(handle)  # its last owner removed it between our two checks: use the new one


def release(path: Path, handle: int) -> None:
    """Release a lock."""
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)
