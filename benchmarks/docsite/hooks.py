"""Hooks that MkDocs calls while it builds the site (mkdocs.yml): generated pages, links, and equations.

- the home page is the README, and the other files that pages link to (examples, tests, CONTRIBUTING.md) are pages too;
- every method has a page, made of its docstring, its facts and the ledger (:mod:`benchmarks.docsite.methods`);
- equations become MathML, which browsers render themselves: no script or font comes from elsewhere.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from benchmarks.docsite.methods import method_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)
LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".cff": "yaml", ".yml": "yaml"}
SPELLINGS = {r"\arg": r"\operatorname{arg}", r"\big\lVert": r"\lVert", r"\big\rVert": r"\rVert"}  # for latex2mathml


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the methods' pages and the decisions into the navigation."""
    sections: dict[str, Any] = {title: part for entry in config.nav or [] for title, part in entry.items()}
    sections["Methods"].extend({title: f"methods/{name}.md"} for name, title, _ in method_pages())
    decisions = next(part["Decisions"] for part in sections["Project"] if "Decisions" in part)
    decisions.extend(f"decisions/{path.name}" for path in sorted((DOCS / "decisions").glob("0*.md")))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and those of files outside docs/ that some page links to."""
    made = {f"methods/{name}.md": text for name, _, text in method_pages()}
    made["index.md"] = moved((ROOT / "README.md").read_text(encoding="utf-8"), ROOT / "README.md", DOCS / "index.md")
    waiting = [DOCS / file.src_uri for file in files if file.is_documentation_page()] + [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        for path in linked(page):
            uri = source_page(path)
            if DOCS not in path.parents and path != ROOT / "README.md" and uri not in made:
                made[uri] = shown(path)
                waiting.append(path)
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ to the pages that stand for those files."""
    if page.file.abs_src_path is None or page.file.generated_by is not None:
        return markdown
    path = DOCS / page.file.src_uri
    return moved(markdown, path, path)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn LaTeX into MathML."""
    return EQUATION.sub(lambda found: mathml(html.unescape(found[2]), block=found[1] == "div"), content)


def mathml(latex: str, block: bool) -> str:
    """Return an equation as MathML; fail if any command in it is unknown."""
    for ours, theirs in SPELLINGS.items():
        latex = latex.replace(ours, theirs)
    parts = latex.split(r"\qquad") if block else [latex]  # one line each
    drawn = "\n".join(convert(part.strip(), display="block" if block else "inline") for part in parts)
    if unknown := re.findall(r"\\[A-Za-z]+", drawn):
        raise ValueError(f"LaTeX that cannot be drawn: {', '.join(unknown)} in {latex}")
    return f'<div class="equation">{drawn}</div>' if block else drawn


def linked(page: Path) -> list[Path]:
    """Return the files that a page in Markdown links to."""
    if page.suffix != ".md":
        return []
    found = (found[0] for found in LINK.finditer(page.read_text(encoding="utf-8")))
    paths = [(page.parent / link).resolve() for link in found if "://" not in link and not link.startswith("mailto:")]
    return [path for path in paths if path.is_file()]


def source_page(path: Path) -> str:
    """Return the address of the page that stands for a file outside docs/."""
    name = path.relative_to(ROOT).as_posix()
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.md"


def shown(path: Path) -> str:
    """Return a file as a page: Markdown as it is, anything else as code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return moved(text, path, DOCS / source_page(path))
    return f"# {path.relative_to(ROOT).as_posix()}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def moved(markdown: str, old: Path, new: Path) -> str:
    """Return the text of a page with its links corrected for another place in docs/."""

    def there(found: re.Match[str]) -> str:
        link = found[0]
        target = (old.parent / link).resolve()
        if "://" in link or link.startswith("mailto:") or not target.is_file():
            return link
        if target == ROOT / "README.md":
            target = DOCS / "index.md"
        elif DOCS not in target.parents:
            target = DOCS / source_page(target)
        return Path(os.path.relpath(target, new.parent)).as_posix()

    return LINK.sub(there, markdown)
