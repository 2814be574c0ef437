"""Where runs are executed: each engine is a ``concurrent.futures.Executor`` that also reports progress."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from multiprocessing import resource_tracker
from typing import Any, ParamSpec, TypeVar

from relive._util.errors import InputError, ReliveError
from relive.experiments.spec import RunSpec
from relive.experiments.worker import NOTE, REPORT, RESULT, serve

P = ParamSpec("P")
T = TypeVar("T")

STOP_TIMEOUT = 10.0  # seconds that a worker may take to stop


class WorkerDied(ReliveError):  # noqa: N818
    """A worker process ended in the middle of a run."""


class Engine(Executor):
    """An executor that knows how many runs it can do at a time, and how far they are."""

    shares_files: bool  # whether its workers see the driver's files

    def prepare(self, specs: Sequence[RunSpec], versions: dict[str, str], data_dir: str | None) -> None:
        """Prepare for these runs, or refuse them; a sweep calls it once, before the first run."""

    @abstractmethod
    def slots(self) -> int:
        """Return how many runs can be in progress now."""

    @abstractmethod
    def progress(self) -> dict[str, tuple[int, int]]:
        """Return the last reported task and iteration of each run."""

    def notes(self) -> list[str]:
        """Return events and messages of workers since the last call."""
        return []


def drained(notes: deque[str]) -> list[str]:
    """Remove and return the current entries; another thread may be adding more."""
    return [notes.popleft() for _ in range(len(notes))]


class InProcess(Engine):
    """The sweep's own process: a run is done when it is submitted, and errors are raised immediately."""

    shares_files = True

    def slots(self) -> int:
        return 1

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future

    def progress(self) -> dict[str, tuple[int, int]]:
        return {}


class LocalEngine(Engine):
    """Worker processes on this machine, one torch thread each; a process starts when there is a run for it.

    Parameters
    ----------
    workers
        How many; by default one per core.
    """

    shares_files = True

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers = {workers}: there must be at least 1")
        self._size = workers or _cores()
        self._workers: list[_Worker] = []
        self._notes: deque[str] = deque()

    def slots(self) -> int:
        return self._size

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self._workers = [worker for worker in self._workers if not worker.dead]
        idle = [worker for worker in self._workers if worker.idle]
        if not idle:
            if len(self._workers) >= self._size:
                raise RuntimeError(f"all {self._size} workers are busy: submit no more than slots() runs")
            idle = [_Worker(self._notes.append)]
            self._workers += idle
        return idle[0].do((fn, args, kwargs))

    def progress(self) -> dict[str, tuple[int, int]]:
        reports = [worker.report for worker in self._workers]
        return {name: (task, iteration) for name, task, iteration in filter(None, reports)}

    def notes(self) -> list[str]:
        return drained(self._notes)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the worker processes; with ``wait=False`` their runs are abandoned."""
        for worker in self._workers:
            if not wait:
                worker.process.kill()
        for worker in self._workers:
            worker.stop()
        self._workers = []


class _Worker:
    """A process with its own pipe, so that its death affects no other, and a thread that listens to it."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(theirs, os.getpid()), daemon=True
        )
        self.report: tuple[str, int, int] | None = None
        self.dead = False
        self._future: Future[Any] | None = None
        self._lock = threading.Lock()  # guards dead and _future: no call may start while the process is found dead
        with _interrupts_held():
            self.process.start()
        theirs.close()  # so that the pipe ends when the process does
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def idle(self) -> bool:
        return self._future is None

    def do(self, call: tuple[Any, ...]) -> Future[Any]:
        """Send a call; the process must be idle."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self.dead:
                future.set_exception(self._death())
                return future
            self._future = future
        try:
            self.pipe.send(call)
        except OSError:
            pass  # it has just died: the listener reports it
        except Exception:  # a call that cannot be sent
            self._future = None
            raise
        return future

    def stop(self) -> None:
        """Let the process finish its call, if it is alive, and stop it."""
        future = self._future
        if future is not None:
            wait([future])
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self._listener.join(STOP_TIMEOUT)
        self.process.kill()
        self._listener.join()
        self.pipe.close()

    def _listen(self) -> None:
        """Pass on the process's messages until it ends."""
        failure: BaseException | None = None
        try:
            while True:
                kind, value = self.pipe.recv()
                if kind == REPORT:
                    self.report = value
                elif kind == NOTE:
                    self.note(value)
                else:
                    self._finish(value if kind == RESULT else None, None if kind == RESULT else value)
        except (EOFError, OSError):
            pass
        except Exception as error:  # an answer that cannot be read here
            failure = error
            self.process.kill()
        self.process.join()
        with self._lock:
            self.dead = True
        if self._future is not None:
            self._finish(None, failure or self._death())

    def _finish(self, value: Any, error: BaseException | None) -> None:
        """Complete the call; the process is idle before the driver learns of it."""
        future, self._future, self.report = self._future, None, None
        assert future is not None
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def _death(self) -> WorkerDied:
        code = self.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return WorkerDied(f"worker process {self.process.pid} {how} in the middle of a run")


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; a process started meanwhile never gets it, since the driver handles it."""
    resource_tracker.ensure_running()  # starting it later would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
