"""How the constants of the simple learners were chosen: on parts of the training samples, with other seeds.

One value for all data sets: the one with the best mean accuracy over the courses. A test set that comes with a data set
is not used. Where test samples are held out anew for every seed, a validation sample here may be a test sample of a
reported seed; with one constant for all courses that matters little, and it favours these learners, with which relive
is compared.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sklearn.linear_model import SGDClassifier

from benchmarks.own_data.courses import COURSES, PICTURES
from benchmarks.own_data.incremental import of_linear
from benchmarks.own_data.learners import Entry, partial_fit, sums
from benchmarks.own_data.results import measure
from benchmarks.own_data.sums import Gaussians, RandomConvolutions, RandomFeatures, Ridge

SEEDS = (100, 101)
LARGE = ("mnist", "fashion-features", "shuttle")  # left out, to save time
MOST = 6000  # samples of a course
SHRINKAGES = (1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 0.6)
STRENGTHS = (1e-3, 1e-2, 0.1, 1, 10, 100, 1000)
CANDIDATES: dict[str, tuple[tuple[float, ...], Callable[[float], Entry]]] = {
    "naive Bayes": (SHRINKAGES, lambda v: sums(lambda _: Gaussians(diagonal=True, shrinkage=v))),
    "LDA": (SHRINKAGES, lambda v: sums(lambda _: Gaussians(shared=True, shrinkage=v))),
    "Gaussians": (SHRINKAGES, lambda v: sums(lambda _: Gaussians(shrinkage=v))),
    "features": (STRENGTHS, lambda v: sums(lambda setting: Ridge(RandomFeatures(setting), v))),
    "convolutions": (STRENGTHS, lambda v: sums(lambda setting: Ridge(RandomConvolutions(setting), v), True)),
    "linear": (
        (1, 5, 20),
        lambda v: partial_fit(lambda seed: SGDClassifier(loss="log_loss", random_state=seed), int(v), of_linear),
    ),
}


def tune(options: argparse.Namespace) -> None:
    """Print the mean accuracy of every value, the best in bold."""
    for name in options.name or CANDIDATES:
        values, make = CANDIDATES[name]
        pictures_only = make(values[0]).pictures_only
        courses = [
            course
            for course, facts in COURSES.items()
            if facts.source not in LARGE and (facts.kind == PICTURES or not pictures_only)
        ]
        found = {value: mean(replace(make(value), most=MOST), courses, options.data) for value in values}
        best = max(found.values())
        said = (
            f"{'**' if v == best else ''}{key:g}: {100 * v:.2f}{'**' if v == best else ''}" for key, v in found.items()
        )
        print(f"{name}: {', '.join(said)}", flush=True)


def mean(entry: Entry, courses: list[str], folder: Path) -> float:
    """Return the mean validation accuracy of a learner over courses and seeds."""
    return statistics.fmean(
        measure((course, "candidate", seed), folder, validation=True, entry=entry).accuracy
        for course in courses
        for seed in SEEDS
    )
