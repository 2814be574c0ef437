"""Forks of the test's process, with everything imported: one that returns a result, and one that is killed on cue."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Fork without the warning that the threads of a test's process are not copied."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        yield


def in_a_fork(action: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a forked process."""
    with forking(), ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        return process.submit(action, *arguments).result(timeout=120)


def dying_at(k: int, action: Callable[[], object], *also: tuple[Any, str]) -> bool:
    """Act in a forked process that is killed before its k-th change to the disk; return whether it was.

    Calls of the functions in ``also`` count as well.
    """
    with forking():
        child = os.fork()
    if not child:
        left = [k]

        def counted(change: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*arguments: Any, **keywords: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*arguments, **keywords)

            return wrapped

        for home, name in [*((os, name) for name in ("replace", "link", "unlink", "fsync", "chmod")), *also]:
            setattr(home, name, counted(getattr(home, name)))
        try:
            action()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
