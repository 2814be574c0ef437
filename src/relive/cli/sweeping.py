"""What ``relive paper`` and ``relive grid`` share: how a sweep looks while it runs, and how it ends."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from relive._util.errors import InputError
from relive.cli import run
from relive.cli.console import err, note
from relive.report.style import settings_text

if TYPE_CHECKING:
    from relive.experiments.engines import Engine
    from relive.experiments.spec import RunSpec
    from relive.experiments.store import Store
    from relive.experiments.sweep import Status

WORKERS = Annotated[int | None, typer.Option(help="Runs at a time; default: one per core.")]
ENGINE = Annotated[str, typer.Option(help="Where runs are executed: local or dask.")]
FROM = Annotated[
    list[Path] | None,
    typer.Option("--from", help="A ledger or runs directory whose results count as done. Repeatable."),
]
SCHEDULER = Annotated[str | None, typer.Option(help="The Dask scheduler, e.g. tcp://127.0.0.1:8786.")]
RUNS_DIR = run.RUNS_DIR
DATA_DIR = run.DATA_DIR
QUIET = run.QUIET
SIGN_OF_LIFE = 300.0  # seconds between lines where there is no live table


def make_engine(name: str, workers: int | None, scheduler: str | None) -> Engine:
    """Return the requested engine."""
    from relive.experiments.engines import LocalEngine

    if name not in ("local", "dask"):
        raise InputError(f"engine = {name!r}: choose local or dask")
    if name == "local":
        if scheduler is not None:
            raise InputError(f"--scheduler {scheduler} is for --engine dask")
        return LocalEngine(workers)
    if scheduler is None:
        raise InputError("--engine dask needs --scheduler, e.g. --scheduler tcp://127.0.0.1:8786")
    if workers is not None:
        raise InputError(f"--workers {workers} is for --engine local; a Dask cluster has its own workers")
    from relive.experiments.dask_engine import DaskEngine

    for speaker in ("distributed", "tornado"):  # the engine reports a lost scheduler itself, without their tracebacks
        logger = logging.getLogger(speaker)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
    return DaskEngine(scheduler)


def check_writable(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be written to, before any work; it is not created."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise InputError(f"cannot write to {folder}: choose another folder with {option}")


def make_store(runs_dir: Path, taken_from: list[Path] | None) -> Store:
    """Return the store of a runs directory, including results from elsewhere."""
    from relive.experiments.store import Store

    for path in taken_from or []:
        if not path.is_dir():
            raise InputError(f"--from {path}: there is no such directory")
    return Store(runs_dir, tuple(taken_from or ()))


def sweep(
    specs: list[RunSpec],
    engine: Engine,
    store: Store,
    data_dir: Path | None,
    quiet: bool,
    *,
    snapshots: bool = False,
) -> Status:
    """Do all unfinished runs, showing progress, and return how it ended; failures are shown, each error once."""
    from relive.experiments.execute import check_runs
    from relive.experiments.sweep import Sweep
    from relive.experiments.worker import work
    from relive.studio.snapshots import work_with_snapshots

    if snapshots and not engine.shares_files:
        raise InputError("--snapshots needs --engine local: remote workers cannot see the runs directory")
    display, runs_dir = Display(quiet), store.root
    do = work_with_snapshots if snapshots else work
    job = Sweep(specs, store, engine, str(data_dir) if data_dir else None, do, note=note)
    check_runs(job.left(), data_dir, quiet=quiet)  # download data here, not in every worker at the same time
    try:
        with display:
            status = job.run(display.update)
    except KeyboardInterrupt:
        engine.shutdown(wait=False, cancel_futures=True)
        done, total = job.status.done, job.status.total
        tasks = ", and the finished tasks of those in progress," if engine.shares_files else ""
        kept = f"{done} finished of {total} runs{tasks} in {runs_dir}"
        err.print(f"stopped. Kept: {kept}; the same command resumes from there.")
        raise typer.Exit(130) from None
    by_error: dict[str, list[str]] = {}
    for failure in status.failures:
        by_error.setdefault(failure.trace, []).append(failure.spec.name)
    for trace, (name, *others) in by_error.items():
        same = f"\n(the same error ended {', '.join(others)})" if others else ""
        err.say("failed:", f"{name}\n{trace}{same}", "bold red")
    if status.failures:
        err.print(
            f"{len(status.failures)} of {status.total} runs failed, each twice; {status.done} finished, in {runs_dir}"
        )
    return status


def end(status: Status) -> None:
    """End the program with exit code 1 if runs failed."""
    if status.failures:
        raise typer.Exit(1)


class Display:
    """A live table on a terminal, otherwise a line per change or every few minutes, nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = Live(console=err, auto_refresh=False, transient=True)
        self.start = time.monotonic()
        self.waiting_for = ""
        self.done = -1  # so that the first line shows the total
        self.last_line = self.start

    def __enter__(self) -> Display:
        if not self.quiet and err.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.live.stop()

    def update(self, status: Status) -> None:
        """Show the state of the sweep."""
        if status.waiting_for != self.waiting_for and status.waiting_for and not self.quiet:
            err.print(f"waiting for {status.waiting_for}")
        self.waiting_for = status.waiting_for
        if self.live.is_started:
            self.live.update(self._table(status), refresh=True)
        elif not self.quiet and (status.done != self.done or time.monotonic() - self.last_line >= SIGN_OF_LIFE):
            err.print(f"{status.done} of {status.total} runs done{self._left(status)}")
            self.last_line = time.monotonic()
        self.done = status.done

    def _left(self, status: Status) -> str:
        """Return how much time is left, after a comma; nothing once all runs are done."""
        if status.done == status.total:
            return ""
        gained = status.done_share - status.found_share  # results found at the start say nothing about the speed
        if gained <= 0:
            return ", time left: not known yet"
        seconds = (time.monotonic() - self.start) * (1 - status.done_share) / gained
        if seconds < 60:
            return ", less than a minute left"
        hours, minutes = divmod(round(seconds / 60), 60)
        return f", about {hours} h {minutes:02d} min left" if hours else f", about {minutes} min left"

    def _table(self, status: Status) -> RenderableType:
        head = f"{status.done} of {status.total} runs done, {len(status.failures)} failed{self._left(status)}"
        if status.elsewhere:
            head += f", {status.elsewhere} being done by another sweep"
        table = Table(box=None, pad_edge=False, show_header=False)
        for spec in status.running:
            task, iteration = status.progress.get(spec.name, (0, 0))
            where = f"task {task}/{spec.tasks}  iteration {iteration}/{spec.iters}" if task else "starting"
            run = f"{spec.method}, {spec.scenario}, seed {spec.seed}"
            table.add_row(run, where, Text(settings_text(spec.settings, spec.method), style="dim"))
        bar = ProgressBar(total=1.0, completed=status.done_share, width=60)
        return Group(head, bar, "", table)  # a bar does not end its line
