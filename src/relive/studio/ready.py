"""Short commands without the seconds that importing takes: they are forked from a process that has imported it all."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relive._util.errors import InputError

LIBRARIES = [
    "pandas",
    "typer",
    "rich.live",
    "rich.progress",
    "relive.classifier.modelfile",
    "relive.data.readers.formats",
]
LOOK_EVERY = 0.02  # seconds


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class Ready:
    """Runs commands of ``relive``; the process that they are forked from starts with the first of them."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)

    async def do(self, words: Sequence[str], folder: Path, seconds: float = 600.0) -> Answer:
        """Run a command in a folder to its end; a request that is given up ends it."""
        with tempfile.TemporaryDirectory(prefix="relive-studio-") as place:
            said = Path(place) / "out", Path(place) / "err"
            process = self._context.Process(target=_be_relive, args=(list(words), folder.resolve(), *said), daemon=True)
            await asyncio.to_thread(process.start)
            try:
                async with asyncio.timeout(seconds):
                    while process.is_alive():
                        await asyncio.sleep(LOOK_EVERY)
            except TimeoutError:
                raise InputError(f"this took more than {seconds:.0f} s: use the command line for it") from None
            finally:
                process.kill()
                await asyncio.to_thread(process.join)
            texts = [path.read_text(errors="replace") if path.exists() else "" for path in said]
        return Answer(process.exitcode or 0, *texts)


def _be_relive(words: list[str], folder: Path, out: Path, err: Path) -> None:
    """Do in this process what ``python -m relive`` does, with stdout and stderr in files."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(folder)
    sys.argv = ["relive", *words]
    runpy.run_module("relive", run_name="__main__")
