"""``relive inspect``: what is in a model file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from relive._util.errors import InputError, ReliveError
from relive.cli import models
from relive.cli.console import counted, json_text, out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.modelheader import Header
    from relive.classifier.selfreport import Memory
    from relive.data.readers.samples import Array

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
PICTURE = Annotated[
    Path | None,
    typer.Option(metavar="FILE.png", help="Draw what the model replays, one row per class, if it learned images."),
]
DONE = {"forget": "forgot", "rename": "renamed", "merge": "merged"}
INTO = {"rename": "to", "merge": "into"}
REPLAYED, SHOWN = 1000, 20  # samples generated for a picture, and how many of each class are shown

EXAMPLES = """Examples:

relive inspect flowers.safetensors

relive inspect flowers.safetensors --json | jq .classes

relive inspect signs.safetensors --picture replay.png
"""


def command(
    model: models.MODEL, as_json: JSON = False, picture: PICTURE = None, allow_code: models.ALLOW_CODE = False
) -> None:
    """Show what a model has learned and when, how well it remembers each class, and how it was created."""
    from relive.inference.about import about

    path = models.real(model)
    header, memories = _remembered(path, allow_code)
    if picture is not None:
        from relive.classifier.modelfile import load

        _draw(load(path, allow_code=allow_code), picture)
    known = about(header, path, memories)
    if as_json:
        typer.echo(json_text(known, indent=1))
    else:
        _show(model, known)
        models.print_memory(memories, header.bookkeeping.lessons)
        _show_rest(known)
        if picture is not None:
            out.print(f"picture   {picture}")


def _remembered(path: Path, allow_code: bool) -> tuple[Header, Sequence[Memory]]:
    """Return a model's header and the memory of each class; torch is needed only if the file lacks the latter."""
    from relive.classifier.modelheader import described
    from relive.inference.about import remembered
    from relive.inference.predictor import NeedsTorchError, checked

    header, arrays = described(path, allow_code=allow_code)
    if header.replayed is None:
        from relive.classifier.modelfile import load

        return header, load(path, allow_code=allow_code).report()
    with suppress(NeedsTorchError):
        checked(path, header, arrays)
    return header, remembered(header)


def _show(path: Path, about: dict[str, Any]) -> None:
    """Print what was learned."""
    image = f", images of {' × '.join(map(str, about['image']))}" if about["image"] else ""
    out.print(f"model     {path}, {models.size_of(path)}")
    method, reason = about["choice"]["method"], about["choice"]["reason"]
    out.print(f"method    {method}, scenario {about['parameters']['scenario']}, {about['likelihood']} inputs")
    if reason:
        out.print(f"          chosen: {reason}")
    out.print(models.data_note(method, about["holds_data"]))
    out.print(f"features  {about['features']}{image}{_names(about['feature_names'])}")
    tasks = Table(box=None, pad_edge=False, header_style="bold")
    some_tested = any(task["tested"] for task in about["tasks"])
    headings = ["task", "learned at (UTC)", "samples", "classes", "iterations", "time"]
    for heading in [*headings, "tested"] if some_tested else headings:
        tasks.add_column(
            heading,
            justify="right" if heading in ("samples", "iterations", "time", "tested") else "left",
            no_wrap=heading != "classes",
        )
    for task in about["tasks"]:
        tasks.add_row(
            str(task["name"]) + (f" (+{task['gathered'] - 1})" if task["gathered"] > 1 else ""),
            task["learned_at"].replace("T", " ").removesuffix("+00:00"),
            f"{task['samples']:,}",
            ", ".join(f"{c['label']} ({c['samples']})" for c in task["classes"]),
            str(task["iterations"] or "closed form"),
            models.duration(task["seconds"]),
            *([_tested(task["tested"])] if some_tested else []),
        )
    out.print()
    out.print(tasks)
    if about["waiting"]:
        out.print(f"waiting   {counted(about['waiting'], 'sample')}, not learned yet")
    for change in about["changes"]:
        when = change["changed_at"].replace("T", " ").removesuffix("+00:00")
        to = "" if change["into"] is None else f" {INTO[change['what']]} {change['into']}"
        out.print(f"changed   {when}: {DONE[change['what']]} {', '.join(map(str, change['labels']))}{to}")


def _show_rest(about: dict[str, Any]) -> None:
    """Print how the model was created."""
    out.print()
    shown = {name: value for name, value in about["parameters"].items() if value is not None}
    out.print(f"settings  {', '.join(f'{name} {value}' for name, value in shown.items())}")
    out.print(f"versions  {', '.join(f'{name} {value}' for name, value in about['versions'].items())}")
    if about["kept"]:
        out.print(f"earlier   {', '.join(about['kept'])}")


def _tested(by_class: list[dict[str, Any]]) -> str:
    n, right = (sum(c[key] for c in by_class) for key in ("samples", "right"))
    return f"{100 * right / n:.1f} % of {n}" if n else "–"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f": {', '.join(names[:8])}{more}" if names else ""


def _draw(model: ContinualClassifier, picture: Path) -> None:
    """Draw what the model replays for each class."""
    image = models.image_of(model)
    if image is None:
        raise InputError("this model was not trained on images, or their shape is not known: nothing to draw")
    if picture.suffix != ".png" or not picture.parent.is_dir():
        raise InputError(f"--picture {picture}: give a file that ends with .png, in an existing directory")

    from relive._util.files import write_atomic
    from relive.report.figures import to_bytes
    from relive.report.pictures import classes_figure

    replayed = _replayed_by_class(model)
    low, high = 0.0, 1.0
    if model.features_.likelihood == "gaussian":  # unknown range: use that of the samples
        low = min(float(samples.min()) for _, samples in replayed if len(samples))
        high = max(float(samples.max()) for _, samples in replayed if len(samples))
    rows = [
        (label, ((samples[:SHOWN] - low) / (high - low) * 255).round().astype("uint8").reshape(-1, *image))
        for label, samples in replayed
    ]
    try:
        write_atomic(picture, to_bytes(classes_figure(rows, SHOWN), "png"))
    except OSError as error:
        raise ReliveError(f"cannot write {picture}: {error.strerror or error}") from error


def _replayed_by_class(model: ContinualClassifier) -> list[tuple[str, Array]]:
    """Return replayed samples of each class; in Task-IL, with the labels that each task would give them."""
    from relive.core.scenarios import SCENARIOS

    if not SCENARIOS[model.scenario].needs_task:
        samples, labels = model.replay(REPLAYED)
        return [(str(label), samples[labels == label]) for label in model.labels_.tolist()]
    rows = []
    for lesson in model.lessons_:
        samples, labels = model.replay(REPLAYED, task=lesson.name)
        own_labels = model.labels_[list(lesson.classes)].tolist()
        rows += [(f"{lesson.name}: {label}", samples[labels == label]) for label in own_labels]
    return rows
