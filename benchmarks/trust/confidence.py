"""Calibration and unknown classes: a model learns most classes of a course, and is then tested on all."""

from __future__ import annotations

import json
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.own_data.courses import COURSES, Lessons, lessons, samples_of
from benchmarks.own_data.results import limited
from benchmarks.own_data.samples import Array, Samples
from relive import ContinualClassifier
from relive.classifier.evaluation import calibration_error, reliability

MOST = 6000  # training and test samples
UNKNOWN = 5  # one class in so many, at least one, is not learned; none where there are only two
SHARE = 0.05  # of samples of known classes that may be refused
ALL = tuple(name for name, course in COURSES.items() if name == course.source)
SMALL = ("iris", "wine", "zoo", "vehicle", "vowel", "digits", "soybean", "glass")  # courses for a network, too
LEARNERS = {"auto": ALL, "LDA": ALL, "nearest neighbour": ALL, "rtf": SMALL}


@dataclass(frozen=True)
class Run:
    """The result on the classes that were learned, and on those that were not.

    Attributes
    ----------
    course, learner, seed
        What was done.
    accuracy, accuracy_before
        Calibrated and not.
    error, error_before
        The expected calibration error, calibrated and not.
    refused
        Share of test samples of known classes that are refused when 5 % may be.
    auroc, auroc_confidence
        How well unknown classes are separated from known ones, by relive's score and by the highest probability;
        None where all classes were learned.
    found
        Share of samples of unknown classes that are refused then.
    """

    course: str
    learner: str
    seed: int
    accuracy: float
    accuracy_before: float
    error: float
    error_before: float
    refused: float
    auroc: float | None
    auroc_confidence: float | None
    found: float | None

    @property
    def key(self) -> tuple[str, str, int]:
        """What was done."""
        return self.course, self.learner, self.seed


@dataclass(frozen=True)
class Answers:
    """Probabilities (n, classes) before and after calibration, and how familiar the samples are (n,)."""

    before: Array
    after: Array
    familiarity: Array


class Lda:
    """A baseline: scikit-learn's LDA on all data at once, refusing where it is unsure."""

    def __init__(self) -> None:
        self.model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")

    def learn(self, taught: Lessons) -> None:
        X, y = (np.concatenate(parts) for parts in zip(*taught.tasks, strict=True))
        self.model.fit(X.astype(np.float64), y)
        self.classes = self.model.classes_
        self.usual = np.sort(self.model.predict_proba(X.astype(np.float64)).max(1))

    def answers(self, X: Array) -> Answers:
        p = self.model.predict_proba(X.astype(np.float64))
        return Answers(p, p, (np.searchsorted(self.usual, p.max(1)) + 1) / (len(self.usual) + 1))


class Neighbour:
    """A baseline that keeps all data: the distance to the nearest training sample, and its label."""

    def learn(self, taught: Lessons) -> None:
        X, y = (np.concatenate(parts) for parts in zip(*taught.tasks, strict=True))
        X = X.reshape(len(X), -1)
        plain = X.dtype == np.uint8 or (X.min() >= 0 and X.max() <= 1)  # pixels, or features already on one scale
        deviation = X.std(0)
        self.middle: Any = 0 if plain else X.mean(0)
        self.scale: Any = 1 if plain else np.maximum(deviation, 1e-3 * deviation.max())
        self.index = NearestNeighbors().fit(self._scaled(X))
        self.classes, self.column = np.unique(y, return_inverse=True)
        self.usual = np.sort(self.index.kneighbors(n_neighbors=1)[0][:, 0])

    def _scaled(self, X: Array) -> Array:
        rows: Array = (X.reshape(len(X), -1).astype(np.float64) - self.middle) / self.scale
        return rows

    def answers(self, X: Array) -> Answers:
        distance, nearest = (found[:, 0] for found in self.index.kneighbors(self._scaled(X), n_neighbors=1))
        p = np.eye(len(self.classes))[self.column[nearest]]
        top, further = self.usual[-1], np.maximum(distance, 1e-9)
        share = (len(self.usual) - np.searchsorted(self.usual, distance) + 1) / (len(self.usual) + 1)
        return Answers(p, p, share * np.minimum(1, np.maximum(top, 1e-9) / further))


class Own:
    """A ContinualClassifier; a network holds out a tenth of each class, as ``relive fit`` does."""

    def __init__(self, method: str, samples: Samples, seed: int) -> None:
        held_out = 0.1 if method == "rtf" else 0.0
        self.model = ContinualClassifier(method, shape=samples.shape, holdout=held_out, random_state=seed)

    def learn(self, taught: Lessons) -> None:
        for X, y in taught.tasks:
            self.model.partial_fit(X, y)
        self.classes = self.model.classes_

    def answers(self, X: Array) -> Answers:
        return Answers(self.model._answers(X, None), self.model.predict_proba(X), self.model.familiarity(X))


MAKE: dict[str, Callable[[], Lda | Neighbour]] = {"LDA": Lda, "nearest neighbour": Neighbour}


