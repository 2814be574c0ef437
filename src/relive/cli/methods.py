"""``relive methods``: what there is, where it works, and what can be set."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from relive.cli.console import out


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """List the methods with their scenarios, settings, defaults and references.

    Example: relive methods
    """
    from relive.experiments.paper import PRESETS, PUBLISHED, preset_settings
    from relive.methods import METHODS, settings_of

    if as_json:
        listing = {
            name: {
                "title": method.title,
                "scenarios": list(method.scenarios),
                "settings": {protocol: preset_settings(protocol, name) for protocol in PRESETS},
                "reference": method.reference,
            }
            for name, method in METHODS.items()
        }
        typer.echo(json.dumps(listing, indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("--method", "scenarios", "split Class-IL", "what it is"):
        table.add_column(heading, no_wrap=heading != "what it is")
    for name, method in METHODS.items():
        cell = PUBLISHED.get(("split", "class", name))
        published = f"{cell.mean:.2f} ± {cell.sem:.2f}" if cell else "–"
        table.add_row(name, " ".join(method.scenarios), published, method.reference)
    out.print(table)
    out.print("\n[bold]settings[/] (--set NAME=VALUE, with their defaults)")
    for name, method in METHODS.items():
        for key, default in settings_of(method).items():
            permuted = preset_settings("permuted", name)[key]
            other = f" (permuted: {permuted:g})" if permuted != default else ""
            out.print(f"  {name:<12} {key}={default:g}{other}  [dim]{method.explain[key]}[/]")
    out.print(
        "\nsplit Class-IL: the paper's average accuracy in %, mean ± SEM of 20 runs. XdG needs the task to be known."
    )
