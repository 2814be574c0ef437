"""What each part of ``discriminant`` contributes: the method without it, on the same tasks.

python -m benchmarks.ablation run --seeds 5     # what is missing in reproduction/own-data/ablation.json
python -m benchmarks.ablation write             # the table of docs/closed-forms.md
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from rich.progress import track

from benchmarks import stored
from benchmarks.common import ROOT
from benchmarks.own_data.courses import COURSES, lessons
from benchmarks.own_data.results import loaded
from benchmarks.page import put
from relive import ContinualClassifier
from relive._util.statistics import mean_and_sem

STORED = ROOT / "reproduction/own-data/ablation.json"
PAGE = ROOT / "docs/closed-forms.md"
COURSES_USED = (
    *("iris", "wine", "zoo", "glass", "sonar", "vehicle", "pima", "vowel", "soybean", "breast-cancer", "ionosphere"),
    *("dna", "satellite", "docstrings", "manual-pages", "package-sections"),
)
METHODS = "relive.methods"


@dataclass(frozen=True)
class Variant:
    """The method with something changed.

    Attributes
    ----------
    method, numbers
        Its name, and the limit on numbers kept if it is not the default.
    constants
        Constants of the package by name, and their values instead.
    """

    method: str = "discriminant"
    numbers: float | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)


def _always(ridge: float) -> Variant:
    return Variant(constants={f"{METHODS}.discriminant.chosen_ridge": lambda features, roughly=False: ridge})


WHOLE = "`discriminant`"
VARIANTS = {
    WHOLE: Variant(),
    "without the Gaussian per class": Variant(constants={f"{METHODS}.discriminant.WEIGHT": 0.0}),
    "Gaussians weighted 1/2 instead of 1/4": Variant(constants={f"{METHODS}.discriminant.WEIGHT": 0.5}),
    "the Gaussians alone": Variant(constants={f"{METHODS}.discriminant.WEIGHT": 1e4}),
    "without random features and Gaussians (`slda`)": Variant("slda"),
    "ridge regression instead of both (`analytic`)": Variant("analytic"),
    "ridge always 0.1": _always(0.1),
    "ridge always 0.01": _always(0.01),
    "ridge by the evidence only": Variant(constants={f"{METHODS}.ridge.MANY": math.inf}),
    "ridge by generalised cross-validation only": Variant(constants={f"{METHODS}.ridge.MANY": 0.0}),
    "evidence without a floor for the noise": Variant(constants={f"{METHODS}.ridge.FLOOR": 0.0}),
    "500,000 numbers instead of 2 million": Variant(numbers=5e5),
    "100,000 numbers": Variant(numbers=1e5),
}


def accuracy(course: str, variant: Variant, seed: int, options: argparse.Namespace) -> float:
    """Return the share of test samples that are classified correctly after the last task."""
    samples = loaded(COURSES[course].source, options.data)
    taught = lessons(samples, COURSES[course], seed)
    settings = None if variant.numbers is None else {"numbers": variant.numbers}
    with ExitStack() as changed:
        for name, value in variant.constants.items():
            changed.enter_context(patch(name, value))
        model = ContinualClassifier(variant.method, settings=settings, calibrate=False, random_state=seed)
        for X, y in taught.tasks:
            model.partial_fit(X, y)
        return float((model.predict(taught.X_test) == taught.y_test).mean())


def run(options: argparse.Namespace) -> None:
    """Do what is missing, and store it after every course."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, dict[str, float]]] = stored.read(STORED, {})  # course, variant, seed
    for course in track(COURSES_USED, "learning"):
        for name, variant in VARIANTS.items():
            by_seed = found.setdefault(course, {}).setdefault(name, {})
            for seed in range(options.seeds):
                if str(seed) not in by_seed:
                    by_seed[str(seed)] = round(accuracy(course, variant, seed, options), 5)
        stored.write(STORED, found)


def write() -> None:
    """Put the table into the page: differences over the seeds of a course, then over courses."""
    found = stored.read(STORED, {})
    lines = ["| variant | mean | against the whole | worst | best |", "| --- | --- | --- | --- | --- |"]
    for name in VARIANTS:
        means, apart = {}, {}  # of each course
        for course, variants in found.items():
            mine, whole = variants[name], variants[WHOLE]
            means[course] = 100 * statistics.fmean(mine.values())
            apart[course] = 100 * statistics.fmean(mine[seed] - whole[seed] for seed in mine)
        mean, sem = mean_and_sem(list(apart.values()))
        worst, best = min(apart, key=apart.__getitem__), max(apart, key=apart.__getitem__)
        rest = "| | | |" if name == WHOLE else f"| {mean:+.1f} ± {sem:.1f} | {_at(apart, worst)} | {_at(apart, best)} |"
        lines.append(f"| {name} | {statistics.fmean(means.values()):.1f} {rest}")
    seeds = {len(by_seed) for variants in found.values() for by_seed in variants.values()}
    n = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    lines += ["", f"{len(found)} courses of [the benchmark](benchmark.md), {n} seeds each; ± SEM over courses."]
    put(PAGE, "ablation", "\n".join(lines))


def _at(apart: dict[str, float], course: str) -> str:
    return f"{apart[course]:+.1f} ({course})"


if __name__ == "__main__":
    stored.commands(__doc__, run, write)