def with_unknown(taught: Lessons) -> tuple[Lessons, Array]:
    """Return lessons without the last classes, and these classes."""
    order = list(dict.fromkeys(int(c) for _, y in taught.tasks for c in dict.fromkeys(y.tolist())))
    unknown = np.array(order[-max(1, len(order) // UNKNOWN) :] if len(order) > 2 else [], dtype=np.int64)
    tasks = [(X[~np.isin(y, unknown)], y[~np.isin(y, unknown)]) for X, y in taught.tasks]
    return replace(taught, tasks=[task for task in tasks if len(task[1])]), unknown


def measure(course: str, learner: str, seed: int, folder: Path) -> Run:
    """Train a learner on most classes of a course, on one thread, and test it on all."""
    torch.set_num_threads(1)
    samples = samples_of(COURSES[course].source, folder)
    taught, unknown = with_unknown(limited(lessons(samples, COURSES[course], seed), MOST, seed))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MAKE[learner]() if learner in MAKE else Own(learner, samples, seed)
        model.learn(taught)
        new = np.isin(taught.y_test, unknown)
        known, foreign = (model.answers(taught.X_test[rows]) if rows.any() else None for rows in (~new, new))
    assert known is not None
    truth = np.searchsorted(model.classes, taught.y_test[~new])

    def judged(p: Array) -> tuple[float, float]:
        right = p.argmax(1) == truth
        return float(right.mean()), calibration_error(reliability(p.max(1), right))

    (accuracy, error), (accuracy_before, error_before) = judged(known.after), judged(known.before)
    is_new = np.repeat([0, 1], [(~new).sum(), new.sum()])

    def told(score: Sequence[Array]) -> float:
        return float(roc_auc_score(is_new, -np.concatenate(score)))

    return Run(
        course,
        learner,
        seed,
        accuracy,
        accuracy_before,
        error,
        error_before,
        float((known.familiarity < SHARE).mean()),
        told([known.familiarity, foreign.familiarity]) if foreign else None,
        told([known.before.max(1), foreign.before.max(1)]) if foreign else None,
        float((foreign.familiarity < SHARE).mean()) if foreign else None,
    )


def missing(done: Sequence[Run], seeds: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    """Yield the runs still to be done."""
    there = {run.key for run in done}
    for learner, courses in LEARNERS.items():
        for seed in range(seeds[learner]):
            yield from (key for course in courses if (key := (course, learner, seed)) not in there)


def read(path: Path) -> list[Run]:
    """Return the runs in a file of JSON lines; none if there is no file."""
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def run_all(path: Path, folder: Path, seeds: dict[str, int]) -> None:
    """Do what is missing, and write each run as it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for key in list(missing(read(path), seeds)):
        run = measure(*key, folder)
        said = {name: round(value, 5) if isinstance(value, float) else value for name, value in asdict(run).items()}
        with path.open("a") as file:
            file.write(json.dumps(said) + "\n")
        print(json.dumps(said), flush=True)


# ---- tables --------------------------------------------------------------------------------------------------------

Value = Callable[[Run], float | None]
COLUMNS: tuple[tuple[str, Value, int, int], ...] = (
    ("accuracy before", lambda r: r.accuracy_before, 100, 1),
    ("after", lambda r: r.accuracy, 100, 1),
    ("ECE before", lambda r: r.error_before, 1, 3),
    ("after", lambda r: r.error, 1, 3),
    ("known refused at 5 %", lambda r: r.refused, 100, 1),
    ("unknown refused", lambda r: r.found, 100, 1),
    ("AUROC", lambda r: r.auroc, 1, 3),
    ("AUROC of max p", lambda r: r.auroc_confidence, 1, 3),
)


def tables(runs: Sequence[Run]) -> str:
    """Return the means over data sets, and a row for each data set of ``auto``, as Markdown."""
    head = [name for name, *_ in COLUMNS]
    lines = [f"| learner | data sets | {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) + 1)]
    for learner in LEARNERS:
        mine = [run for run in runs if run.learner == learner]
        if mine:
            lines.append(f"| {learner} | {len({run.course for run in mine})} | {' | '.join(cells(mine))} |")
        if learner != "rtf" and mine:
            few = [run for run in mine if run.course in {other.course for other in runs if other.learner == "rtf"}]
            lines.append(f"| {learner}, where rtf ran | {len({r.course for r in few})} | {' | '.join(cells(few))} |")
    lines += ["", f"| `auto` on | {' | '.join(head)} |", "| --- |" + " ---: |" * len(head)]
    for course in ALL:
        mine = [run for run in runs if run.learner == "auto" and run.course == course]
        if mine:
            lines.append(f"| {course} | {' | '.join(cells(mine))} |")
    return "\n".join(lines)


def cells(runs: Sequence[Run]) -> list[str]:
    """Return the means over data sets of the means over seeds, one for each column."""
    found = []
    for _, value, times, digits in COLUMNS:
        by_course: dict[str, list[float]] = {}
        for run in runs:
            if (measured := value(run)) is not None:
                by_course.setdefault(run.course, []).append(times * measured)
        mean = statistics.fmean(map(statistics.fmean, by_course.values())) if by_course else None
        found.append("–" if mean is None else f"{mean:.{digits}f}")
    return found


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the means of ``auto``, with how many data sets they are over."""
    mine = [run for run in runs if run.learner == "auto"]
    return dict(zip((name for name, *_ in COLUMNS), cells(mine), strict=True)) | {"n": len({r.course for r in mine})}
