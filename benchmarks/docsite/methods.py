"""A page for each method, made of its docstring, its facts and the ledger: no number on it is typed by hand.

python -m benchmarks.docsite.methods DIRECTORY    # the pages as Markdown; `make docs` puts them into the site
python -m benchmarks.docsite.methods              # only the table of docs/scenarios.md
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

from benchmarks.ledger import further
from benchmarks.page import put, table_of
from relive._util.fidelity import CHOICES
from relive.core.facts import MethodFacts
from relive.experiments.spec import RunResult
from relive.experiments.store import Store
from relive.methods.catalogue import METHODS
from relive.paper.comparison import Compared, Comparison, compare
from relive.paper.published import PROTOCOL_NAMES, PUBLISHED
from relive.paper.tuned import searched_settings, tuned_of
from relive.report.style import PROTOCOL_TITLES, SCENARIO_TITLES, settings_text

ROOT = Path(__file__).parents[2]
LEDGER, DOCS = ROOT / "reproduction", ROOT / "docs"
MATH = re.compile(r"^( *)\.\. math::(.*\n(?:\1 +.*\n|\n(?=\1 ))*)", flags=re.MULTILINE)
SHOWN = ("none", "ewc", "si", "lwf", "rtf", "offline")  # in docs/scenarios.md


@cache
def method_pages() -> tuple[tuple[str, str, str], ...]:
    """Return the name, the title and the page of every method of the package."""
    results, damaged = Store(LEDGER).scan()
    if damaged:
        sys.exit("\n".join(map(str, damaged)))
    tuned = searched_settings(tuned_of(results))
    tables = {name: (compare(results, name), compare(results, name, tuned)) for name in PROTOCOL_NAMES}
    return tuple((name, facts.title, page(facts, results, tables)) for name, facts in METHODS.items())


def page(facts: MethodFacts, results: list[RunResult], tables: dict[str, tuple[Comparison, Comparison]]) -> str:
    """Return a method's page in Markdown."""
    module, _, name = facts.home.partition(":")
    path = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    own = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    parts = [
        f"# {facts.title}",
        f"`--method {facts.name}`: {facts.reference}.",
        as_markdown(ast.get_docstring(tree) or ""),
        f"**`{name}`**: {as_markdown(ast.get_docstring(own) or '')}",
        "## When to use it",
        f"- **Use it** {facts.use_when}.\n- **Do not use it** {facts.not_when}.",
        "## What is to be known",
        _facts(facts),
        *_settings(facts),
        "## Published and reproduced",
        *_numbers(facts, results, tables),
        "## The code",
        f"`{path.relative_to(ROOT).as_posix()}`, without its docstring, which is shown above:",
        f"```python\n{_body(source, tree)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def as_markdown(docstring: str) -> str:
    r"""Return a docstring, which is reStructuredText, as Markdown with equations in LaTeX.

    >>> as_markdown("With :math:`x` in ``y``, :mod:`a.b`:\n\n.. math:: a\n    b\n\nand so on.")
    'With \\(x\\) in `y`, `a.b`:\n\n\\[\na\nb\n\\]\n\nand so on.'
    """
    text = MATH.sub(lambda found: _equation(found[2]), docstring + "\n")
    text = re.sub(r":math:`([^`]*)`", r"\\(\1\\)", text)
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`").strip()


def _equation(lines: str) -> str:
    inner = "\n".join(line.strip() for line in lines.strip().splitlines())
    return f"\\[\n{inner}\n\\]\n"


def _facts(facts: MethodFacts) -> str:
    scenarios = ", ".join(SCENARIO_TITLES[name] for name in facts.scenarios)
    rows = [
        ("scenarios", scenarios + (f"; {facts.why_not}" if facts.why_not else "")),
        ("keeps samples", "**yes**" if facts.keeps_data else "no"),
        ("default encoder", f"`{facts.encoder}`"),
    ]
    if facts.choices:
        choices = "; ".join(
            f"`{name}`: {' or '.join(f'`{value}`' for value in CHOICES[name])}" for name in facts.choices
        )
        rows.append(("[fidelity](../fidelity.md)", f"{choices}. The first is the default"))
    return table_of(["", ""], *rows)


def _settings(facts: MethodFacts) -> list[str]:
    if not facts.settings:
        return ["It has no settings."]
    rows = [
        (f"`{s.name}`", f"{s.default:g}", f"{s.low:g} to {s.high:g}", s.explain.replace("|", "\\|"))
        for s in facts.settings
    ]
    return [table_of(["`--set`", "default", "range", "what it is"], *rows)]


def _numbers(
    facts: MethodFacts, results: list[RunResult], tables: dict[str, tuple[Comparison, Comparison]]
) -> list[str]:
    """Return the tables of a method: the paper's cells next to ours, and all its other runs."""
    parts = []
    for protocol, (default, tuned) in tables.items():
        rows = []
        for scenario, title in SCENARIO_TITLES.items():
            if cell := default.cells.get((scenario, facts.name)):
                searched = tuned.cells[scenario, facts.name]
                row = [title, f"{cell.published.mean:.2f} ± {cell.published.sem:.2f}", _ours(cell), cell.verdict]
                rows.append([*row, "" if searched.settings == cell.settings else _ours(searched, said=True)])
        if rows:
            settings = next(cell.settings for (_, name), cell in default.cells.items() if name == facts.name) or {}
            said = f" ({settings_text(settings, facts.name)})" if settings else ""
            head = [PROTOCOL_TITLES[protocol], "published", f"here{said}", "", "here, with searched settings"]
            parts.append(table_of(head, *rows))
    if parts:
        parts.append(
            "Average accuracy (%) over all tasks, mean ± SEM (number of runs); published: 20 runs. "
            "[Results](../results.md) says what the verdicts mean."
        )
    if others := [result for result in results if result.spec.method == facts.name]:
        rest = further(others)
        if rest.count("\n") > 1:  # more than its header
            parts.append(f"Runs beyond the paper's tables:\n\n{rest}")
    return parts or ["There is no run of it in the ledger yet, nor a published one on these protocols."]


def _ours(cell: Compared, said: bool = False) -> str:
    if cell.mean is None:
        return "not run"
    sem = f" ± {cell.sem:.2f}" if cell.sem is not None else ""
    settings = f", {settings_text(cell.settings, cell.method)}" if said and cell.settings else ""
    return f"{cell.mean:.2f}{sem} ({cell.n}{settings})"


def _body(source: str, tree: ast.Module) -> str:
    """Return a module without its docstring."""
    first = tree.body[1] if ast.get_docstring(tree) else tree.body[0]
    return "\n".join(source.splitlines()[first.lineno - 1 :]).strip()


def scenarios() -> str:
    """Return how much the scenario matters: published accuracies on split MNIST."""
    rows = [
        [METHODS[name].title, *(f"{PUBLISHED['split', scenario, name].mean:.2f}" for scenario in SCENARIO_TITLES)]
        for name in SHOWN
    ]
    return table_of(["method", *SCENARIO_TITLES.values()], *rows)


def main() -> None:
    """Write the table of docs/scenarios.md, and the pages if a directory is given."""
    put(DOCS / "scenarios.md", "scenarios", scenarios())
    for directory in map(Path, sys.argv[1:]):
        directory.mkdir(parents=True, exist_ok=True)
        for name, _, text in method_pages():
            (directory / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
