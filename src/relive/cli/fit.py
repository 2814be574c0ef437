"""``relive fit``: a model file that learns the user's own data, task after task."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relive._util.errors import InputError
from relive.cli import models
from relive.cli.console import counted, err, out
from relive.cli.fit_checks import (
    check_ignored,
    check_name,
    check_new,
    check_place,
    check_same,
    picture_shape,
    say_what_changes,
    shape_from,
    warn_of_far_values,
    warn_of_forgetting,
    warn_of_ids,
    warn_of_similar_labels,
    warn_of_small_classes,
)
from relive.cli.run import installed, number, pairs
from relive.networks.catalogue import ENCODERS

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier
    from relive.data.readers.samples import Samples

TASK = Annotated[str | None, typer.Option(metavar="NAME", help="A name for the task.", show_default="its number")]
SIZE = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Height and width that images are resized to.", show_default="as before, or 28"),
]
COLOUR = Annotated[
    bool | None, typer.Option("--colour/--grey", help="Whether images keep their colours.", show_default="grey")
]
AGAIN = Annotated[bool, typer.Option("--again", help="Learn data even if they were learned before.")]
THREADS = Annotated[int, typer.Option(min=1, help="Threads per matrix product.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
TESTED, LARGE = 0.1, 200  # this share is held out from tasks with at least this many samples
NEW = "Options of a new model"
LEARNING = "Training options, remembered for later tasks"
# what may change from task to task
CHANGEABLE = (
    *("iterations", "learning_rate", "batch_size", "early_stopping", "consolidate_every"),
    *("n_jobs", "allow_stored_data", "holdout"),
)
METHOD = Annotated[
    str | None,
    typer.Option(
        help="One of those that `relive methods` lists, or your own, my_file.py:MyMethod.",
        show_default="auto: chosen for you",
        rich_help_panel=NEW,
    ),
]
ALLOW_STORED_DATA = Annotated[
    bool,
    typer.Option("--allow-stored-data", help="Allow the method to store real samples in MODEL.", rich_help_panel=NEW),
]
FORGETTABLE = Annotated[
    bool,
    typer.Option(
        "--forgettable",
        help="Keep sums per class, so that `relive forget` erases a class completely.",
        rich_help_panel=NEW,
    ),
]
ENCODER = Annotated[
    str | None,
    typer.Option(
        help=f"The encoder: mlp, conv (for images){installed(ENCODERS)}, or your own, my_file.py:make.",
        show_default="the method's own",
        rich_help_panel=NEW,
    ),
]
SHAPE = Annotated[
    str | None,
    typer.Option(
        metavar="HxW",
        help="The shape of a sample: 28x28, 32x32x3.",
        show_default="that of images, else a row",
        rich_help_panel=NEW,
    ),
]
SCENARIO = Annotated[
    str | None,
    typer.Option(help="The scenario: class, task or domain.", show_default="class", rich_help_panel=NEW),
]
SETTINGS = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the method, e.g. c=0.1. Repeatable.",
        rich_help_panel=NEW,
    ),
]
ITERATIONS = Annotated[
    int | None,
    typer.Option(help="Steps per task.", show_default="20 passes over its data, 500 to 5000", rich_help_panel=LEARNING),
]
HIDDEN = Annotated[
    int | None, typer.Option(help="Units in each of the two hidden layers.", show_default="400", rich_help_panel=NEW)
]
LATENT = Annotated[
    int | None, typer.Option(help="Latent variables of the generator.", show_default="100", rich_help_panel=NEW)
]
LEARNING_RATE = Annotated[float | None, typer.Option(help="Of Adam.", show_default="0.001", rich_help_panel=LEARNING)]
BATCH_SIZE = Annotated[int | None, typer.Option(help="Samples per step.", show_default="128", rich_help_panel=LEARNING)]
LIKELIHOOD = Annotated[
    str | None,
    typer.Option(
        help="bernoulli (bytes, numbers in [0, 1]), gaussian (any other numbers) or auto.",
        show_default="auto",
        rich_help_panel=NEW,
    ),
]
FIDELITY = Annotated[
    str | None,
    typer.Option(
        help="as_written (the paper's equations) or as_run (its code).", show_default="as_written", rich_help_panel=NEW
    ),
]
EARLY = Annotated[
    bool | None,
    typer.Option(
        "--early-stopping/--no-early-stopping",
        help="Stop when the accuracy on a held-out part stops improving.",
        show_default="no",
        rich_help_panel=LEARNING,
    ),
]
HOLDOUT = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.9,
        help="The share of each class to hold out for testing; 0 for none.",
        show_default="0.1 for tasks of 200 samples or more",
        rich_help_panel=LEARNING,
    ),
]
EVERY = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Networks: collect samples in MODEL until there are N, then learn them as one task; needs "
        "--allow-stored-data.",
        show_default="learn at once",
        rich_help_panel=LEARNING,
    ),
]
SEED = Annotated[int | None, typer.Option(help="The random seed.", show_default="0", rich_help_panel=NEW)]

EXAMPLES = """Examples:

