"""``relive predict``: a model's predictions on the user's own data."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relive._util.console import shown
from relive._util.errors import InputError, ReliveError, unknown
from relive._util.files import write_atomic
from relive.cli import models
from relive.cli.console import err, json_text, note

if TYPE_CHECKING:
    from relive.data.readers.samples import Array, Samples
    from relive.inference.opening import Model

OUTPUT = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, .csv or .json.", show_default="stdout"),
]
FORMAT = Annotated[str | None, typer.Option("--format", help="csv or json.", show_default="by FILE's name, else csv")]
TASK = Annotated[str | None, typer.Option(metavar="NAME", help="In Task-IL: the task whose classes to choose from.")]
TASK_COLUMN = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="In Task-IL: the column, or NPZ array, with each sample's task.")
]
REJECT = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Answer unknown for unusual samples; about SHARE (5%, 0.05) of ordinary ones are refused too.",
        show_default="always predict a class",
    ),
]
PROBA = Annotated[bool, typer.Option("--proba", help="Also write the probability of every class.")]
FORMATS = ("csv", "json")
FEW_SCORES = 100  # held-out scores below which a share of 5 % is uncertain by about as much
FORMULA = ("=", "+", "-", "@")  # how a formula starts in a spreadsheet

EXAMPLES = """Examples:

relive predict flowers.safetensors new.csv

relive predict flowers.safetensors new.csv --proba --output answers.csv

relive predict flowers.safetensors new.csv --reject 5%  (answers unknown for unusual samples)

relive predict signs.safetensors photos/ --format json
"""


def command(
    model: models.MODEL,
    data: models.DATA,
    output: OUTPUT = None,
    output_format: FORMAT = None,
    task: TASK = None,
    task_column: TASK_COLUMN = None,
    proba: PROBA = False,
    reject: REJECT = None,
    label: models.LABEL = None,
    ignore: models.IGNORE = None,
    x: models.X = None,
    y: models.Y = None,
    allow_code: models.ALLOW_CODE = False,
) -> None:
    """Print the class of every sample, in the order of DATA. If DATA has labels, the accuracy goes to stderr."""
    from relive.classifier.labels import spoken

    output_format = _format(output, output_format)
    if output is not None:
        _check_output(output, model, data)
    if task is not None and task_column is not None:
        raise InputError("give either --task or --task-column, not both")
    share = None if reject is None else share_from(reject)
    classifier = models.answering(models.real(model), allow_code=allow_code)
    samples = models.read(
        data,
        classifier,
        needed=False,
        names={"label": label, "x": x, "y": y},
        image=models.image_of(classifier),
        task_column=task_column,
        ignored=ignore,
    )
    with models.plain_errors():
        probabilities, refused = classifier.judged(samples.x, tasks_of_samples(classifier, samples, task), share)
    if share and (n := len(classifier.asked_.scores)) < FEW_SCORES:
        note(f"this model has only {n} held-out scores: it may refuse many more or fewer than {reject}")
    answers = classifier.classes_[probabilities.argmax(1)]
    said = spoken(answers, refused, classifier.labels_)
    text = _written(output_format, samples, said, classifier.classes_, probabilities if proba else None)
    if output is None:
        sys.stdout.write(shown(text) if sys.stdout.isatty() else text)
    else:
        try:
            write_atomic(output, text.encode(errors="backslashreplace"))  # a file name may not be valid text
        except OSError as error:
            raise ReliveError(f"cannot write {output}: {error.strerror or error}") from error
    _remark(classifier, samples, answers, refused)


def _format(output: Path | None, output_format: str | None) -> str:
    """Return the output format: as requested, or from the file's name."""
    chosen = output_format or (output.suffix.removeprefix(".") if output else "csv")
    if chosen in FORMATS:
        return chosen
    if output_format is None:
        raise InputError(f"{output} ends with neither .csv nor .json: choose one with --format")
    raise unknown("format", chosen, FORMATS)


