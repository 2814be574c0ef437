"""Class-incremental learning on real data sets: ContinualClassifier against what people use today.

    python benchmarks/own_data.py [--only wine] [--seeds 5] [--output reproduction/own_data.json]

Every learner sees the same tasks in the same order, a few classes at a time, and is tested on all classes at the end.
Results are added to the output as they come; what is there is not run again. Prints the table as markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn
import torch
from rich.progress import track
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from relive import ContinualClassifier, load_data
from relive._util.versions import versions
from relive.classifier.features import Features

Array = npt.NDArray[Any]
Tasks = list[tuple[Array, Array]]  # samples and labels of each task
PASSES = 20  # over a task's data, for those that are told passes


def divided(X: Array, y: Array, per_task: int) -> Tasks:
    """Divide samples over tasks by their classes."""
    classes = np.unique(y)
    groups = [classes[i : i + per_task] for i in range(0, len(classes), per_task)]
    return [(X[np.isin(y, group)], y[np.isin(y, group)]) for group in groups]


def from_sklearn(bunch: Any, per_task: int, scale: float = 1.0) -> Callable[[int], tuple[Tasks, Array, Array]]:
    """Hold out 30 % of a data set that comes with scikit-learn, other ones for each seed."""

    def make(seed: int) -> tuple[Tasks, Array, Array]:
        parts = train_test_split(
            bunch.data / scale, bunch.target, test_size=0.3, stratify=bunch.target, random_state=seed
        )
        X, X_test, y, y_test = parts
        return divided(X, y, per_task), X_test, y_test

    return make


def fashion(seed: int) -> tuple[Tasks, Array, Array]:
    """Fashion-MNIST with its own test set, two classes at a time."""
    data = load_data("fashion-mnist", quiet=True)
    train, test = (images.reshape(len(images), -1) for images in (data.train_inputs, data.test_inputs))
    return divided(train, data.train_labels, 2), test, data.test_labels


DATA: dict[str, tuple[str, Callable[[int], tuple[Tasks, Array, Array]]]] = {
    "breast cancer": ("2 tasks of 1 class", from_sklearn(load_breast_cancer(), 1)),
    "wine": ("3 tasks of 1 class", from_sklearn(load_wine(), 1)),
    "digits": ("5 tasks of 2 classes", from_sklearn(load_digits(), 2, scale=16.0)),
    "Fashion-MNIST": ("5 tasks of 2 classes", fashion),
}


def ours(method: str) -> Callable[[Tasks, int], Any]:
    """Learn task after task with one of relive's methods."""

    def learn(tasks: Tasks, seed: int) -> Any:
        model = ContinualClassifier(method, random_state=seed)
        for X, y in tasks:
            model.partial_fit(X, y)
        return model.predict

    return learn


def together(tasks: Tasks, seed: int) -> Any:
    """Train the same classifier on everything at once, with as many steps as all tasks together had."""
    X, y = (np.concatenate(parts) for parts in zip(*tasks, strict=True))
    steps = sum(min(max(math.ceil(PASSES * len(y) / 128), 500), 5000) for _, y in tasks)
    return ContinualClassifier("none", iterations=steps, random_state=seed).fit(X, y).predict


def theirs(make: Callable[[int], Any]) -> Callable[[Tasks, int], Any]:
    """Learn task after task with scikit-learn's partial_fit; inputs are scaled as ours are, all classes declared."""

    def learn(tasks: Tasks, seed: int) -> Any:
        features, model = Features.of(tasks[0][0], "auto"), make(seed)
        classes, shuffle = np.unique(np.concatenate([y for _, y in tasks])), np.random.default_rng(seed)
        for X, y in tasks:
            inputs = features.inputs(X).numpy()
            for _ in range(max(PASSES, math.ceil(200 / math.ceil(len(y) / 128)))):  # at least 200 batches
                order = shuffle.permutation(len(y))
                model.partial_fit(inputs[order], y[order], classes=classes)
        return lambda X: model.predict(features.inputs(X).numpy())

    return learn


LEARNERS: dict[str, Callable[[Tasks, int], Any]] = {
    "RtF (the default)": ours("rtf"),
    "fine-tuning": ours("none"),
    "EWC": ours("ewc"),
    "SGDClassifier.partial_fit": theirs(lambda seed: SGDClassifier(loss="log_loss", random_state=seed)),
    "MLPClassifier.partial_fit": theirs(
        lambda seed: MLPClassifier((400, 400), random_state=seed),
    ),
    "everything at once": together,
}


def table(runs: list[dict[str, Any]]) -> str:
    """Return mean ± SEM in percent, with n, as markdown."""
    lines = [
        "| learner | " + " | ".join(f"{name} ({how})" for name, (how, _) in DATA.items()) + " |",
        "| --- |" + " --- |" * len(DATA),
    ]
    for learner in LEARNERS:
        cells = []
        for name in DATA:
            values = [100 * run["accuracy"] for run in runs if (run["data"], run["learner"]) == (name, learner)]
            n = len(values)
            sem = f" ± {statistics.stdev(values) / math.sqrt(n):.1f}" if n > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{sem} (n = {n})" if values else "not run")
        lines.append(f"| {learner} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(DATA), help="one data set")
    parser.add_argument("--learner", choices=list(LEARNERS), help="one learner")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("reproduction/own_data.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = json.loads(options.output.read_text()) if options.output.exists() else {"runs": []}
    runs: list[dict[str, Any]] = found["runs"]
    done = {(run["data"], run["learner"], run["seed"]) for run in runs}
    todo = [
        (name, learner, seed)
        for seed in range(options.seeds)
        for name in ([options.only] if options.only else DATA)
        for learner in ([options.learner] if options.learner else LEARNERS)
        if (name, learner, seed) not in done
    ]
    for name, learner, seed in track(todo, "learning"):
        tasks, X_test, y_test = DATA[name][1](seed)
        start = time.perf_counter()
        predict = LEARNERS[learner](tasks, seed)
        seconds = time.perf_counter() - start
        accuracy = float((predict(X_test) == y_test).mean())
        runs.append(
            {
                "data": name,
                "learner": learner,
                "seed": seed,
                "accuracy": accuracy,
                "seconds": round(seconds, 1),
                "code": versions()["code"],
            }
        )
        options.output.write_text(
            '{\n "versions": '
            + json.dumps(versions() | {"scikit-learn": sklearn.__version__})
            + ',\n "runs": [\n  '
            + ",\n  ".join(
                json.dumps(run) for run in sorted(runs, key=lambda run: (run["data"], run["learner"], run["seed"]))
            )
            + "\n ]\n}\n"
        )
    print(table(runs))


if __name__ == "__main__":
    main()
