"""Commands that start at once: they are forked from a process that has already imported everything."""

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

LIBRARIES = [  # not relive.cli: it decides where to print when it is imported
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
    """A command's exit code, stdout and stderr."""

    code: int
    out: str
    err: str


class Ready:
    """Runs each ``relive`` command in its own process."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)

    async def warm_up(self) -> None:
        """Start the process that commands are forked from, so that the first of them need not wait for it."""
        await asyncio.to_thread(_deaf, forkserver.ensure_running)

    async def start(self, words: Sequence[str], folder: Path, out: Path, err: Path) -> BaseProcess:
        """Start a command in a folder, with stdout and stderr in files."""
        process = self._context.Process(target=_be_relive, args=(list(words), folder.resolve(), out, err))
        await asyncio.to_thread(_deaf, process.start)
        return process

    async def do(self, words: Sequence[str], folder: Path, seconds: float = 600.0) -> Answer:
        """Run a command in a folder to its end; a cancelled request kills it."""
        with tempfile.TemporaryDirectory(prefix="relive-studio-") as place:
            out, err = Path(place) / "out", Path(place) / "err"
            process = await self.start(words, folder, out, err)
            try:
                async with asyncio.timeout(seconds):
                    code = await ended(process)
            except TimeoutError:
                raise InputError(f"this took more than {seconds:.0f} s: use the command line instead") from None
            finally:
                process.kill()
                await asyncio.to_thread(process.join)
            return Answer(code, *(path.read_text(errors="replace") if path.exists() else "" for path in (out, err)))


async def ended(process: BaseProcess) -> int:
    """Wait for a process, and return its exit code: minus the signal's number if a signal ended it."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(process.sentinel)
    await asyncio.to_thread(process.join)
    return process.exitcode or 0


def _deaf(start: Callable[[], object]) -> None:
    """Start a process with SIGINT blocked: Ctrl-C is for this server, and a command unblocks it once it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_relive(words: list[str], folder: Path, out: Path, err: Path) -> None:
    """Do in this process what ``python -m relive`` does, in a session that the terminal's Ctrl-C does not reach."""
    os.setsid()
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(folder)
    sys.argv = ["relive", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    runpy.run_module("relive", run_name="__main__")
