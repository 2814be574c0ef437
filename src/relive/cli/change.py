"""``relive forget``, ``rename``, ``merge`` and ``rollback``: a model file that changes without learning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relive._util.errors import InputError
from relive.cli import models
from relive.cli.console import err, note, out
from relive.cli.fit_checks import check_place

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier

CLASSES = Annotated[list[str], typer.Argument(metavar="CLASS...", help="The classes, as `relive inspect` lists them.")]
OLD = Annotated[str, typer.Argument(metavar="OLD", help="The current name of the class.")]
NEW = Annotated[str, typer.Argument(metavar="NEW", help="The new name.")]
INTO = Annotated[str, typer.Option("--into", metavar="CLASS", help="A new name, or one of the existing ones.")]

FORGET_EXAMPLES = """Examples:

relive forget faces.safetensors anna

relive forget faces.safetensors anna ben --keep 1  (and keep the previous version, which still knows them)
"""
RENAME_EXAMPLES = """Example:

relive rename flowers.safetensors setossa setosa
"""
MERGE_EXAMPLES = """Examples:

relive merge signs.safetensors stop halt --into stop

relive merge animals.safetensors cat dog mouse --into pet --keep 1
"""
ROLLBACK_EXAMPLES = """Example:

relive rollback flowers.safetensors  (after `relive fit --keep N`)
"""
EXACT = "nothing of it remains: up to rounding, the model is as if it had never learned it"
SHARED = (
    "its samples no longer count, and its mean is gone; its spread remains in the covariance that all classes share. "
    "A new model created with --forgettable can forget without this trace"
)
NETWORK = (
    "it is no longer predicted or replayed; but the network's weights were trained with it, and what they hold of it "
    "is not erased. Closed-form models created with --forgettable forget without a trace"
)
OWN = "it is no longer predicted; what is erased of what the method keeps of it is up to the method's own `forget`"
ALWAYS = "its name stays in the model's history; if it was in the first task, it still affects how features are scaled"


def forget(
    model: models.MODEL, classes: CLASSES, keep: models.KEEP = None, allow_code: models.ALLOW_CODE = False
) -> None:
    """Forget classes: MODEL no longer predicts them, and what it keeps of each of them is deleted.

    What that erases depends on how MODEL learns, and is reported. A forgotten class may be learned again.
    """
    changed = _change(
        model, keep, allow_code, lambda classifier: classifier.forget(*(label_of(classifier, c) for c in classes))
    )
    out.print(f"forgotten {', '.join(classes)}")
    out.print(f"          {what_is_left(changed)}")
    out.print(f"          {ALWAYS}")
    _show(changed, model)
    _tell_of_kept(model)
    _tell_if_final(changed)


def rename(
    model: models.MODEL, old: OLD, new: NEW, keep: models.KEEP = None, allow_code: models.ALLOW_CODE = False
) -> None:
    """Rename a class; nothing else changes."""
    changed = _change(
        model,
        keep,
        allow_code,
        lambda classifier: classifier.rename(label_of(classifier, old), label_of(classifier, new)),
    )
    out.print(f"renamed   {old} to {new}")
    _show(changed, model)


def merge(
    model: models.MODEL,
    classes: CLASSES,
    into: INTO,
    keep: models.KEEP = None,
    allow_code: models.ALLOW_CODE = False,
) -> None:
    """Merge several classes into one.

    In closed form MODEL is then the same as if it had learned them as one class. A network predicts the sum of their
    probabilities.
    """
    changed = _change(
        model,
        keep,
        allow_code,
        lambda classifier: classifier.merge([label_of(classifier, c) for c in classes], label_of(classifier, into)),
    )
    out.print(f"merged    {', '.join(classes)} into {into}")
    _show(changed, model)
    _tell_if_final(changed)


def rollback(model: models.MODEL, allow_code: models.ALLOW_CODE = False) -> None:
    """Restore the newest earlier version of MODEL; the current one is kept under another name."""
    from relive.classifier.history import locked, roll_back
    from relive.classifier.modelfile import load

    path = models.real(model)
    check_place(path)
    with locked(path):
        # a damaged version must not replace an intact one
        undone = roll_back(path, check=lambda version: load(version, allow_code=allow_code))
    restored = load(path, allow_code=allow_code)
    tasks = ", ".join(str(lesson.name) for lesson in restored.lessons_)
    out.print(f"model     {model}: {models.known(restored)} (tasks: {tasks})")
    if undone is not None:
        out.print(f"undone    {undone}; delete it when you no longer need it")
    if not models.fit_notes(restored).get("keep"):
        err.print("note: this version predates --keep: pass it again with the next relive fit")


def _change(
    model: Path, keep: int | None, allow_code: bool, change: Callable[[ContinualClassifier], object]
) -> ContinualClassifier:
    """Load the model, change it and store it; on failure the file is unchanged."""
    path = models.real(model)
    check_place(path)
    from relive.classifier.history import locked, tidy
    from relive.classifier.modelfile import load

    if not path.exists():
        raise InputError(f"there is no model {path}")
    with locked(path):
        tidy(path)
        classifier = load(path, allow_code=allow_code)
        change(classifier)
        if keep is not None:
            classifier.notes_[models.NOTES] = models.fit_notes(classifier) | {"keep": keep}
        models.store(classifier, path)
    return classifier


def label_of(model: ContinualClassifier, text: str) -> Any:
    """Return a label given as text, converted to the type of the model's labels."""
    from relive.data.readers.samples import number

    if model.labels_.dtype.kind == "U":
        return text
    if model.labels_.dtype.kind == "b":
        named = {"true": True, "false": False}
        if text.lower() not in named:
            raise InputError(f"{text!r}: this model's labels are booleans, True and False")
        return named[text.lower()]
    found = number(text)
    if found is None:
        raise InputError(f"{text!r} is not a number, but this model's labels are numbers")
    return found


def what_is_left(model: ContinualClassifier) -> str:
    """Return what forgetting a class does not erase."""
    from relive.methods import is_shipped

    method = model.learner_.method
    if method.takes_steps:
        return NETWORK
    if method.forgets_exactly:
        return EXACT
    return SHARED if is_shipped(model.choice_.method) else OWN


def _show(model: ContinualClassifier, path: Path) -> None:
    out.print(f"model     {path}, {models.size_of(path)}: {models.known(model)}")
    out.print(f"classes   {', '.join(map(str, model.classes_.tolist()))}")


def _tell_of_kept(model: Path) -> None:
    """List the files that still know what was forgotten."""
    from relive.classifier.history import kept, undone

    versions = [*kept(models.real(model)), *undone(models.real(model))]
    if versions:
        err.print(
            f"note: other versions still know what was forgotten: {', '.join(map(str, versions))}. Delete "
            "them, and any other copies, to remove it for good"
        )


def _tell_if_final(model: ContinualClassifier) -> None:
    """Say that a change cannot be undone, if no earlier versions are kept."""
    if not models.fit_notes(model).get("keep"):
        note("no earlier version is kept, so this cannot be undone; --keep 1 keeps one from now on")
