"""Commands without the seconds that importing takes: they are forked from a process that has imported it all."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from relive._util.errors import InputError

LIBRARIES = [  # not the command line's own: what it prints to is decided when that is imported
    "pandas",
    "pydantic.type_adapter",  # typer's
    "typer",
    "rich.live",
    "rich.progress",
    "relive.classifier.history",
    "relive.classifier.modelfile",
    "relive.data.readers.formats",
    "relive.experiments.sweep",
    "relive.inference.opening",
    "relive.report.figures",
    "relive.report.page",
]
NOWHERE = Path(os.devnull)


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class Ready:
    """Runs commands of ``relive`` in processes of their own."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)

    async def warm_up(self) -> None:
        """Start the process that commands are forked from; the first of them would wait for it otherwise."""
        await asyncio.to_thread(_deaf, forkserver.ensure_running)

    async def start(self, words: Sequence[str], folder: Path, out: Path, err: Path) -> BaseProcess:
        """Start a command in a folder, with stdout and stderr in files."""
        process = self._context.Process(target=_be_relive, args=(list(words), folder.resolve(), out, err))
        await asyncio.to_thread(_deaf, process.start)
        return process

    async def do(self, words: Sequence[str], folder: Path, seconds: float = 600.0) -> Answer:
        """Run a command in a folder to its end; a request that is given up ends it."""
        with tempfile.TemporaryDirectory(prefix="relive-studio-") as place:
            out, err = Path(place) / "out", Path(place) / "err"
            process = await self.start(words, folder, out, err)
            try:
                async with asyncio.timeout(seconds):
                    code = await ended(process)
            except TimeoutError:
                raise InputError(f"this took more than {seconds:.0f} s: use the command line for it") from None
            finally:
                process.kill()
                await asyncio.to_thread(process.join)
            return Answer(code, *(path.read_text(errors="replace") if path.exists() else "" for path in (out, err)))


async def ended(process: BaseProcess) -> int:
    """Wait for a process, and return its exit code: the number of a signal that ended it is below 0."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(process.sentinel)
    await asyncio.to_thread(process.join)
    return process.exitcode or 0


def _deaf(start: Callable[[], object]) -> None:
    """Start a process that an interrupt waits for: Ctrl-C is this server's, and a command hears it once it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_relive(words: list[str], folder: Path, out: Path, err: Path) -> None:
    """Do in this process what ``python -m relive`` does; the terminal's Ctrl-C is not for it."""
    os.setsid()
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(folder)
    sys.argv = ["relive", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    runpy.run_module("relive", run_name="__main__")
