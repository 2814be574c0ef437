"""``relive methods``: the methods, where they work, and their settings. Does not import torch."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from relive.cli.console import out

EXAMPLES = """Examples:

relive methods

relive methods my_file.py:MyMethod --json  (your own method)
"""


def command(
    addresses: Annotated[
        list[str] | None, typer.Argument(help="Only these: names, or my_file.py:MyMethod.", metavar="[METHOD...]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """List all methods, or those named, with their scenarios, settings, defaults and references.

    Installed packages add methods through entry points in the group relive.methods.
    """
    from relive.data.catalogue import PROTOCOLS
    from relive.methods import METHODS, method_facts
    from relive.paper.published import FURTHER, PUBLISHED

    listed = {name: method_facts(name) for name in addresses} if addresses else METHODS
    if as_json:
        listing = {
            name: {
                "title": facts.title,
                "scenarios": list(facts.scenarios),
                "settings": {p: facts.defaults | dict(PROTOCOLS[p].settings.get(name, {})) for p in PROTOCOLS},
                "reference": facts.reference,
                "keeps_data": facts.keeps_data,
            }
            for name, facts in listed.items()
        }
        typer.echo(json.dumps(listing, indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("--method", "scenarios", "split Class-IL", "what it is"):
        table.add_column(heading, no_wrap=heading != "what it is")
    for name, facts in listed.items():
        cell = PUBLISHED.get(("split", "class", name))
        published = f"{cell.mean:.2f} ± {cell.sem:.2f}" if cell else "–"
        if elsewhere := FURTHER.get(("split", "class", name)):
            published = f"{elsewhere.mean:.2f}"
        what = facts.reference + (" (keeps data)" if facts.keeps_data else "")
        table.add_row(name, " ".join(facts.scenarios), published, what)
    out.print(table)
    if any(facts.settings for facts in listed.values()):
        out.print(Text.assemble(("\nsettings", "bold"), " (--set NAME=VALUE, with their defaults)"))
    width = max(map(len, listed))
    for name, facts in listed.items():
        for setting in facts.settings:
            others = [
                f"{protocol}: {value:g}"
                for protocol in PROTOCOLS
                if (value := PROTOCOLS[protocol].settings.get(name, {}).get(setting.name)) is not None
            ]
            other = f" ({', '.join(others)})" if others else ""
            said = f"{name:<{width}} {setting.name}={setting.default:g}{other}"
            out.print(Text.assemble(f"  {said}  ", (setting.explain, "dim")))
    if not addresses:
        out.print(
            "\nsplit Class-IL: the paper's average accuracy in %, mean ± SEM of 20 runs; without SEM, from "
            "another paper. XdG needs to know the task."
        )
