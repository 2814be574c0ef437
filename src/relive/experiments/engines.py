"""Where runs are done: each engine is a standard ``concurrent.futures.Executor`` that also tells how runs are going."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

from relive.errors import InputError
from relive.experiments.worker import start_local

P = ParamSpec("P")
T = TypeVar("T")


class Engine(Executor):
    """An executor that knows how many runs it can do at a time, and where they are."""

    writes_store: bool  # whether its workers see the driver's files

    @abstractmethod
    def slots(self) -> int:
        """Return how many runs can be under way now."""

    @abstractmethod
    def progress(self) -> dict[str, tuple[int, int]]:
        """Return the task and iteration of each run that has reported."""


class _Send:
    """Reports through a pipe; it is pickled to a worker process when that starts."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def __call__(self, name: str, task: int, iteration: int) -> None:
        with contextlib.suppress(OSError):  # the driver is gone; the process will notice
            self.pipe.send((name, task, iteration))


class _Worker:
    """One process with a pool and a pipe of its own, so that its death is nobody else's."""

    def __init__(self) -> None:
        self.receiver, sender = multiprocessing.Pipe(duplex=False)
        self.pool = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=start_local, initargs=(_Send(sender),)
        )
        self.sender = sender
        self.future: Future[Any] | None = None

    @property
    def idle(self) -> bool:
        return self.future is None or self.future.done()

    @property
    def broken(self) -> bool:
        return self.idle and self.future is not None and isinstance(_failure(self.future), BrokenProcessPool)


class LocalEngine(Engine):
    """Worker processes on this machine, one torch thread each.

    Parameters
    ----------
    workers
        How many; as many as cores if not given.
    """

    writes_store = True

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers = {workers}: there must be at least 1")
        self._workers = [_Worker() for _ in range(workers or os.cpu_count() or 1)]
        self._progress: dict[str, tuple[int, int]] = {}

    def slots(self) -> int:
        return len(self._workers)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        for i, worker in enumerate(self._workers):
            if worker.idle:
                if worker.broken:  # its process was killed: a new one takes its place
                    worker.pool.shutdown(wait=False)
                    worker = self._workers[i] = _Worker()
                worker.future = worker.pool.submit(fn, *args, **kwargs)
                return worker.future
        raise RuntimeError(f"all {self.slots()} workers are busy: submit no more than slots() runs")

    def progress(self) -> dict[str, tuple[int, int]]:
        for worker in self._workers:
            while worker.receiver.poll():
                name, task, iteration = worker.receiver.recv()
                self._progress[name] = (task, iteration)
        return self._progress

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the worker processes; with ``wait=False`` what they are doing is given up."""
        for worker in self._workers:
            if not wait:
                for process in list((worker.pool._processes or {}).values()):
                    process.terminate()
            worker.pool.shutdown(wait=wait, cancel_futures=cancel_futures)


def _failure(future: Future[Any]) -> BaseException | None:
    return None if future.cancelled() else future.exception()
