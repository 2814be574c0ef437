"""Tables that a command writes into a page of the documentation, between two marks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from relive._util.files import write_atomic


def put(page: Path, name: str, table: str) -> None:
    """Replace what stands between the marks of this name, ``<!-- name: begin -->`` and ``<!-- name: end -->``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"{page} has no marks for this table: put the lines {begin} and {end} where it belongs")
    before, rest = text.split(begin)
    write_atomic(page, f"{before}{begin}\n\n{table.strip()}\n\n{end}{rest.split(end)[1]}".encode())


def table_of(head: Sequence[str], *rows: Sequence[str]) -> str:
    """Return a table in Markdown.

    >>> print(table_of(["a", "b"], ["1", "2"]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows))
