"""The code on the pages runs, in the order of the page, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from relive.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [
    *("README.md", "docs/tutorial.md", "docs/scenarios.md", "docs/faq.md", "docs/python.md"),
    *(f"docs/extending/{name}.md" for name in ("index", "method", "data-set", "protocol", "network")),
]
BLOCK = re.compile(r"(?:<!-- not run: (.*?) -->\n+)?^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
POINTS = 3.0  # by how much a percentage may differ: processors round differently, and training amplifies it


class Block(NamedTuple):
    """A block of code on a page."""

    why_not: str  # the reason why it is not run, if any
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [Block(*parts) for parts in found]


def assert_alike(printed: str, written: str) -> None:
    """Check that words are the same, and numbers close; times and sizes may differ."""
    number = r"\d+(?:\.\d+)?"
    assert re.sub(number, "#", printed) == re.sub(number, "#", written)
    for ours, theirs in zip(
        re.findall(rf"({number}) ?%", printed), re.findall(rf"({number}) ?%", written), strict=True
    ):
        assert float(ours) == pytest.approx(float(theirs), abs=POINTS)


def test_a_wrong_figure_is_noticed() -> None:
    assert_alike("learned in 0.3 s: 99.1 %", "learned in 0.8 s: 98.9 %")
    with pytest.raises(AssertionError):
        assert_alike("77 % of it", "70 % of it")
    with pytest.raises(AssertionError):
        assert_alike("rtf: 77 %", "bir: 77 %")


def said(command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process, which has torch imported; return what it prints."""
    capfd.readouterr()
    monkeypatch.setattr(sys, "argv", ["relive", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_and_prints_what_stands_below_it(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    reader: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    ran = 0
    for number, block in enumerate(blocks(page), 1):
        if block.why_not:
            continue
        if block.language == "python":
            code = re.sub(r"(iterations|iters)=500\b", r"\1=20", block.text)  # if no number is shown
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, f"{page}, block {number}", "exec"), reader)
            ran += 1
        elif block.language == "text":
            assert_alike(printed.getvalue(), block.text)
        elif block.language == "console":
            for command, written in re.findall(r"^\$ relive (.*)\n((?:(?!\$ ).*\n)*)", block.text, flags=re.MULTILINE):
                expected, _, rest = written.partition("…")  # stands for any number of lines
                shown = said(command, monkeypatch, capfd).splitlines(keepends=True)
                assert_alike("".join(shown[: len(expected.splitlines())] if rest else shown), expected)
    assert ran
