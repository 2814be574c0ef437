"""However a command ends: one line for people, and the exit code of the conventions.

0 it is done; 1 it failed (a full disk, a damaged file, training that diverged, too little memory, a fault in relive
itself); 2 it was asked for something that cannot be; 130 it was interrupted.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from relive._util.errors import InputError, ReliveError, is_out_of_memory
from relive.cli.console import err


@dataclass
class Door:
    """The last door that every error comes to; ``debug`` is whether tracebacks are wanted."""

    debug: bool = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let no error out but as a message and an exit code."""
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
        return "there is not enough memory for this: ask for less, such as a smaller --hidden or --batch-size"
    if isinstance(error, OSError):
        what = f"{error.strerror}: {error.filename}" if error.filename else f"cannot print: {error}"
        return f"{what}; what was stored before is kept"
    said = " ".join(str(error).split())
    return (
        f"{type(error).__name__}: {said[:300]}. This was not foreseen; files are whole. "
        "relive --debug COMMAND … shows where it happened: please report it"
    )
