"""Where the command line prints: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console
from rich.markup import escape


class _Console(Console):
    """A console that knows how to print a text as it is; where there is no terminal, no line is too long."""

    escape = staticmethod(escape)

    def __init__(self, stream: TextIO | None, stderr: bool) -> None:
        narrow = "COLUMNS" in os.environ or (stream is not None and stream.isatty())
        super().__init__(stderr=stderr, width=None if narrow else 10_000, highlight=False, soft_wrap=True, emoji=False)


out = _Console(sys.stdout, stderr=False)
err = _Console(sys.stderr, stderr=True)


def note(text: str) -> None:
    """Say something that is no result and no error."""
    err.print(f"[yellow]note:[/] {escape(text)}")
