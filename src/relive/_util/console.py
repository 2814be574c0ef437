"""A console for messages: on a terminal lines wrap between words, elsewhere they are not wrapped.

Text is printed literally, whoever wrote it: brackets are not markup, and control characters are shown, not sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, TextIO

import rich.console
from rich.cells import cell_len
from rich.segment import Segment
from rich.text import Text

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    r"""Return a text with every character escaped that is invalid or that a terminal would interpret.

    Those are control characters except tab and line break, direction marks, and lone surrogates.

    >>> print(shown("one\x1b[2Jtwo \u202e three"))
    one\x1b[2Jtwo \u202e three
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


class Console(rich.console.Console):
    """Prints text literally; words longer than a line, such as paths, are not broken.

    Parameters
    ----------
    stream
        Where it prints, to tell whether it is a terminal; None if it is closed.
    stderr
        Whether that is stderr.
    """

    def __init__(self, stream: TextIO | None, *, stderr: bool) -> None:
        self.narrow = stream is not None and stream.isatty()
        width = None if self.narrow or "COLUMNS" in os.environ else 10_000
        super().__init__(stderr=stderr, width=width, highlight=False, emoji=False, markup=False, soft_wrap=True)

    def print(self, *objects: Any, **options: Any) -> None:
        if self.narrow:
            texts = (Text(shown(each)) if isinstance(each, str) else each for each in objects)
            objects = tuple(in_lines(each, self.width) if isinstance(each, Text) else each for each in texts)
        super().print(*objects, **options)

    def say(self, mark: str, text: str, style: str) -> None:
        """Print a text after a coloured word."""
        self.print(Text.assemble((mark, style), " ", shown(text)))

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(shown(text), **options)

    def render(self, renderable: Any, options: rich.console.ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)


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
