"""A console for messages: on a terminal lines break between words, elsewhere no line is too long."""

from __future__ import annotations

import os
import re
from typing import Any, TextIO

import rich.console
from rich.cells import cell_len
from rich.markup import escape
from rich.text import Text


class Console(rich.console.Console):
    """Prints text as it is written; words longer than a line, such as paths, stay whole.

    Parameters
    ----------
    stream
        Where it prints, to tell whether it is a terminal; None if it was closed.
    stderr
        Whether that is stderr.
    markup
        Whether square brackets in a text mean colours.
    """

    escape = staticmethod(escape)

    def __init__(self, stream: TextIO | None, *, stderr: bool, markup: bool = True) -> None:
        self.narrow = stream is not None and stream.isatty()
        width = None if self.narrow or "COLUMNS" in os.environ else 10_000
        super().__init__(stderr=stderr, width=width, highlight=False, emoji=False, markup=markup, soft_wrap=True)

    def print(self, *objects: Any, **options: Any) -> None:
        if self.narrow:
            markup = options.get("markup")
            objects = tuple(
                in_lines(self.render_str(each, markup=markup), self.width) if isinstance(each, str) else each
                for each in objects
            )
        super().print(*objects, **options)


def in_lines(text: Text, width: int) -> Text:
    r"""Return a text with line breaks before words that would not fit.

    >>> in_lines(Text("give another with --runs-dir\nor stop"), 14).plain
    'give another\nwith\n--runs-dir\nor stop'
    """
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        start, breaks = 0, []
        for word in re.finditer(r"\S+", line.plain):
            if cell_len(line.plain[start : word.end()]) > width and line.plain[start : word.start()].strip():
                start = word.start()
                breaks.append(start)
        lines += line.divide(breaks)
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)
