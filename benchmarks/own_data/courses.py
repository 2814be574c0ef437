"""The data sets of the benchmark, and how each becomes a sequence of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from benchmarks.own_data import frozen, tables, texts
from benchmarks.own_data.samples import Array, Samples, load
from benchmarks.own_data.tables import numeric, one_hot

TABLE, PICTURES, EMBEDDING = "tables", "pictures", "embeddings and frozen features"
HELD_OUT = 0.3  # of each class, where a data set has no test set
RARE = 0.05  # share of its samples that a rare class keeps
FOLDER = user_cache_path("relive") / "own-data"

Task = tuple[Array, Array]  # samples and labels

SOURCES: dict[str, Callable[[], Samples]] = {
    "iris": partial(tables.from_sklearn, load_iris),
    "wine": partial(tables.from_sklearn, load_wine),
    "breast-cancer": partial(tables.from_sklearn, load_breast_cancer),
    "digits": tables.digits,
    "letter": partial(numeric, "LetterRecognition", "lettr"),
    "satellite": partial(numeric, "Satellite", "classes"),
    "vowel": partial(numeric, "Vowel", "Class", group="V1"),  # the speaker
    "vehicle": partial(numeric, "Vehicle", "Class"),
    "shuttle": partial(numeric, "Shuttle", "Class"),
    "glass": partial(numeric, "Glass", "Type"),
    "ionosphere": partial(numeric, "Ionosphere", "Class", ("V2",)),  # V2 is always 0
    "sonar": partial(numeric, "Sonar", "Class"),
    "breast-cancer-1992": partial(numeric, "BreastCancer", "Class", ("Id",)),
    "dna": partial(numeric, "DNA", "Class"),
    "pima": partial(numeric, "PimaIndiansDiabetes", "diabetes"),
    "zoo": partial(numeric, "Zoo", "type"),
    "soybean": partial(one_hot, "Soybean", "Class"),
    "house-votes": partial(one_hot, "HouseVotes84", "Class"),
    "mnist": partial(tables.pixels, "mnist"),
    "fashion-mnist": partial(tables.pixels, "fashion-mnist"),
    "package-sections": lambda: texts.embedded(texts.package_descriptions()),
    "docstrings": lambda: texts.embedded(texts.docstrings()),
    "manual-pages": lambda: texts.embedded(texts.manual_paragraphs(), shortest=80),
    "fashion-features": frozen.fashion,
}


@dataclass(frozen=True)
class Course:
    """A data set, and how it is divided into tasks.

    Attributes
    ----------
    source
        The data set.
    per_task
        Classes per task.
    kind
        Of data.
    rare
        Whether one class, another for each seed, has only a twentieth of its training samples.
    again
        Whether every class comes twice, each time with half of its samples and with other classes.
    new_groups
        Whether test samples are of groups (pages, modules, speakers) that do not occur in training.
    """

    source: str
    per_task: int = 1
    kind: str = TABLE
    rare: bool = False
    again: bool = False
    new_groups: bool = False


COURSES: dict[str, Course] = {
    **{
        name: Course(name)
        for name in (
            *("breast-cancer", "breast-cancer-1992", "dna", "glass", "house-votes", "ionosphere", "iris", "pima"),
            *("shuttle", "sonar", "vehicle", "wine", "zoo"),
        )
    },
    **{name: Course(name, 2) for name in ("letter", "satellite", "soybean", "vowel")},
    **{name: Course(name, 2, EMBEDDING) for name in ("fashion-features", "package-sections")},
    "docstrings": Course("docstrings", 2, EMBEDDING, new_groups=True),
    "manual-pages": Course("manual-pages", 1, EMBEDDING, new_groups=True),
    "vowel, new speakers": Course("vowel", 2, new_groups=True),
    **{name: Course(name, 2, PICTURES) for name in ("digits", "fashion-mnist", "mnist")},
    "digits, a rare class": Course("digits", 2, PICTURES, rare=True),
    "satellite, a rare class": Course("satellite", 2, rare=True),
    "package-sections, a rare class": Course("package-sections", 2, EMBEDDING, rare=True),
    "digits, classes return": Course("digits", 2, PICTURES, again=True),
    "vowel, classes return": Course("vowel", 2, again=True),
    "package-sections, classes return": Course("package-sections", 2, EMBEDDING, again=True),
}


@dataclass(frozen=True)
class Lessons:
    """The tasks that a learner is trained on, one after the other, and the test set."""

    tasks: list[Task]
    X_test: Array
    y_test: Array


def samples_of(source: str, folder: Path = FOLDER) -> Samples:
    """Return a data set from the folder, after preparing it if it is missing."""
    path = folder / f"{source}.npz"
    if not path.exists():
        SOURCES[source]().save(path)
    return load(path)


def lessons(samples: Samples, course: Course, seed: int, validation: bool = False) -> Lessons:
    """Return the tasks of a seed: which samples are held out, and the order of classes and samples, depend on it.

    With ``validation`` this seed's test samples are set aside, and 30 % of the others are held out instead, to choose
    settings on.
    """
    random = np.random.default_rng(seed)
    X, y, group = samples.X, samples.y, samples.group if course.new_groups else None
    rows = np.arange(len(y))
    X_test, y_test = samples.test or (X[:0], y[:0])
    for _ in range((samples.test is None) + validation):  # the last held-out part is the test set
        rows, asked = held_out(rows, y, group, seed)
        X_test, y_test = X[asked], y[asked]
    rows = random.permutation(rows)
    if course.rare:
        rows = made_rare(rows, y, random)
    parts = np.array_split(rows, 2) if course.again else [rows]
    groups = [group for part in parts for group in in_groups(part, y, course.per_task, random)]
    return Lessons([(X[group], y[group]) for group in groups], X_test, y_test)


def held_out(rows: Array, y: Array, group: Array | None, seed: int) -> tuple[Array, Array]:
    """Return the rows to train on, and 30 % of each class, or a third of the groups, to test on."""
    if group is None:
        learned, asked = train_test_split(rows, test_size=HELD_OUT, stratify=y[rows], random_state=seed)
        return learned, asked
    folds = StratifiedGroupKFold(3, shuffle=True, random_state=seed).split(rows, y[rows], group[rows])
    first, second = next(iter(folds))
    return rows[first], rows[second]


def made_rare(rows: Array, y: Array, random: np.random.Generator) -> Array:
    """Return the rows with only some of one class, at least two."""
    label = random.choice(np.unique(y[rows]))
    own = rows[y[rows] == label]
    kept = own[: max(2, round(RARE * len(own)))]
    stay: Array = rows[(y[rows] != label) | np.isin(rows, kept)]
    return stay


def in_groups(rows: Array, y: Array, per_task: int, random: np.random.Generator) -> list[Array]:
    """Divide rows over tasks by their classes, in a newly drawn order."""
    classes = random.permutation(np.unique(y[rows]))
    return [rows[np.isin(y[rows], classes[start : start + per_task])] for start in range(0, len(classes), per_task)]
