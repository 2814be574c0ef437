"""How every command ends: one line for people, and a conventional exit code.

0: done; 1: it failed (a full disk, a damaged file, training that diverged, too little memory, a bug in relive
itself); 2: the request was invalid; 130: it was interrupted.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import relive
from relive._util.errors import InputError, ReliveError, is_out_of_memory
from relive.cli.console import err


@dataclass
class Door:
    """The last handler that every error reaches; ``debug`` says whether to show tracebacks."""

    debug: bool = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Turn every error into a message and an exit code."""
        try:
            yield
        except Exception as error:
            if self.debug:
                err.print("".join(traceback.format_exception(error)))
            err.say("error:", message(error), "bold red")
            raise SystemExit(2 if isinstance(error, InputError) else 1) from None


def message(error: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    if isinstance(error, ReliveError):
        return str(error)
    if is_out_of_memory(error):
        return "there is not enough memory: use less, for example a smaller --hidden or --batch-size"
    if isinstance(error, OSError):
        what = f"{error.strerror}: {error.filename}" if error.filename else f"cannot print: {error}"
        return f"{what}; whatever was stored before is kept"
    said = " ".join(str(error).split())
    if (place := _own_line(error)) is not None:
        return f"{place}: {type(error).__name__}: {said[:300]}. relive --debug COMMAND … shows the traceback"
    return (
        f"{type(error).__name__}: {said[:300]}. This is a bug in relive; files are intact. "
        "relive --debug COMMAND … shows the traceback: please report it"
    )


def _own_line(error: Exception) -> str | None:
    """Return the last line of the user's own files that an error went through; None if it went through none."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((error.filename, error.lineno))
    theirs = [Path(relive.__file__).parent, Path(sys.prefix), Path(sysconfig.get_path("stdlib"))]
    for name, line in reversed(lines):
        path = Path(name).resolve()
        if path.suffix == ".py" and not any(path.is_relative_to(folder.resolve()) for folder in theirs):
            return f"{Path(name).name}, line {line}"
    return None
