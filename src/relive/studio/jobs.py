"""Commands started from the page, each in its own process, as many at a time as there are cores."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from relive._util.errors import InputError
from relive.studio.ready import NOWHERE, Ready, ended

TAIL = 20_000  # characters of a command's stderr that are kept
MOST = 100  # jobs that are remembered, and that may wait or run
PATIENCE = 10.0  # seconds that a command has to end after an interrupt


@dataclass
class Job:
    """A command: its arguments, its state, and its stderr."""

    number: int
    words: list[str]
    title: str
    runs: list[str] = field(default_factory=list)
    state: str = "waiting"  # running, done, stopped, failed
    said: str = ""
    process: BaseProcess | None = None
    stopping: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what the page shows."""
        return {
            "id": self.number,
            "title": self.title,
            "runs": self.runs,
            "state": self.state,
            "said": self.said,
        }


class Jobs:
    """Starts and stops commands.

    Parameters
    ----------
    ready
        Starts them.
    changed
        Called with a job whenever it changes.
    at_once
        How many may run at a time.
    """

    def __init__(self, ready: Ready, changed: Callable[[Job], None], at_once: int | None = None) -> None:
        self._ready = ready
        self.changed = changed
        self.all: dict[int, Job] = {}
        self._numbers = itertools.count(1)
        self._slots = asyncio.Semaphore(at_once or max(2, os.cpu_count() or 1))
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, words: Sequence[str], title: str, runs: Sequence[str] = ()) -> Job:
        """Start a command of ``relive``, or queue it."""
        if sum(job.state in ("waiting", "running") for job in self.all.values()) >= MOST:
            raise InputError(f"{MOST} commands are waiting or running already: let some of them end first")
        job = Job(next(self._numbers), list(words), title, list(runs))
        self.all[job.number] = job
        over = [n for n, other in self.all.items() if other.state not in ("waiting", "running")]
        for number in over[: max(0, len(self.all) - MOST)]:
            del self.all[number]
        self.changed(job)
        task = asyncio.create_task(self._do(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _do(self, job: Job) -> None:
        async with self._slots:
            if job.stopping:
                job.state = "stopped"
                self.changed(job)
                return
            with tempfile.TemporaryDirectory(prefix="relive-studio-") as place:
                err = Path(place) / "err"
                job.process = await self._ready.start(job.words, Path(), NOWHERE, err)
                job.state = "running"
                self.changed(job)
                if job.stopping:  # while it was starting: there is nothing to keep yet
                    job.process.kill()
                code = await ended(job.process)
                job.said = err.read_text(errors="replace")[-TAIL:] if err.exists() else ""
        job.state = "done" if code == 0 else "stopped" if job.stopping or code in (130, -signal.SIGINT) else "failed"
        self.changed(job)

    def stop(self, number: int) -> None:
        """Interrupt a command, as Ctrl-C does: finished tasks are kept."""
        job = self.all.get(number)
        if job is None:
            raise InputError(f"there is no job {number}")
        job.stopping = True
        if job.process is not None and job.process.pid is not None and job.process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.process.pid, signal.SIGINT)

    async def stop_all(self) -> None:
        """Interrupt all commands, and wait for them to end."""
        for number in self.all:
            self.stop(number)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)
        for job in self.all.values():
            if job.process is not None and job.process.exitcode is None:
                job.process.kill()
