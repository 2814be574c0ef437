"""Where the command line prints: results to stdout, everything else to stderr."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape


class _Console(Console):
    """A console that knows how to print a text as it is."""

    escape = staticmethod(escape)


out = _Console(highlight=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False, soft_wrap=True)
