"""Ten samples at a time against whole tasks: accuracy, and what an update costs. Writes docs/own-data.md's table.

python -m benchmarks.small_batches run [--data FOLDER] [--seeds 3]
python -m benchmarks.small_batches write
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track
from sklearn.model_selection import train_test_split

from benchmarks import stored
from benchmarks.common import ROOT
from benchmarks.own_data.courses import samples_of
from benchmarks.page import put
from relive import ContinualClassifier

OUTPUT, PAGE = ROOT / "reproduction/small-batches.json", ROOT / "docs/own-data.md"
TEN = 10
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {  # data set, classes per task, the model's parameters
    "`discriminant`, digits, two classes per task": ("digits", 2, {"method": "discriminant"}),
    "`discriminant`, letter, six classes per task": ("letter", 6, {"method": "discriminant"}),
    "`discriminant`, vowel, two classes per task": ("vowel", 2, {"method": "discriminant"}),
    "`rtf`, `consolidate_every=250`, digits": ("digits", 2, {"method": "rtf", "consolidate_every": 250}),
}
FEATURES, UPDATES = 400, 50
Found = dict[str, Any]


def taught(data: str, per_task: int, model: dict[str, Any], seed: int, folder: Path) -> tuple[float, float]:
    """Return the accuracy of a model trained in tasks, and of one given ten samples at a time."""
    torch.set_num_threads(1)
    samples = samples_of(data, folder)
    parts = train_test_split(samples.X, samples.y, test_size=0.3, stratify=samples.y, random_state=seed)
    X, X_test, y, y_test = parts
    whole = ContinualClassifier(random_state=seed, **model | {"consolidate_every": None})
    small = ContinualClassifier(random_state=seed, **model)
    order, random = np.random.default_rng(seed).permutation(np.unique(y)), np.random.default_rng(seed)
    for start in range(0, len(order), per_task):
        rows = random.permutation(np.flatnonzero(np.isin(y, order[start : start + per_task])))
        whole.partial_fit(X[rows], y[rows])
        for some in np.array_split(rows, -(-len(rows) // TEN)):
            small.partial_fit(X[some], y[some])
    return whole.score(X_test, y_test), small.consolidate().score(X_test, y_test)


def update(method: str) -> float:
    """Return the milliseconds of CPU time that ten more samples of 400 features take, the median of many."""
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(2000, FEATURES)), np.arange(2000) % 10
    model, seconds = ContinualClassifier(method).partial_fit(X, y), []
    for k in range(UPDATES):
        rows = slice(TEN * k, TEN * (k + 1))
        start = time.process_time()
        model.partial_fit(X[rows], y[rows])
        seconds.append(time.process_time() - start)
    return round(1000 * statistics.median(seconds), 1)


def run(options: argparse.Namespace) -> None:
    """Do what is missing."""
    found = read()
    keys = [(name, seed) for seed in range(options.seeds) for name in CASES if str(seed) not in found.get(name, {})]
    for name, seed in track(keys, "learning"):
        found.setdefault(name, {})[str(seed)] = taught(*CASES[name], seed, options.data)
        stored.write(OUTPUT, found)
    found["update"] = {method: update(method) for method in ("discriminant", "analytic")}
    stored.write(OUTPUT, found)


def read() -> Found:
    """Return what is stored."""
    found: Found = stored.read(OUTPUT, {})
    return found


def table(found: Found) -> str:
    """Return mean accuracies in %, their difference with its SEM, and a sentence on time."""
    text = ["| | in tasks | ten at a time | difference | n |", "| --- | --- | --- | --- | --- |"]
    for name in CASES:
        pairs = 100 * np.array(list(found[name].values()))  # (seeds, 2)
        (whole, small), apart = pairs.mean(0), pairs[:, 1] - pairs[:, 0]
        sem = apart.std(ddof=1) / np.sqrt(len(apart))
        text.append(f"| {name} | {whole:.1f} | {small:.1f} | {apart.mean():+.1f} ± {sem:.1f} | {len(pairs)} |")
    times = " and ".join(f"{ms} ms (`{method}`)" for method, ms in found["update"].items())
    return "\n".join([*text, "", f"Ten more samples of {FEATURES} features take {times} of CPU time."])


if __name__ == "__main__":
    stored.commands(__doc__, run, lambda: put(PAGE, "small-batches", table(read())))
