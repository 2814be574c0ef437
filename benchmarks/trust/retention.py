"""The self-report: how well estimates of what is left of each class predict the accuracy on real test samples.

After every task, each class that was learned before is tested on held-out samples, and every estimate is
made from what the model has then. None of them sees the test samples.
"""

from __future__ import annotations

import copy
import json
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from benchmarks.own_data.courses import COURSES, lessons, samples_of
from benchmarks.own_data.results import limited
from benchmarks.own_data.samples import Array
from relive import ContinualClassifier
from relive.classifier.portraits import Portrait, asked
from relive.networks import GenerativeClassifier

MOST = 2000  # training and test samples
FEWEST = 5  # test samples that a class needs to be counted
ASKED = ("iris", "wine", "vehicle", "zoo", "glass", "vowel", "digits", "soybean", "satellite")
METHODS = ("rtf", "lwf", "none", "slda", "discriminant")


@dataclass(frozen=True)
class Row:
    """A class that was learned earlier, after one more task.

    Attributes
    ----------
    course, method, seed, task, label
        What was done, and how many tasks had been learned before.
    then, now
        Accuracy on test samples of the class when it was learned, and now.
    tested
        Share of held-out samples classified correctly when it was learned; None if none was held out.
    drawn_then, drawn_now
        Share of samples drawn from its portrait that were assigned to it; None if it has no portrait.
    agreed
        The product, over the tasks since, of the share of its replayed samples classified as before the task;
        None if it was not replayed, or nothing is.
    dreamt
        Its share of what is replayed; None if nothing is.
    """

    course: str
    method: str
    seed: int
    task: int
    label: int
    then: float
    now: float
    tested: float | None
    drawn_then: float | None
    drawn_now: float | None
    agreed: float | None
    dreamt: float | None


def measure(course: str, method: str, seed: int, folder: Path) -> Iterator[Row]:
    """Train a method on a course, and compare its self-report after each task with the test accuracy."""
    torch.set_num_threads(1)
    samples = samples_of(COURSES[course].source, folder)
    taught = limited(lessons(samples, COURSES[course], seed), MOST, seed)
    model = ContinualClassifier(method, holdout=0.1, random_state=seed)
    then: dict[int, float] = {}
    agreed: dict[int, float | None] = {}
    drawn: dict[int, tuple[Portrait, float]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, (X, y) in enumerate(taught.tasks):
            before = copy.copy(model)
            model.partial_fit(X, y)
            follow(before, model, agreed)
            memories = {m.label: m for m in model.report()}
            for c in np.unique(y).tolist():
                then[c], agreed[c] = accuracy(model, taught.X_test, taught.y_test, c), 1.0
                if (y == c).sum() >= 10:
                    drawn[c] = painted(model, X[y == c], c)
            for c in sorted(set(then) - set(y.tolist())):
                if (taught.y_test == c).sum() < FEWEST:
                    continue
                portrait, share = drawn.get(c, (None, None))
                yield Row(
                    course,
                    method,
                    seed,
                    task,
                    c,
                    then[c],
                    accuracy(model, taught.X_test, taught.y_test, c),
                    memories[c].tested,
                    share,
                    answered(model, portrait) if portrait else None,
                    agreed[c] if memories[c].replayed is not None else None,
                    memories[c].replayed,
                )


def accuracy(model: ContinualClassifier, X: Array, y: Array, c: int) -> float:
    return float((model.predict(X[y == c]) == c).mean()) if (y == c).any() else 0.0


def painted(model: ContinualClassifier, X: Array, c: int) -> tuple[Portrait, float]:
    """Return a class's portrait, for closed forms too, and the share of samples drawn from it assigned to it."""
    identity = model.labels_.tolist().index(c)
    x = model.features_.inputs(X).numpy().astype(np.float64)
    portrait = Portrait.of(identity, len(model.lessons_) - 1, x)
    return portrait, answered(model, portrait)


def answered(model: ContinualClassifier, portrait: Portrait) -> float:
    return asked([portrait], model.learner_, model.bookkeeping_, model.features_.bounded)[0]


def follow(before: ContinualClassifier, after: ContinualClassifier, agreed: dict[int, float | None]) -> None:
    """Multiply by the share of replayed samples of each class on which both models agree."""
    if not agreed or not isinstance(before.learner_.net, GenerativeClassifier):
        return
    x, label = before.replay(1000)
    now = after.predict(x)
    for c, product in agreed.items():
        mine = label == c
        agreed[c] = product * float((now[mine] == c).mean()) if product is not None and mine.any() else None


def read(path: Path) -> list[Row]:
    """Return the rows in a file of JSON lines; none if there is no file."""
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def run_all(path: Path, folder: Path) -> None:
    """Do the missing runs, and write the rows of each as it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    there = {(row.course, row.method) for row in read(path)}
    for course in ASKED:
        for method in METHODS:
            if (course, method) not in there:
                rows = [json.dumps(asdict(row)) + "\n" for row in measure(course, method, 0, folder)]
                with path.open("a") as file:
                    file.writelines(rows)
                print(method, course, len(rows), flush=True)


# ---- tables --------------------------------------------------------------------------------------------------------

Estimate = Callable[[Row], float | None]


def kept(row: Row) -> float | None:
    """Return what the self-report calls kept."""
    if row.drawn_then is None or row.drawn_now is None:
        return None
    return min(row.drawn_now / row.drawn_then, 1.0) if row.drawn_then else 1.0


def times(share: float | None, by: float | None) -> float | None:
    return None if share is None or by is None else share * by


ESTIMATES: dict[str, Estimate] = {
    "**accuracy when learned × kept**": lambda row: times(kept(row), row.then),
    "the same with the held-out figure": lambda row: times(kept(row), row.tested),
    "accuracy when learned: nothing is lost": lambda row: row.then,
    "drawn samples answered right now": lambda row: row.drawn_now,
    "accuracy when learned × agreement on replay": lambda row: times(row.agreed, row.then),
    "agreement on replay, as reported before": lambda row: row.agreed,
    "share of replay": lambda row: row.dreamt,
}


def tables(rows: Sequence[Row]) -> str:
    """Return rank correlation and mean error of every estimate, by method and over all that train, as Markdown."""
    groups = {method: [row for row in rows if row.method == method] for method in METHODS}
    groups = {"rtf, lwf and none": [r for r in rows if r.method in ("rtf", "lwf", "none")]} | groups
    lines = [f"| estimate of the accuracy now | {' | '.join(groups)} |", "| --- |" + " ---: |" * len(groups)]
    for name, estimate in ESTIMATES.items():
        lines.append(f"| {name} | {' | '.join(cell(estimate, mine) for mine in groups.values())} |")
    fell = [
        f"{100 * statistics.fmean(r.then for r in mine):.0f} → {100 * statistics.fmean(r.now for r in mine):.0f} %"
        for mine in groups.values()
    ]
    return "\n".join([*lines, f"| *accuracy when learned → now* | {' | '.join(fell)} |"])


def cell(estimate: Estimate, rows: Sequence[Row]) -> str:
    """Return Spearman's rank correlation, the mean error in points, and over how many classes after tasks."""
    pairs = [(value, row.now) for row in rows if (value := estimate(row)) is not None]
    if len(pairs) < FEWEST:
        return "–"
    found, truth = np.array(pairs).T
    rank = float(spearmanr(found, truth).statistic) if np.ptp(found) > 0 and np.ptp(truth) > 0 else np.nan
    said = "–" if np.isnan(rank) else f"{rank:.2f}"
    return f"{said}, {100 * np.abs(found - truth).mean():.1f} (n={len(pairs)})"
