"""The newest version of the model in a file: the file is read again whenever it changes, and refused if damaged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from relive._util.errors import ReliveError
from relive.inference.about import about, remembered
from relive.inference.opening import Model, opened

Identity = tuple[int, int, int, int]


@dataclass(frozen=True)
class Version:
    """One version of a model: the model, its description (JSON), and its number."""

    model: Model
    about: bytes
    number: int


class Watched:
    """A model that follows its file.

    Parameters
    ----------
    path
        The file.
    allow_code
        Whether user code that it refers to may run.
    log
        Called about new versions, and about refused ones.

    Raises
    ------
    ReliveError
        If the file is not a valid model: there must be one to start with.
    """

    def __init__(self, path: Path, allow_code: bool, log: Callable[[str], object]) -> None:
        self.path = path
        self.allow_code = allow_code
        self.log = log
        self._identity = identity_of(path)
        self._version = self._read(1)
        self._reading = asyncio.Lock()
        self._begun = 0  # how often reading a new version has started

    async def newest(self) -> Version:
        """Return the file's current model, or the previous one if the file is damaged or gone."""
        begun, identity = self._begun, identity_of(self.path)
        if identity != self._identity:
            async with self._reading:
                if self._begun == begun:  # otherwise it was read again in the meantime, which is new enough
                    self._begun += 1
                    await self._take_up(identity_of(self.path))
        return self._version

    async def _take_up(self, identity: Identity | None) -> None:
        try:
            self._version = await asyncio.to_thread(self._read, self._version.number + 1)
            self.log(f"loaded a new version of {self.path}")
        except (ReliveError, OSError, MemoryError) as error:
            self.log(f"refused the new {self.path}, the previous version stays in service: {error}")
        self._identity = identity  # a refused file is not read again until it changes

    def _read(self, number: int) -> Version:
        header, model = opened(self.path, allow_code=self.allow_code)
        known = about(header, self.path, remembered(header))
        return Version(model, json.dumps(known | {"version": number}).encode(), number)


def identity_of(path: Path) -> Identity | None:
    """Return what distinguishes one version of a file from another; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
