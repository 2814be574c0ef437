"""What the commands on model files share (fit, predict, inspect): options, reading data, wording."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from relive._util.errors import InputError, ReliveError
from relive.cli.console import counted, note, out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.lessons import Lesson
    from relive.classifier.selfreport import Memory
    from relive.data.readers.samples import Samples
    from relive.inference.opening import Model

MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file, *.safetensors.")]
DATA = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv, .parquet or .npz file, or a folder of images.")]
LABEL = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The label column of a table.", show_default="as before, or label"),
]
IGNORE = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of a table to leave out, such as an id. Repeatable.",
        show_default="as before",
    ),
]
X = Annotated[
    str | None, typer.Option("--x", metavar="NAME", help="The array of samples in NPZ.", show_default="as before, or X")
]
Y = Annotated[
    str | None, typer.Option("--y", metavar="NAME", help="The array of labels in NPZ.", show_default="as before, or y")
]
ALLOW_CODE = Annotated[
    bool,
    typer.Option(
        "--allow-code", help="Run the code that MODEL refers to, my_file.py:MyMethod: only if you trust MODEL."
    ),
]
KEEP = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Keep the last N versions of MODEL next to it.", show_default="as before"),
]
TABLES = (".csv", ".csv.gz", ".parquet", ".pq", ".npz")
DEFAULTS = {"label": "label", "x": "X", "y": "y"}
DATA_NOTE = "data      REAL SAMPLES are in this file: its method stores them, or they are waiting to be learned"
NOTES = "fit"  # key of the model's notes on reading data and keeping versions


def answering(path: Path, *, allow_code: bool) -> Model:
    """Return the model in a file for prediction, if possible without torch, which takes seconds to import."""
    from relive.inference.opening import opened

    check_order(path)
    return opened(path, allow_code=allow_code)[1]


def check_order(path: Path) -> None:
    """Refuse data in place of a model."""
    if path.name.lower().endswith(TABLES) or path.is_dir():
        raise InputError(f"{path} is not a model but data: give the model first, then the data")


def real(path: Path) -> Path:
    """Return the file that a link points to, so that this one is locked and replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def fit_notes(model: Model | None) -> dict[str, Any]:
    """Return the notes of ``relive fit`` in the model; empty if another program created it."""
    notes = model.notes_.get(NOTES) if model is not None else None
    return dict(notes) if isinstance(notes, dict) else {}


def record(
    model: ContinualClassifier,
    samples: Samples,
    names: dict[str, str | None],
    ignored: list[str] | None,
    keep: int | None,
    first: bool,
) -> None:
    """Record in the model how its data are read, which the first task decides, and how many versions to keep."""
    notes = fit_notes(model)
    if ignored:
        notes["ignore"] = ignored_by(model, ignored)
    if first:
        notes |= {key: value for key, value in names.items() if value is not None}
        if samples.image is not None:
            model.notes_["image"] = list(samples.image)
    if keep is not None:
        notes["keep"] = keep
    if notes:
        model.notes_[NOTES] = notes


def store(model: ContinualClassifier, path: Path) -> None:
    """Write a model to its file, keeping the requested number of earlier versions. The caller must hold the lock."""
    from relive.classifier.history import keeping

    n = fit_notes(model).get("keep")
    if isinstance(n, int) and n >= 0:
        with keeping(path, n):
            model.save(path)
    else:
        model.save(path)


def holds_data(model: Model) -> bool:
    """Return whether a model contains real samples of earlier tasks."""
    from relive.methods import method_facts

    return method_facts(model.choice_.method).keeps_data or model.pending_ > 0


def data_note(method: str, holds_data: bool) -> str:
    """Return a line on whether a model file contains real samples."""
    from relive.methods import is_shipped

    if holds_data:
        return DATA_NOTE
    if is_shipped(method):
        return "data      no samples are stored in this file"
    return "data      the method declares that it stores no samples; it is not one of relive's own"


def image_of(model: Model | None) -> tuple[int, ...] | None:
    """Return the shape of the images that the model learned from, None if there were none."""
    from relive.inference.about import image_in

    return None if model is None else image_in(model.notes_, model.n_features_in_)


