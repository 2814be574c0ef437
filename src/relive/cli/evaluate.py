"""``relive evaluate``: how good a model is on labelled data, and what changed since an earlier version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from relive._util.errors import InputError, ReliveError, unknown
from relive.cli import models
from relive.cli.console import json_text, out
from relive.cli.predict import TASK, TASK_COLUMN, tasks_of_samples

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.evaluation import Change, Evaluation, Share
    from relive.data.readers.samples import Array, Samples

AGAINST = Annotated[
    Path | None, typer.Option(metavar="MODEL", help="Compare with another version, such as MODEL.kept-1.")
]
FORMAT = Annotated[str, typer.Option("--format", help="table or json.")]
PAGE = Annotated[
    Path | None, typer.Option("--page", metavar="FILE.html", help="Also write a page with figures, as one file.")
]
CONFUSIONS = 5  # the most frequent ones are printed

EXAMPLES = """Examples:

relive evaluate flowers.safetensors test.csv

relive evaluate flowers.safetensors test.csv --against flowers.safetensors.kept-1  (what the last task changed)

relive evaluate signs.safetensors photos/ --page signs.html --format json
"""


@dataclass(frozen=True)
class _Asked:
    """A model's predictions for the samples."""

    evaluation: Evaluation
    answers: Array


def command(
    model: models.MODEL,
    data: models.DATA,
    against: AGAINST = None,
    output_format: FORMAT = "table",
    page: PAGE = None,
    task: TASK = None,
    task_column: TASK_COLUMN = None,
    label: models.LABEL = None,
    ignore: models.IGNORE = None,
    x: models.X = None,
    y: models.Y = None,
    allow_code: models.ALLOW_CODE = False,
) -> None:
    """Compare a model's predictions with the labels in DATA: accuracy by class, confusions, calibration."""
    if output_format not in ("table", "json"):
        raise unknown("format", output_format, ("table", "json"))
    if page is not None and (page.suffix != ".html" or not page.parent.is_dir()):
        raise InputError(f"--page {page}: give a file that ends with .html, in an existing directory")

    from relive.classifier.evaluation import changes
    from relive.classifier.modelfile import load

    names = {"label": label, "x": x, "y": y}

    def asked(path: Path) -> tuple[_Asked, Samples]:
        models.check_order(path)
        classifier = load(models.real(path), allow_code=allow_code)
        samples = models.read(
            data,
            classifier,
            needed=True,
            names=names,
            image=models.image_of(classifier),
            task_column=task_column,
            ignored=ignore,
        )
        return _ask(classifier, samples, task), samples

    now, samples = asked(model)
    changed = [] if against is None else changes(_truth(samples), asked(against)[0].answers, now.answers)
    if page is not None:
        _write_page(page, model, data, now.evaluation, changed)
    if output_format == "json":
        more = {"changes": [_change_json(change) for change in changed]} if against is not None else {}
        typer.echo(json_text(now.evaluation.to_json() | more, indent=1))
        return
    _show(now.evaluation, changed)
    if page is not None:
        out.print(f"\npage      {page}")


def _truth(samples: Samples) -> Array:
    assert samples.y is not None
    return samples.y


def _ask(model: ContinualClassifier, samples: Samples, task: str | None) -> _Asked:
    """Get a model's predictions; a folder's name is never a number, and is compared as written."""
    from relive.classifier.evaluation import evaluate
    from relive.classifier.labels import kind_of

    with models.plain_errors():
        probabilities = model.predict_proba(models.as_features(samples), tasks_of_samples(model, samples, task))
    answers, known, truth = model.classes_[probabilities.argmax(1)], model.labels_, _truth(samples)
    if kind_of(known) != kind_of(truth):
        answers, known = answers.astype(truth.dtype.type), known.astype(truth.dtype.type)
    return _Asked(evaluate(truth, answers, probabilities.max(1), known), answers)


def _show(done: Evaluation, changed: list[Change]) -> None:
    """Print the evaluation for people."""
    out.print(f"accuracy     {_percent(done.overall)} ({done.overall.right} of {done.overall.n})")
    out.print(
        f"calibration  mean confidence {100 * done.confidence:.1f} %, expected calibration error "
        f"{done.calibration_error:.3f}"
    )
    if done.unknown:
        out.print(f"never seen   {', '.join(map(str, done.unknown))}: these cannot be predicted correctly")
    out.print()
    out.print(_table(done, {change.label: change for change in changed}))
    frequent = _confusions(done)
    if frequent:
        out.print()
        for truth, said, n in frequent:
            out.print(f"{n} × {truth} mistaken for {said}")
    if changed:
        total = changed[0]
        out.print(
            f"\nchange       {_points(total)} points: {total.gained} answers newly right, {total.lost} newly "
            f"wrong (McNemar's test, p = {total.p:.2g})"
        )


def _table(done: Evaluation, changed: dict[Any, Change]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("class", "samples", "accuracy", "95 % interval", *(("before", "p") if changed else ())):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for label, share in done.by_class.items():
        low, high = share.interval
        row = [str(label), f"{share.n:,}", f"{100 * share.share:.1f} %"]
        row.append(f"{100 * low:.1f} to {100 * high:.1f} %")
        if changed:
            row += [f"{100 * changed[label].before.share:.1f} %", f"{changed[label].p:.2g}"]
        table.add_row(*row)
    return table


def _confusions(done: Evaluation) -> list[tuple[Any, Any, int]]:
    """Return the most frequent mistakes: true label, prediction, count."""
    n = len(done.labels)
    wrong = [(int(done.confusion[i, j]), i, j) for i in range(n) for j in range(n) if i != j and done.confusion[i, j]]
    return [(done.labels[i], done.labels[j], count) for count, i, j in sorted(wrong, reverse=True)[:CONFUSIONS]]


def _percent(share: Share) -> str:
    low, high = share.interval
    return f"{100 * share.share:.2f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f} %"


def _points(change: Change) -> str:
    return f"{100 * (change.after.share - change.before.share):+.2f}"


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "label": change.label,
        "before": change.before.share,
        "after": change.after.share,
        "gained": change.gained,
        "lost": change.lost,
        "p": change.p,
    }


def _write_page(page: Path, model: Path, data: Path, done: Evaluation, changed: list[Change]) -> None:
    from relive._util.files import write_atomic
    from relive.report.evaluation import evaluation_page

    try:
        write_atomic(page, evaluation_page(str(model), str(data), done, changed, _confusions(done)).encode())
    except OSError as error:
        raise ReliveError(f"cannot write {page}: {error.strerror or error}") from error
