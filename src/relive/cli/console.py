"""Where the command line prints: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from relive._util.console import CONTROL, Console

out = Console(sys.stdout, stderr=False)
err = Console(sys.stderr, stderr=True)


def note(text: str) -> None:
    """Print something that is neither a result nor an error."""
    err.say("note:", text, "yellow")


def json_text(values: Any, indent: int | None = None) -> str:
    """Return values as JSON without characters that a terminal would interpret."""
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def counted(n: int, thing: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "task"), counted(2, "class")
    ('1 task', '2 classes')
    """
    ending = "" if n == 1 else "es" if thing.endswith("s") else "s"
    return f"{n:,} {thing}{ending}"