def _check_output(output: Path, model: Path, data: Path) -> None:
    """Refuse an invalid output path, or one that would overwrite an input."""
    if not output.parent.is_dir():
        raise InputError(f"cannot write {output}: there is no directory {output.parent}")
    if any(path.exists() and output.exists() and path.samefile(output) for path in (model, data)):
        raise InputError(f"--output {output} would overwrite an input file: choose another name")


def tasks_of_samples(model: Model, samples: Samples, task: str | None) -> Any:
    """Return the task, or each sample's, as the model names it; an unnamed task has a number."""
    from relive.core.scenarios import SCENARIOS

    names = {str(lesson.name): lesson.name for lesson in model.lessons_}
    if samples.tasks is not None:
        return [names.get(str(name), name) for name in samples.tasks]
    if task is None and SCENARIOS[model.scenario].needs_task:
        raise InputError(
            f"this is a Task-IL model, which needs the task: pass --task NAME, one of {', '.join(names)}, or "
            "--task-column COLUMN"
        )
    return names.get(task, task) if task is not None else None


def share_from(text: str) -> float:
    """Parse a share.

    >>> share_from("5%"), share_from("0.05")
    (0.05, 0.05)
    """
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise InputError(f"--reject {text}: it must be a share between 0 and 1, such as 5% or 0.05")
    return share


def _written(kind: str, samples: Samples, answers: list[Any], classes: Array, probabilities: Array | None) -> str:
    """Format the answers as CSV or JSON."""
    files = samples.files or [None] * len(answers)
    shares = probabilities.tolist() if probabilities is not None else [None] * len(answers)
    rows = list(zip(files, answers, shares, strict=True))
    if kind == "json":
        return json_text([_json_row(*row, classes) for row in rows], indent=1) + "\n"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = [*(["file"] if samples.files else []), "label"]
    writer.writerow(header + ([f"p_{c}" for c in classes.tolist()] if probabilities is not None else []))
    for file, answer, share in rows:
        writer.writerow([*([_no_formula(file)] if file is not None else []), _no_formula(answer), *(share or [])])
    return text.getvalue()


def _no_formula(value: Any) -> Any:
    """Return text that a spreadsheet does not run as a formula; JSON keeps it unchanged.

    >>> _no_formula("=cmd()"), _no_formula("-1"), _no_formula("-rose")
    ("'=cmd()", '-1', "'-rose")
    """
    formula = isinstance(value, str) and value.lstrip().startswith(FORMULA) and not _is_number(value)
    return f"'{value}" if formula or (isinstance(value, str) and value.startswith(("\t", "\r"))) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json_row(file: str | None, answer: Any, share: list[float] | None, classes: Array) -> dict[str, Any]:
    row: dict[str, Any] = {"file": file} if file is not None else {}
    row["label"] = answer
    if share is not None:
        row["proba"] = dict(zip(map(str, classes.tolist()), share, strict=True))
    return row


def _remark(model: Model, samples: Samples, answers: Array, refused: Array) -> None:
    """Report on stderr how many answers are refused or correct, and which labels the model does not know."""
    from relive.classifier.labels import kind_of

    if refused.any():
        err.print(f"refused {100 * refused.mean():.2f} % ({int(refused.sum())} of {len(refused)})")
    if samples.y is None or refused.all():
        return
    known, right, answers = model.labels_, samples.y[~refused], answers[~refused]
    if kind_of(known) != kind_of(right):  # a folder's name is never a number
        known, right, answers = known.astype(str), right.astype(str), answers.astype(str)
    correct = int((answers == right).sum())
    err.print(f"accuracy {100 * correct / len(right):.2f} % ({correct} of {len(right)})")
    foreign = sorted(set(samples.y.astype(right.dtype).tolist()) - set(known.tolist()))
    if foreign:
        err.print(f"note: the model does not know {', '.join(map(str, foreign))}")
