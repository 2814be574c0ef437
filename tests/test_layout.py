"""Test files are independent: what several files need is in a helper module or a conftest."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(source: str) -> set[str]:
    """Return the modules that a source imports, with the names imported from them, which may be modules too.

    >>> sorted(imported("import a.b\\nfrom tests import c\\nfrom .d import e"))
    ['a.b', 'd', 'd.e', 'tests', 'tests.c']
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module or ''}.{name.name}" for name in node.names)}
    return found


def test_no_file_imports_from_a_test_file() -> None:
    tests = {file.stem for file in TESTS.rglob("test_*.py")}
    borrowed = [
        f"{file.relative_to(TESTS)} imports {name}"
        for file in TESTS.rglob("*.py")
        for name in sorted(imported(file.read_text(encoding="utf-8")))
        if tests & set(name.split("."))
    ]
    assert not borrowed, "move what is shared to a module of helpers"
