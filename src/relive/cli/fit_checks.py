"""What ``relive fit`` refuses before learning anything, and what it warns about: paths, options, data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relive._util.errors import InputError, unknown
from relive.cli import models
from relive.cli.console import note

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.selfreport import Memory
    from relive.data.readers.samples import Samples

FEW = 10  # warn about classes with fewer samples: docs/privacy.md shows what an attacker can learn


def shape_from(text: str) -> tuple[int, ...]:
    """Parse --shape.

    >>> shape_from("28x28"), shape_from("32x32x3")
    ((28, 28), (32, 32, 3))
    """
    numbers = text.lower().replace("×", "x").split("x")
    if not all(n.isascii() and n.isdecimal() and 0 < len(n) < 9 and int(n) for n in numbers):
        raise InputError(f"--shape {text}: write it as HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 28x28 or 32x32x3")
    return tuple(map(int, numbers))


def check_place(path: Path) -> None:
    """Refuse a path that cannot hold a model, before anything is done."""
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: MODEL is a file, such as model.safetensors")
    models.check_order(path)
    if path.suffix != ".safetensors" and not path.exists():
        raise InputError(f"{path} does not end with .safetensors: give the model first, then the data")


def check_same(model: ContinualClassifier, given: dict[str, Any], path: Path) -> None:
    """Refuse options that differ from those the model was created with."""
    from relive._util.fidelity import Fidelity, fidelity_of, name_of
    from relive.methods import method_facts

    for name, value in given.items():
        mine: Any = getattr(model, name)
        if name == "settings":
            facts = method_facts(model.choice_.method)
            facts.check_settings(value)
            all_settings = facts.defaults | (model.settings or {})
            mine = {key: all_settings[key] for key in value}
        elif name == "fidelity":
            value = name_of(fidelity_of(value))
            mine = name_of(mine if isinstance(mine, Fidelity) else fidelity_of(mine))
        elif name == "method" and value != mine:
            mine = model.choice_.method
        elif name == "likelihood" and value != mine:
            mine = model.features_.likelihood
        elif name == "random_state":
            mine = model.seed_
        elif name == "shape" and mine is not None:
            mine = tuple(map(int, mine))
        if value != mine:
            raise _other(_option(name, value), mine, path)


def _option(name: str, value: Any) -> str:
    """Return an option as it was given."""
    option = {"random_state": "--seed", "settings": "--set"}.get(name, "--" + name.replace("_", "-"))
    return f"{option} {_in_words(value)}"


def _other(option: str, mine: Any, path: Path) -> InputError:
    return InputError(
        f"{option}: {path} was created with {_in_words(mine)}, which cannot be changed. Leave the option out, "
        "or start a new model"
    )


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={setting:g}" for name, setting in value.items())
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return "the default" if value is None else str(value)


def picture_shape(
    model: ContinualClassifier | None, size: int | None, colour: bool | None, path: Path
) -> tuple[int, ...] | None:
    """Return the shape that images are resized to; the first task decides."""
    known = models.image_of(model)
    if model is None:
        size = size or 28
        return (size, size, 3) if colour else (size, size)
    if known is not None and size is not None and known[:2] != (size, size):
        raise _other(f"--size {size}", " × ".join(map(str, known[:2])), path)
    if known is not None and colour is not None and colour != (len(known) == 3):
        raise _other("--colour", "grey", path) if colour else _other("--grey", "colour", path)
    return known


def say_what_changes(folder: Path, image: tuple[int, ...], *, new: bool) -> None:
    """Report that images lose their colours or their size, and for a new model how to avoid it."""
    from relive.data.readers.folders import picture_shapes

    shapes = picture_shapes(folder)
    sizes = sorted({shape[:2] for shape in shapes})
    told = ["made grey"] if len(image) == 2 and any(len(shape) == 3 for shape in shapes) else []
    if sizes and sizes != [image[:2]]:
        found = f"{sizes[0][0]} × {sizes[0][1]}" if len(sizes) == 1 else f"{len(sizes)} sizes"
        told.append(f"{found} → {image[0]} × {image[1]}")
    if told:
        note(f"images {', '.join(told)}" + ("; use --colour to keep colours, --size N to set the size" if new else ""))


def check_ignored(ignored: list[str] | None, data: Path) -> None:
    """Refuse columns to leave out that are not there."""
    if not ignored:
        return
    from relive.data.readers.tables import column_names

    names = column_names(data)
    for name in ignored:
        if name not in names:
            raise unknown("column", name, names)


def warn_of_ids(samples: Samples, data: Path) -> None:
    """Name a column that has a different whole number in every row."""
    from relive.data.readers.samples import id_column

    if (name := id_column(samples)) is not None:
        note(
            f"column {name!r} of {data} has a different whole number in every row, and is learned as a feature: if "
            f"it only identifies the rows, leave it out with --ignore {shlex.quote(name)}"
        )


def warn_of_far_values(samples: Samples, data: Path) -> None:
    """Name a value of the first task that is absurdly far from the others: it would determine the scaling."""
    from relive.data.readers.samples import far_value

    if (found := far_value(samples)) is not None:
        note(
            f"column {found[0]!r} of {data} has a value far from all others, first in row {found[1]}: the first task "
            "determines the scaling for good, so check it before going on"
        )


def warn_of_similar_labels(model: ContinualClassifier, samples: Samples) -> None:
    """Name new labels that differ from known ones only in case or spaces."""
    known = {_plain(label): str(label) for label in model.labels_.tolist()}
    for label in dict.fromkeys(map(str, samples.y.tolist() if samples.y is not None else [])):
        similar = known.get(_plain(label))
        if similar is not None and similar != label:
            note(f"{label!r} is learned as a new class, next to {similar!r}; relive merge makes one class of two")


def _plain(label: Any) -> str:
    return "".join(str(label).split()).casefold()


def warn_of_small_classes(model: ContinualClassifier) -> None:
    """Name classes of the last task with so few samples that the model may reveal individual ones."""
    lessons, labels = model.lessons_, model.labels_
    counts = Counter[int]()
    for lesson in lessons:
        counts.update(dict(zip(lesson.classes, lesson.counts, strict=True)))
    small = [str(labels[c]) for c in lessons[-1].classes if 0 < counts[c] < FEW]
    if small:
        names = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        note(
            f"fewer than {FEW} samples of {names}: with so few, the model may reveal individual samples; see "
            "docs/privacy.md"
        )


def warn_of_forgetting(memories: Sequence[Memory]) -> None:
    """Name classes missing from replay, and those estimated to have lost much accuracy."""
    from relive.classifier.selfreport import warnings_of

    for warning in warnings_of(memories):
        note(warning)


def check_name(model: ContinualClassifier, task: str | None) -> None:
    """Refuse a name that ``relive predict --task`` could confuse with another task's name or number."""
    from relive.core.scenarios import SCENARIOS

    name = str(model.n_tasks_) if task is None else task
    if SCENARIOS[model.scenario].needs_task and name in [str(lesson.name) for lesson in model.lessons_]:
        raise InputError(
            f"task {name!r} was already learned, and in Task-IL each task is learned once: choose another --task"
        )


def check_new(model: ContinualClassifier, samples: Samples, data: Path, path: Path) -> None:
    """Refuse data that the model has already learned."""
    from relive.classifier.labels import digest_of

    assert samples.y is not None  # they were requested
    digest = digest_of(samples.x, samples.y)
    for lesson in model.lessons_:
        if lesson.digest == digest:
            raise InputError(
                f"{path} has already learned {data}: as task {lesson.name!r}, at {lesson.learned_at}. Pass "
                "--again to learn it once more"
            )
