"""The command line: ``relive run``, ``relive fit``, ``relive data``, … Torch is imported only by what trains."""

from __future__ import annotations

import atexit
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from relive.cli import (
    change,
    collect,
    compare,
    data,
    evaluate,
    export,
    fit,
    grid,
    inspect,
    methods,
    paper,
    predict,
    report,
    run,
    serve,
    studio,
    table,
)
from relive.cli.console import err
from relive.cli.ending import Door

door = Door()
app = typer.Typer(
    name="relive",
    help="Learn task after task without forgetting, by reliving earlier tasks instead of storing their data.",
    epilog="Example: relive run --scenario class --method rtf --dataset digits --iters 1000",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="run", epilog=run.EXAMPLES)(run.command)
app.command(name="compare", epilog=compare.EXAMPLES)(compare.command)
app.command(name="paper", epilog=paper.EXAMPLES)(paper.command)
app.command(name="grid", epilog=grid.EXAMPLES)(grid.command)
app.command(name="table", epilog=table.EXAMPLES)(table.command)
app.command(name="report", epilog=report.EXAMPLES)(report.command)
app.command(name="collect", epilog=collect.EXAMPLES)(collect.command)
app.command(name="fit", epilog=fit.EXAMPLES)(fit.command)
app.command(name="predict", epilog=predict.EXAMPLES)(predict.command)
app.command(name="evaluate", epilog=evaluate.EXAMPLES)(evaluate.command)
app.command(name="inspect", epilog=inspect.EXAMPLES)(inspect.command)
app.command(name="export", epilog=export.EXAMPLES)(export.command)
app.command(name="serve", epilog=serve.EXAMPLES)(serve.command)
app.command(name="studio", epilog=studio.EXAMPLES)(studio.command)
app.command(name="forget", epilog=change.FORGET_EXAMPLES)(change.forget)
app.command(name="rename", epilog=change.RENAME_EXAMPLES)(change.rename)
app.command(name="merge", epilog=change.MERGE_EXAMPLES)(change.merge)
app.command(name="rollback", epilog=change.ROLLBACK_EXAMPLES)(change.rollback)
app.command(name="methods", epilog=methods.EXAMPLES)(methods.command)
app.add_typer(data.app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relive {version('relive')}")
        raise typer.Exit()


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    door.debug = debug


def _note(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning without the code location, which users did not write."""
    err.print(f"note: {message}")


class _Interrupt:
    """Treat Ctrl-C pressed again within a second as the same interrupt, so it does not cut the cleanup short."""

    last = -math.inf

    def __call__(self, *_: object) -> None:
        if time.monotonic() - self.last > 1:
            self.last = time.monotonic()
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python would die of it at its very end
            raise KeyboardInterrupt


def main(met: Sequence[warnings.WarningMessage] = ()) -> None:
    """Run the command line; every error ends in one message and an exit code.

    Parameters
    ----------
    met
        What was warned of while the commands were imported.
    """
    interrupt = _Interrupt()
    signal.signal(signal.SIGTERM, interrupt)  # being ended is an interrupt: say what was kept
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is to be ignored
        signal.signal(signal.SIGINT, interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")  # a terminal may not know every letter
    warnings.showwarning = _note
    for warning in met:
        _note(warning.message)
    with door.closed():
        app()
        sys.stdout.flush()
