"""``relive collect``: gather finished runs into a ledger, a few files instead of a folder per run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relive._util.errors import InputError
from relive.cli.console import counted, err, note, out

RUNS_DIRS = Annotated[list[Path], typer.Argument(help="Runs directories, or other ledgers.", metavar="RUNS_DIR...")]
INTO = Annotated[Path, typer.Option(help="The ledger; created if it does not exist.")]
SAMPLES = Annotated[
    bool, typer.Option("--samples", help="Also include the samples that generators made, which are large.")
]
REPLACE = Annotated[bool, typer.Option("--replace", help="Replace a run in the ledger with a newer result.")]

EXAMPLES = """Examples:

relive collect runs --into reproduction

relive collect runs other-machine/runs --into results --samples

relive table --runs-dir reproduction  (a ledger is read like a runs directory)
"""


def command(runs_dirs: RUNS_DIRS, into: INTO, samples: SAMPLES = False, replace: REPLACE = False) -> None:
    """Add finished runs to a ledger: one file of results per protocol, and one of samples.

    The runs directories are not changed. A damaged result is skipped and named, and the exit code is then 1.
    """
    from relive.experiments.ledger import add
    from relive.experiments.store import Store

    for path in runs_dirs:
        if path.is_file():
            raise InputError(f"{path} is a file: give the runs directory or ledger that it is in")
        if not path.is_dir():
            raise InputError(f"there is no runs directory {path}")
    if into.exists() and not into.is_dir():
        raise InputError(f"--into {into}: this is a file; a ledger is a directory")
    added, replaced, known, left_out = 0, 0, 0, 0
    for path in runs_dirs:
        store = Store(path)
        results, damaged = store.scan()
        left_out += len(damaged)
        for error in damaged:
            err.say("left out:", str(error), "yellow")
        pictures = {
            f"{run.spec.name}/task{k}": array
            for run in (results if samples else [])
            for k, array in enumerate(store.samples(run.spec))
        }
        done = add(into, results, pictures, replace=replace)
        added, replaced, known = added + len(done.new), replaced + len(done.replaced), known + len(done.known)
        if done.other:
            name = done.other[0].name
            what = name if len(done.other) == 1 else f"{len(done.other)} runs ({name}, …)"
            note(f"{into} has another result of {what}, and keeps it; --replace takes the one in {path}")
    files = [path for path in into.iterdir() if path.is_file() and not path.name.startswith(".")]
    size = sum(path.stat().st_size for path in files) / 1e6
    for word, n in (("added", added), ("replaced", replaced), ("known", known)):
        if n or word == "added":
            out.print(f"{word:10}{counted(n, 'run')}" + (", already there" if word == "known" else ""))
    out.print(f"ledger    {into}  ({counted(len(files), 'file')}, {size:.1f} MB)")
    if left_out:
        raise typer.Exit(1)
