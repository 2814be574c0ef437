"""Where the command line prints: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys

from relive._util.console import Console

out = Console(sys.stdout, stderr=False)
err = Console(sys.stderr, stderr=True)


def note(text: str) -> None:
    """Say something that is no result and no error."""
    err.print(f"[yellow]note:[/] {err.escape(text)}")


def counted(n: int, thing: str) -> str:
    """Return how many there are.

    >>> counted(1, "task"), counted(2, "class")
    ('1 task', '2 classes')
    """
    ending = "" if n == 1 else "es" if thing.endswith("s") else "s"
    return f"{n:,} {thing}{ending}"
