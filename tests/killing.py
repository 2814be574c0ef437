"""Processes that die at a moment of the test's choosing."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from typing import Any


def dying_at(k: int, action: Callable[[], object], *also: tuple[Any, str]) -> bool:
    """Do something in a process of its own that is killed before its k-th change to the disk; say whether it was.

    Calls of the functions that ``also`` names count as well.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
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
