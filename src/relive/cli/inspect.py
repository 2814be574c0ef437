"""``relive inspect``: what is in a model file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from relive._util.errors import InputError, ReliveError
from relive.cli import models
from relive.cli.console import counted, out

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.lessons import Lesson
    from relive.data.readers.samples import Array

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
PICTURE = Annotated[
    Path | None,
    typer.Option(metavar="FILE.png", help="Draw what the model replays, a row per class, if it is pictures."),
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
    """Show what a model has learned and when, how well each class is remembered, and how it was made."""
    from relive.classifier.modelfile import load, versions_of

    path = models.real(model)
    classifier = load(path, allow_code=allow_code)
    if picture is not None:
        _draw(classifier, picture)
    about = _about(classifier, path, versions_of(path))
    if as_json:
        typer.echo(json.dumps(about, indent=1, ensure_ascii=False))
    else:
        _show(classifier, model, about)
        if picture is not None:
            out.print(f"picture   {picture}", markup=False)


def _about(model: ContinualClassifier, path: Path, versions: dict[str, str]) -> dict[str, Any]:
    """Return everything there is to say about a model, as JSON has it."""
    from relive._util.fidelity import Fidelity, name_of
    from relive.classifier.history import kept

    parameters = model.get_params(deep=False)
    if isinstance(parameters["fidelity"], Fidelity):
        parameters["fidelity"] = name_of(parameters["fidelity"])
    return {
        "bytes": path.stat().st_size,
        "parameters": parameters,
        "choice": asdict(model.choice_),
        "holds_data": models.holds_data(model),
        "likelihood": model.features_.likelihood,
        "features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "image": models.image_of(model),
        "tasks": [_task(model, lesson) for lesson in model.lessons_],
        "classes": [asdict(memory) for memory in model.report()],
        "waiting": model.pending_,
        "declared": [label for label in model.classes_.tolist() if label not in model.labels_.tolist()],
        "changes": [asdict(change) for change in model.changes_],
        "versions": versions,
        "kept": [str(version) for version in kept(path)],
    }


def _task(model: ContinualClassifier, lesson: Lesson) -> dict[str, Any]:
    counts = [
        {"label": model.labels_[c].item(), "samples": count}
        for c, count in zip(lesson.classes, lesson.counts, strict=True)
        if count
    ]
    return {
        "name": lesson.name,
        "learned_at": lesson.learned_at,
        "samples": sum(lesson.counts),
        "classes": counts,
        "iterations": lesson.iterations,
        "seconds": lesson.seconds,
        "digest": lesson.digest,
        "tested": [
            {"label": model.labels_[c].item(), "samples": n, "right": right} for c, (n, right) in lesson.tested.items()
        ],
        "gathered": lesson.batches,
    }


def _show(model: ContinualClassifier, path: Path, about: dict[str, Any]) -> None:
    """Print it for people."""
    image = f", pictures of {' × '.join(map(str, about['image']))}" if about["image"] else ""
    out.print(f"model     {path}, {models.size_of(path)}", markup=False)
    method, reason = about["choice"]["method"], about["choice"]["reason"]
    out.print(f"learns    by {method} in scenario {model.scenario}, {about['likelihood']} inputs", markup=False)
    if reason:
        out.print(f"          chosen: {reason}", markup=False)
    out.print(models.data_note(model), markup=False)
    out.print(f"features  {model.n_features_in_}{image}{_names(about['feature_names'])}", markup=False)
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
            out.escape(str(task["name"])) + (f" (+{task['gathered'] - 1})" if task["gathered"] > 1 else ""),
            task["learned_at"].replace("T", " ").removesuffix("+00:00"),
            f"{task['samples']:,}",
            out.escape(", ".join(f"{c['label']} ({c['samples']})" for c in task["classes"])),
            str(task["iterations"] or "closed form"),
            models.duration(task["seconds"]),
            *([_tested(task["tested"])] if some_tested else []),
        )
    out.print()
    out.print(tasks)
    if about["waiting"]:
        out.print(f"waiting   {counted(about['waiting'], 'sample')}, not learned yet", markup=False)
    for change in about["changes"]:
        when = change["changed_at"].replace("T", " ").removesuffix("+00:00")
        to = "" if change["into"] is None else f" {INTO[change['what']]} {change['into']}"
        out.print(f"changed   {when}: {DONE[change['what']]} {', '.join(map(str, change['labels']))}{to}", markup=False)
    models.print_memory(model)
    out.print()
    shown = {name: value for name, value in about["parameters"].items() if value is not None}
    out.print(f"settings  {', '.join(f'{name} {value}' for name, value in shown.items())}", markup=False)
    out.print(f"versions  {', '.join(f'{name} {value}' for name, value in about['versions'].items())}", markup=False)
    if about["kept"]:
        out.print(f"earlier   {', '.join(about['kept'])}", markup=False)


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
        raise InputError("this model has not learned from pictures, or does not know their shape: nothing to draw")
    if picture.suffix != ".png" or not picture.parent.is_dir():
        raise InputError(f"--picture {picture}: give a file in an existing directory that ends with .png")

    from relive._util.files import write_atomic
    from relive.report.figures import to_bytes
    from relive.report.pictures import classes_figure

    replayed = _replayed_by_class(model)
    low, high = 0.0, 1.0
    if model.features_.likelihood == "gaussian":  # of no known range: as wide as the samples are
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
    """Return replayed samples of each class; in Task-IL, as each task would have them named."""
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