def read(
    path: Path,
    model: Model | None,
    *,
    needed: bool,
    names: dict[str, str | None],
    image: tuple[int, ...] | None = None,
    task_column: str | None = None,
    ignored: Sequence[str] | None = None,
) -> Samples:
    """Read data, by default as for the model's first task, and refuse data that do not fit it.

    Parameters
    ----------
    path
        The file or folder.
    model
        None if it does not exist yet.
    needed
        Whether there must be labels.
    names
        The options --label, --x and --y.
    image
        The shape of images in a folder.
    task_column
        The column with each sample's task.
    ignored
        Columns of a table to leave out, besides those left out before.
    """
    from relive.data.readers.formats import read_any
    from relive.data.readers.samples import arranged

    notes = fit_notes(model)
    chosen = {key: value or str(notes.get(key, DEFAULTS[key])) for key, value in names.items()}
    needed = needed or bool(names["y"] if path.suffix.lower() == ".npz" else names["label"])
    if model is not None and path.is_dir() and image is None:
        raise InputError(f"{path} is a folder, but this model was not trained on images: give it a table")
    text = model is not None and model.labels_.dtype.kind == "U"  # then 7 and 007 are strings
    samples = read_any(
        path,
        needed=needed,
        image=image or (28, 28),
        task_column=task_column,
        text_labels=text,
        ignored=ignored_by(model, ignored),
        **chosen,
    )
    if model is None:
        return samples
    known = getattr(model, "feature_names_in_", None)
    if known is None and samples.names is not None:
        note(f"this model knows no column names: the columns of {path} are matched by position")
    ordered = samples if known is None else arranged(samples, known.tolist(), str(path))
    if ordered is not samples:
        note(f"{path} has its columns in another order than this model: they are matched by name")
    _check(ordered, model, path)
    return ordered


def ignored_by(model: Model | None, given: Sequence[str] | None) -> list[str]:
    """Return the columns to leave out: those given, and those that were left out before."""
    before = fit_notes(model).get("ignore", [])
    return list(dict.fromkeys([*(given or []), *(map(str, before) if isinstance(before, list) else [])]))


def _check(samples: Samples, model: Model, path: Path) -> None:
    """Refuse features that do not match the model's."""
    if samples.x.shape[1] != model.n_features_in_:
        raise InputError(
            f"{path} has {samples.x.shape[1]} features, but this model was trained on {model.n_features_in_}"
        )
    image = image_of(model)
    if samples.image is not None and image is not None and samples.image != image:
        raise InputError(f"{path} has images of {_shape(samples.image)}, but this model's are {_shape(image)}")
    try:
        model.features_.check(samples.x)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _shape(image: tuple[int, ...]) -> str:
    return f"{image[0]} × {image[1]} pixels" + (" in colour" if len(image) == 3 else "")


def as_features(samples: Samples) -> Any:
    """Return the features as scikit-learn's estimators take them, with their names if they have any."""
    if samples.names is None:
        return samples.x
    from pandas import DataFrame

    return DataFrame(samples.x, columns=list(samples.names), copy=False)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn scikit-learn's errors into user errors, and hide its warning about missing feature names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        try:
            yield
        except ReliveError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error


def print_memory(memories: Sequence[Memory], lessons: Sequence[Lesson]) -> None:
    """Print how well each class is remembered, and a legend for the columns."""
    known = [name for name in LEGEND if any(getattr(memory, name) is not None for memory in memories)]
    out.print()
    out.print(_memory_table(memories, known))
    exact = not any(lesson.iterations for lesson in lessons)
    legend = "; ".join(LEGEND[name] for name in known) or ("" if exact else UNKNOWN)
    out.print("\n" + "\n".join(filter(None, [legend, EXACT if exact else ""])), style="dim")


def _memory_table(memories: Sequence[Memory], known: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("class", "samples", "tasks", *known):
        table.add_column(heading, justify="left" if heading in ("class", "tasks") else "right")
    for memory in memories:
        shares = [getattr(memory, name) for name in known]
        table.add_row(
            str(memory.label),
            f"{memory.n_samples:,}",
            ", ".join(map(str, memory.tasks)),
            *map(_percent, shares),
        )
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


LEGEND = {
    "tested": "tested: accuracy on held-out samples when it was learned",
    "kept": "kept: estimated share of what was recognised then",
    "replayed": "replayed: its share of what is replayed",
}
EXACT = "closed form: every class is known as well as if all data had been kept and learned at once"
UNKNOWN = "without data there is no telling how well each class is remembered: use relive evaluate"


def learned_how(iterations: int) -> str:
    """Return how a task was learned.

    >>> learned_how(500), learned_how(0)
    ('500 iterations', 'in closed form')
    """
    return f"{iterations} iterations" if iterations else "in closed form"


def known(model: ContinualClassifier) -> str:
    """Return how much a model has learned."""
    return f"{counted(model.n_tasks_, 'task')}, {counted(len(model.classes_), 'class')}"


def size_of(path: Path) -> str:
    """Return a file's size in a few words."""
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def duration(seconds: float) -> str:
    """Return a time in a few words.

    >>> duration(0.51), duration(75), duration(4000)
    ('0.5 s', '1 min 15 s', '1 h 06 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
