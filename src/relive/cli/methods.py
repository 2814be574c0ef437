"""``relive methods``: the methods, where they work, and their settings. Does not import torch."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from relive.cli.console import out
from relive.core.facts import Setting

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
                "about_settings": {setting.name: _about(setting) for setting in facts.settings},
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
            about = ", ".join(part for part in (_symbol(setting), setting.explain) if part)
            out.print(Text.assemble(f"  {said}  ", (f"{about} {_range(setting)}".strip(), "dim")))
    if not addresses:
        out.print(
            "\nsplit Class-IL: the paper's average accuracy in %, mean ± SEM of 20 runs; without SEM, from "
            "another paper. XdG needs to know the task."
        )


def _symbol(setting: Setting) -> str:
    """Return a setting's symbol, unless it is said anyway."""
    said = setting.symbol == setting.name or setting.explain.startswith(setting.symbol)
    return "" if said else setting.symbol


def _range(setting: Setting) -> str:
    """Return the values that a setting may have.

    >>> _range(Setting("c", 0.1, 0, 1)), _range(Setting("c", 0.1, 0)), _range(Setting("c", 0.1))
    ('(0 to 1)', '(at least 0)', '')
    """
    low, high = (f"{limit:g}" if math.isfinite(limit) else "" for limit in (setting.low, setting.high))
    return f"({low} to {high})" if low and high else f"(at least {low})" if low else f"(at most {high})" if high else ""


def _about(setting: Setting) -> dict[str, Any]:
    """Return everything about a setting as plain values; a limit that it does not have is null."""
    low, high = (limit if math.isfinite(limit) else None for limit in (setting.low, setting.high))
    return {"symbol": setting.symbol, "low": low, "high": high, "explain": setting.explain, "percent": setting.percent}