relive fit flowers.safetensors spring.csv --label species  (a new model)

relive fit flowers.safetensors summer.csv --keep 3  (the next task; keeps three earlier versions)

relive fit faces.safetensors faces.npz --forgettable  (relive forget can then erase a class completely)

relive fit flowers.safetensors autumn.csv --holdout 0.2  (tests on a fifth instead of learning it; --holdout 0 for none)

relive fit signs.safetensors photos/ --size 32 --colour  (photos/stop/1.jpg, photos/yield/7.jpg, …)

relive fit digits.safetensors digits.npz --encoder conv  (convolutions; --shape 28x28 if the samples are rows)
"""


def command(
    model: models.MODEL,
    data: models.DATA,
    task: TASK = None,
    label: models.LABEL = None,
    ignore: models.IGNORE = None,
    x: models.X = None,
    y: models.Y = None,
    size: SIZE = None,
    colour: COLOUR = None,
    again: AGAIN = False,
    keep: models.KEEP = None,
    threads: THREADS = 1,
    quiet: QUIET = False,
    allow_code: models.ALLOW_CODE = False,
    method: METHOD = None,
    scenario: SCENARIO = None,
    settings: SETTINGS = None,
    allow_stored_data: ALLOW_STORED_DATA = False,
    forgettable: FORGETTABLE = False,
    encoder: ENCODER = None,
    shape: SHAPE = None,
    iterations: ITERATIONS = None,
    hidden: HIDDEN = None,
    latent: LATENT = None,
    learning_rate: LEARNING_RATE = None,
    batch_size: BATCH_SIZE = None,
    likelihood: LIKELIHOOD = None,
    fidelity: FIDELITY = None,
    early_stopping: EARLY = None,
    holdout: HOLDOUT = None,
    consolidate_every: EVERY = None,
    seed: SEED = None,
) -> None:
    """Teach a model one more task from your own data; MODEL is created if it does not exist.

    No samples are stored in MODEL unless --allow-stored-data lets a method store some. MODEL is always intact: either
    unchanged, or with the new task.
    """
    path = models.real(model)
    before = _identity(path)
    given = {
        "method": method,
        "scenario": scenario,
        "settings": {name: number(name, value) for name, value in pairs("--set", settings).items()} or None,
        "allow_stored_data": allow_stored_data or None,
        "forgettable": forgettable or None,
        "encoder": encoder,
        "shape": shape_from(shape) if shape is not None else None,
        "iterations": iterations,
        "hidden": hidden,
        "latent": latent,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "likelihood": likelihood,
        "fidelity": fidelity,
        "early_stopping": early_stopping,
        "holdout": holdout,
        "consolidate_every": consolidate_every,
        "random_state": seed,
        "n_jobs": threads,
    }
    try:
        learned = _fit(
            path,
            data,
            task,
            given={name: value for name, value in given.items() if value is not None},
            names={"label": label, "x": x, "y": y},
            ignored=ignore,
            size=size,
            colour=colour,
            again=again,
            keep=keep,
            quiet=quiet,
            allow_code=allow_code,
        )
    except KeyboardInterrupt:
        if _identity(path) != before:
            err.print(f"stopped, but the task was already learned and saved in {model}.")
        elif before is None:
            err.print("stopped. Nothing was stored.")
        else:
            err.print(f"stopped. {model} is unchanged.")
        raise typer.Exit(130) from None
    _show(learned, model)


def _fit(
    path: Path,
    data: Path,
    task: str | None,
    *,
    given: dict[str, Any],
    names: dict[str, str | None],
    ignored: list[str] | None,
    size: int | None,
    colour: bool | None,
    again: bool,
    keep: int | None,
    quiet: bool,
    allow_code: bool,
) -> ContinualClassifier:
    """Load or create the model, let it learn the data, and store it."""
    check_place(path)
    if (size is not None or colour is not None) and not data.is_dir():
        raise InputError(f"--size, --colour and --grey are for folders of images, but {data} is not a folder")

    from relive._util.threads import check_threads
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.history import locked, tidy
    from relive.classifier.modelfile import load

    check_threads(given["n_jobs"])
    with locked(path):
        tidy(path)
        old = load(path, allow_code=allow_code) if path.exists() else None
        if old is not None:
            check_same(old, {name: value for name, value in given.items() if name not in CHANGEABLE}, path)
            old.set_params(**{name: value for name, value in given.items() if name in CHANGEABLE})
        image = picture_shape(old, size, colour, path) if data.is_dir() else None
        if image is not None and not quiet:
            say_what_changes(data, image, new=old is None)
        check_ignored(ignored, data)
        samples = models.read(data, old, needed=True, names=names, image=image, ignored=ignored)
        if old is None:
            warn_of_ids(samples, data)
            warn_of_far_values(samples, data)
        else:
            warn_of_similar_labels(old, samples)
        if old is not None:
            check_name(old, task)
        if old is not None and not again:
            check_new(old, samples, data, path)
        if samples.image is not None:
            given.setdefault("shape", samples.image)
        model = ContinualClassifier(**given) if old is None else old
        said = given.get("holdout", models.fit_notes(old).get("holdout"))
        model.set_params(holdout=said if isinstance(said, float) else TESTED * (len(samples.x) >= LARGE))
        _learn(model, samples, task, quiet)
        if isinstance(said, float):
            model.notes_[models.NOTES] = models.fit_notes(model) | {"holdout": said}
        models.record(model, samples, names, ignored, keep, first=old is None)
        models.store(model, path)
    return model


def _learn(model: ContinualClassifier, samples: Samples, task: str | None, quiet: bool) -> None:
    """Let the model learn, showing its progress."""
    progress = Progress(
        TextColumn("learning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=err,
        disable=quiet or not err.is_terminal,
        transient=True,
    )
    bar = progress.add_task("", total=None, loss=float("nan"))

    def stepped(iteration: int, iterations: int, loss: float) -> None:
        progress.update(bar, completed=iteration, total=iterations, loss=loss)

    with progress, models.plain_errors():
        model.partial_fit(models.as_features(samples), samples.y, task, on_step=stepped)
        if (
            not model.__sklearn_is_fitted__()
        ):  # the first data are learned at once: otherwise there is no model to store
            model.consolidate()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one that replaces it at the same path."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _show(model: ContinualClassifier, path: Path) -> None:
    """Print what was learned, and how well everything is remembered."""
    if model.pending_:
        out.print(f"waiting   {counted(model.pending_, 'sample')} of {model.consolidate_every}")
        out.print(f"model     {path}, {models.size_of(path)}: {models.known(model)}")
        out.print(models.DATA_NOTE)
        return
    lesson = model.lessons_[-1]
    counts = [f"{model.labels_[c]} ({count})" for c, count in zip(lesson.classes, lesson.counts, strict=True) if count]
    how = models.learned_how(lesson.iterations)
    if model.n_tasks_ == 1 and model.choice_.reason:
        out.print(f"method    {model.choice_.method}, chosen: {model.choice_.reason}")
    out.print(f"learned   task {lesson.name} in {models.duration(lesson.seconds)}, {how}")
    out.print(f"classes   {', '.join(counts)}")
    n, right = lesson.test
    if n:
        out.print(f"tested    {100 * right / n:.1f} % on {counted(n, 'held-out sample')}")
    out.print(f"model     {path}, {models.size_of(path)}: {models.known(model)}")
    if models.holds_data(model):
        out.print(models.DATA_NOTE)
    memories = model.report()
    models.print_memory(memories, model.lessons_)
    warn_of_forgetting(memories)
    warn_of_small_classes(model)
