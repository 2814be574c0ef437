"""What a worker process does: one run at a time, told to the driver as it goes."""

from __future__ import annotations

import functools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.data.sources import Dataset, load
from relive.errors import ReliveError
from relive.experiments.spec import RunSpec

REPORT_EVERY = 0.5  # seconds between two reports of one run

Samples = list[npt.NDArray[np.uint8]]
Report = Callable[[str, int, int], None]  # run's name, task (from 1), iteration


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
    given: dict[str, Dataset] = {}  # noqa: RUF012 - data sets that were sent to this process


def give(data: Dataset) -> None:
    """Hand this process a data set, so that it need not look for it."""
    _Process.given[data.name] = data


def report_with(report: Report) -> None:
    """Say how this process is to report."""
    _Process.report = staticmethod(report)


def check_versions(mine: dict[str, str], drivers: dict[str, str]) -> None:
    """Refuse if this process differs from the driver in what decides the bits."""
    differ = [
        f"{name} {mine.get(name)} (driver: {drivers[name]})" for name in drivers if mine.get(name) != drivers[name]
    ]
    if differ:
        raise VersionsDiffer(
            f"worker {socket.gethostname()} (process {os.getpid()}) has {', '.join(differ)}; install the driver's there"
        )


def work(job: Job) -> tuple[dict[str, Any], Samples]:
    """Do a run and return its result, as JSON, with its samples."""
    from relive.experiments.checkpoint import FileCheckpoint
    from relive.experiments.run import Observer, run, versions
    from relive.experiments.store import Store

    check_versions(versions(), job.versions)
    spec = RunSpec.from_json(job.spec)

    class Reporter(Observer):
        last = 0.0

        def stepped(self, task: int, iteration: int, loss: float) -> None:
            now = time.monotonic()
            if now - self.last >= REPORT_EVERY:
                self.last = now
                _Process.report(spec.name, task + 1, iteration)

    checkpoint = FileCheckpoint(Store(Path(job.runs_dir)), spec, versions()) if job.runs_dir else None
    data = _Process.given.get(spec.dataset) or _load(spec.dataset, job.data_dir)
    outcome = run(spec, data=data, observer=Reporter(), checkpoint=checkpoint)
    return outcome.result.to_json(), outcome.samples


@functools.lru_cache(maxsize=3)
def _load(name: str, data_dir: str | None) -> Dataset:
    return load(name, data_dir, quiet=True)


def start_local(report: Report) -> None:
    """Set up a process of the local engine: it leaves Ctrl-C to the driver, and dies with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = os.getppid()

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    report_with(report)
