"""Where the command line prints: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from relive._util.console import CONTROL, Console

out = Console(sys.stdout, stderr=False)
err = Console(sys.stderr, stderr=True)


def note(text: str) -> None:
    """Say something that is no result and no error."""
    err.say("note:", text, "yellow")


def json_text(values: Any, indent: int | None = None) -> str:
    """Return values as JSON in which no character is one that a terminal would obey."""
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def counted(n: int, thing: str) -> str:
    """Return how many there are.

    >>> counted(1, "task"), counted(2, "class")
    ('1 task', '2 classes')
    """
    ending = "" if n == 1 else "es" if thing.endswith("s") else "s"
    return f"{n:,} {thing}{ending}"
