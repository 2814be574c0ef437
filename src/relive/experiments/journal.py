"""A run's progress in a file in its directory, so that it can be watched live. No torch."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from relive._util.files import write_atomic
from relive.experiments.observer import Observer
from relive.experiments.store import PROGRESS

EVERY = 0.4  # seconds between two updates of the file


@dataclass
class Progress:
    """The progress of a run.

    Attributes
    ----------
    pid, host
        The process that runs it.
    began, at_first
        When this process started, in seconds since 1970, and how many tasks were finished then.
    task, iteration, loss
        The current task, from 0, and its last step.
    matrix, curve
        The accuracies so far, as in ``RunResult``.
    """

    pid: int
    host: str
    began: float
    at_first: int = 0
    task: int = 0
    iteration: int = 0
    loss: float | None = None
    matrix: list[list[float]] = field(default_factory=list)
    curve: list[tuple[int, int, list[float]]] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        """Whether the process is alive; assumed so on another machine."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody else's
            return True
        return True


class Journal(Observer):
    """Writes a run's progress now and then, and forwards it to another observer.

    Parameters
    ----------
    directory
        The run's directory.
    observer
        Gets everything too.
    """

    def __init__(self, directory: Path, observer: Observer) -> None:
        self.path = directory / PROGRESS
        self.observer = observer
        self.progress = Progress(os.getpid(), socket.gethostname(), time.time())
        self.last = 0.0

    def __enter__(self) -> Observer:
        self.observer.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._write()
        self.observer.__exit__(*exception)

    def resumed(self, done: int) -> None:
        before = read_progress(self.path.parent)
        if before is not None:
            self.progress.matrix = before.matrix[:done]
            self.progress.curve = [point for point in before.curve if point[0] < done]
        self.progress.at_first = done
        self.observer.resumed(done)

    def task_started(self, task: int) -> None:
        self.progress.task, self.progress.iteration = task, 0
        self._write()
        self.observer.task_started(task)

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        self.progress.iteration, self.progress.loss = iteration, loss
        if time.monotonic() - self.last >= EVERY:
            self._write()
        self.observer.stepped(task, iteration, loss)

    def probed(self, task: int, accuracies: list[float]) -> None:
        self.progress.curve.append((task, self.progress.iteration, accuracies))
        self.observer.probed(task, accuracies)

    def task_finished(self, task: int, accuracies: list[float]) -> None:
        self.progress.matrix.append(accuracies)
        self._write()
        self.observer.task_finished(task, accuracies)

    def _write(self) -> None:
        self.last = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk must stop the run when it stores something, not here
            write_atomic(self.path, orjson.dumps(asdict(self.progress)), durable=False)


def read_progress(directory: Path) -> Progress | None:
    """Return the progress of a run in a directory, or its last before it stopped; None if there is none."""
    try:
        values: dict[str, Any] = orjson.loads((directory / PROGRESS).read_bytes())
        progress = Progress(**values)
        progress.curve = [(task, step, row) for task, step, row in progress.curve]
    except (OSError, ValueError, TypeError):
        return None
    return progress
