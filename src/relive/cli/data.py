"""``relive data``: list, download and check the data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from relive._util.errors import DataError, unknown
from relive.cli.console import out
from relive.data.catalogue import DATASETS
from relive.data.datasets.recipes import data_home
from relive.data.datasets.sources import load_data, survey

app = typer.Typer(
    help="List, download and check the data sets. Without a command: list them.",
    invoke_without_command=True,
    rich_markup_mode="rich",
)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help=f"{', '.join(DATASETS)}.", show_default="all of them"),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="RELIVE_DATA",
        metavar="DIR",
        help="Look for data in DIR, and store it there, instead of the user's cache directory.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


@app.callback()
def default(context: typer.Context) -> None:
    """List the data sets if no command is given."""
    if context.invoked_subcommand is None:
        show(data_dir=None)


@app.command("list")
def show(data_dir: DataDir = None) -> None:
    """List the data sets, their sizes, and whether they are on this machine.

    Your own files, folders and loaders need not be listed: use them directly, as in `relive run --dataset my.npz`.

    Example: [b]relive data list[/b]
    """
    table = Table("name", "train", "test", "inputs", Column("on this machine", overflow="fold"))
    for facts in DATASETS.values():
        table.add_row(
            facts.name,
            f"{facts.train:,}" if facts.train else "",
            f"{facts.test:,}" if facts.test else "",
            "×".join(map(str, facts.shape)),
            _whereabouts(facts.name, data_dir),
        )
    out.print(table, soft_wrap=False)


@app.command()
def fetch(names: Names = None, data_dir: DataDir = None, quiet: Quiet = False) -> None:
    """Download data sets that are not on this machine; all of them if none is named.

    Examples: [b]relive data fetch mnist[/b], [b]relive data fetch --data-dir /srv/data[/b]
    """
    failures = []
    for name in _known(names):
        try:
            load_data(name, data_dir, quiet=quiet)
        except DataError as error:
            failures.append(str(error))
        else:
            out.print(f"{name}: {_whereabouts(name, data_dir)}")
    if failures:
        raise DataError("\n".join(failures))


@app.command()
def verify(names: Names = None, data_dir: DataDir = None) -> None:
    """Check each file of data sets against its SHA-256; exit with 1 if one is damaged or missing.

    Without names, all data sets of which any file is on this machine are checked.

    Examples: [b]relive data verify[/b], [b]relive data verify mnist --data-dir /srv/data[/b]
    """
    right = True
    for name in _known(names):
        copies = survey(name, data_dir)
        if not copies or (not names and not any(copy.path for copy in copies)):
            out.print(f"{name}: {_whereabouts(name, data_dir)}")
            continue
        for copy in copies:
            if copy.problem:
                right = False
                where = "" if copy.path else f"{data_home(data_dir)[0]}: "
                out.print(f"WRONG {name}: {where}{copy.problem}", style="red")
            else:
                out.print(f"ok    {name}: {copy.path} has SHA-256 {copy.file.sha256}")
    if not right:
        raise typer.Exit(1)


def _known(names: list[str] | None) -> list[str]:
    """Return the names, each known, or all names if there are none."""
    for name in names or []:
        if name not in DATASETS:
            raise unknown("data set", name, DATASETS)
    return names or list(DATASETS)


def _whereabouts(name: str, data_dir: Path | None) -> str:
    """Describe in a few words where a data set is stored."""
    copies = survey(name, data_dir)
    folders = sorted({str(copy.path.parent) for copy in copies if copy.path})
    if not copies:
        return DATASETS[name].origin or "comes with its package"
    if not folders:
        return "not downloaded yet"
    if any(copy.problem for copy in copies):
        return f"damaged or incomplete: see relive data verify {name}"
    return f"in {' and '.join(folders)}"
