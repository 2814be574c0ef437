"""What a worker process does: one run at a time, told to the driver as it goes."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from relive._util.errors import ReliveError
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data
from relive.experiments.arrays import Pictures
from relive.experiments.spec import RunSpec

REPORT_EVERY = 0.5  # seconds between two reports of one run
REPORT, NOTE, RESULT, ERROR = "report", "note", "result", "error"  # what a local worker's messages are

Report = Callable[[str, int, int], None]  # run's name, task (from 1), iteration
Note = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """A run to do: plain values, so that any engine can send it.

    Attributes
    ----------
    spec
        The run's spec as JSON.
    versions
        The driver's; a worker with others refuses.
    runs_dir
        Where the worker keeps the run's checkpoint, or None if only the driver writes there.
    data_dir
        Where the data set lies, or None for the usual places.
    """

    spec: dict[str, Any]
    versions: dict[str, str]
    runs_dir: str | None = None
    data_dir: str | None = None


class VersionsDiffer(ReliveError):  # noqa: N818
    """A worker would not give the driver's bits."""


class _Process:
    """What a worker process holds between runs."""

    report: Report = staticmethod(lambda name, task, iteration: None)
    note: Note = staticmethod(lambda text: None)
    given: dict[str, Dataset] = {}  # noqa: RUF012 - data sets that were sent to this process


def give(data: Dataset) -> None:
    """Hand this process a data set, so that it need not look for it."""
    _Process.given[data.name] = data


def report_with(report: Report, note: Note = lambda text: None) -> None:
    """Say how this process is to report how a run goes, and what else the user should know."""
    _Process.report = staticmethod(report)
    _Process.note = staticmethod(note)


def differences(mine: dict[str, str], drivers: dict[str, str]) -> str:
    """Say in what a worker differs from the driver, of what decides the bits; an empty text if in nothing.

    >>> differences({"torch": "2.9", "numpy": "2.4"}, {"torch": "2.13", "numpy": "2.4"})
    'torch 2.9 (driver: 2.13)'
    """
    return ", ".join(
        f"{name} {mine.get(name)} (driver: {theirs})" for name, theirs in drivers.items() if mine.get(name) != theirs
    )


def check_versions(mine: dict[str, str], drivers: dict[str, str]) -> None:
    """Refuse if this process would not give the driver's bits."""
    differ = differences(mine, drivers)
    if differ:
        raise VersionsDiffer(
            f"worker {socket.gethostname()} (process {os.getpid()}) has {differ}: if relive was changed or updated "
            "since the sweep began, give the command again; finished runs are kept"
        )


def work(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Do a run and return its result, as JSON, with its samples."""
    from relive._util.versions import versions
    from relive.experiments.checkpoint import FileCheckpoint
    from relive.experiments.execute import Observer, run
    from relive.experiments.store import Store

    check_versions(versions(), job.versions)
    spec = RunSpec.from_json(job.spec)

    class Reporter(Observer):
        last = 0.0

        def resumed(self, done: int) -> None:
            _Process.note(f"{spec.name} goes on after task {done} of {spec.tasks}")

        def stepped(self, task: int, iteration: int, loss: float) -> None:
            now = time.monotonic()
            if now - self.last >= REPORT_EVERY:
                self.last = now
                _Process.report(spec.name, task + 1, iteration)

    store = Store(Path(job.runs_dir)) if job.runs_dir else None
    checkpoint = FileCheckpoint(store, spec, versions(), _Process.note) if store else None
    data = _Process.given.get(spec.dataset) or _load(spec.dataset, job.data_dir)
    outcome = run(spec, data=data, observer=Reporter(), checkpoint=checkpoint)
    return outcome.result.to_json(), outcome.samples


@functools.lru_cache(maxsize=3)
def _load(name: str, data_dir: str | None) -> Dataset:
    return load_data(name, data_dir, quiet=True)


def serve(pipe: Connection, driver: int) -> None:
    """Be a process of the local engine: do what comes through the pipe, one call at a time, until told to stop.

    Ctrl-C is left to the driver; when the driver dies, however, the process dies too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(driver,), daemon=True).start()
    report_with(lambda *report: pipe.send((REPORT, report)), lambda text: pipe.send((NOTE, text)))
    with contextlib.suppress(EOFError, OSError):  # the driver is gone
        while call := pipe.recv():
            fn, args, kwargs = call
            try:
                answer = RESULT, fn(*args, **kwargs)
            except BaseException as error:
                answer = ERROR, _portable(error)
            pipe.send(answer)


def _die_with(driver: int) -> None:
    """End this process when the driver, which started it, is its parent no more."""
    while os.getppid() == driver:
        time.sleep(0.2)
    os._exit(1)


def _portable(error: BaseException) -> BaseException:
    """Return the exception with its traceback as a note, in a form that another process can read."""
    trace = f"in worker process {os.getpid()}:\n{traceback.format_exc()}"
    try:
        ForkingPickler.dumps(copy.copy(error))  # as the pipe does it
    except Exception:
        error = RuntimeError(repr(error))
    error.add_note(trace)
    return error
