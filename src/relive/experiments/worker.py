"""What a worker process does: one run at a time, with reports to the driver."""

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
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relive._util.errors import ReliveError
from relive._util.registry import with_files
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data
from relive.experiments.arrays import Pictures
from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec

if TYPE_CHECKING:
    from relive.experiments.execute import Keep

REPORT_EVERY = 0.5  # seconds between two reports of one run
REPORT, NOTE, RESULT, ERROR = "report", "note", "result", "error"  # kinds of a local worker's messages

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
        The driver's; a worker with different ones refuses.
    runs_dir
        Where the worker keeps the run's checkpoint, or None if only the driver writes there.
    data_dir
        Where the data set is stored, or None for the usual places.
    files
        The code files that the spec refers to, by path, for a worker that cannot see the driver's.
    """

    spec: dict[str, Any]
    versions: dict[str, str]
    runs_dir: str | None = None
    data_dir: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


class VersionsDiffer(ReliveError):  # noqa: N818
    """A worker would not reproduce the driver's bits."""


class _Process:
    """The state of a worker process between runs."""

    report: Report = staticmethod(lambda name, task, iteration: None)
    note: Note = staticmethod(lambda text: None)
    data: dict[tuple[str, str], Dataset] = {}  # noqa: RUF012 - data sets that were sent to it, by name and digest


def provide_data(data: Dataset) -> None:
    """Give this process a data set, so that it need not load it."""
    _Process.data[data.name, data.digest] = data


def set_reporting(report: Report, note: Note = lambda text: None) -> None:
    """Set how this process reports a run's progress, and notes for the user."""
    _Process.report = staticmethod(report)
    _Process.note = staticmethod(note)


def differences(mine: dict[str, str], drivers: dict[str, str]) -> str:
    """Describe how a worker differs from the driver in what affects the bits; an empty string if it does not.

    >>> differences({"torch": "2.9", "numpy": "2.4"}, {"torch": "2.13", "numpy": "2.4"})
    'torch 2.9 (driver: 2.13)'
    """
    return ", ".join(
        f"{name} {mine.get(name)} (driver: {theirs})" for name, theirs in drivers.items() if mine.get(name) != theirs
    )


def check_versions(mine: dict[str, str], drivers: dict[str, str]) -> None:
    """Refuse if this process would not reproduce the driver's bits."""
    differ = differences(mine, drivers)
    if differ:
        raise VersionsDiffer(
            f"worker {socket.gethostname()} (process {os.getpid()}) has {differ}: if relive was changed or updated "
            "since the sweep started, run the command again; finished runs are kept"
        )


class _Reporter(Observer):
    """Sends a run's progress to the driver, now and then."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.last = 0.0

    def resumed(self, done: int) -> None:
        _Process.note(f"{self.spec.name} resumes after task {done} of {self.spec.tasks}")

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_EVERY:
            self.last = now
            _Process.report(self.spec.name, task + 1, iteration)


def work(job: Job, keep: Keep | None = None) -> tuple[dict[str, Any], list[Pictures]]:
    """Do a run in a worker process, reporting to the driver; ``keep`` is as in ``execute_job``."""
    from relive._util.versions import versions

    check_versions(versions(), job.versions)
    spec = RunSpec.from_json(job.spec)
    wanted = spec.dataset, spec.sources.get(spec.dataset, "")
    data = _Process.data.get(wanted) or _load(*wanted, job.data_dir)
    return execute_job(job, data, _Reporter(spec), _Process.note, keep)


def execute_job(
    job: Job, data: Dataset, observer: Observer, note: Note, keep: Keep | None = None
) -> tuple[dict[str, Any], list[Pictures]]:
    """Do a run in this process and return its result, as JSON, with its samples.

    Parameters
    ----------
    job
        The run.
    data
        Its data set.
    observer
        Gets the progress.
    note
        Gets notes for the user, such as that a checkpoint cannot be used.
    keep
        Called with the learner after each task.
    """
    from relive.experiments.checkpoint import FileCheckpoint
    from relive.experiments.execute import run
    from relive.experiments.journal import Journal
    from relive.experiments.store import Store

    spec = RunSpec.from_json(job.spec)
    checkpoint = None
    if job.runs_dir:
        store = Store(Path(job.runs_dir))
        checkpoint = FileCheckpoint(store, spec, job.versions, note)
        observer = Journal(store.directory(spec), observer)
    with with_files(job.files), observer:
        outcome = run(spec, data=data, observer=observer, checkpoint=checkpoint, keep=keep)
    return outcome.result.to_json(), outcome.samples


@functools.lru_cache(maxsize=3)
def _load(name: str, digest: str, data_dir: str | None) -> Dataset:
    """Return a data set; ``digest`` tells whether it is the one that was loaded before."""
    return load_data(name, data_dir, quiet=True)


def serve(pipe: Connection, driver: int) -> None:
    """Run as a process of the local engine: execute calls from the pipe, one at a time, until told to stop.

    Ctrl-C is left to the driver; when the driver dies, so does this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", module=r"relive\.(methods|_util\.registry)$")  # the driver has said these once
    threading.Thread(target=_exit_with, args=(driver,), daemon=True).start()
    set_reporting(lambda *report: pipe.send((REPORT, report)), lambda text: pipe.send((NOTE, text)))
    with contextlib.suppress(EOFError, OSError):  # the driver is gone
        while call := pipe.recv():
            fn, args, kwargs = call
            try:
                answer = RESULT, fn(*args, **kwargs)
            except BaseException as error:
                answer = ERROR, _portable(error)
            pipe.send(answer)


def _exit_with(driver: int) -> None:
    """End this process when the driver, which started it, is no longer its parent."""
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
