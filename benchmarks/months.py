"""Sentence embeddings whose classes come two a month: accuracy on all classes so far, month by month.

python -m benchmarks.months run [--data FOLDER] [--seeds 3]    # what is missing in reproduction/months.json
python -m benchmarks.months write                              # the table and figure of docs/own-data.md
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.progress import track

from benchmarks import stored
from benchmarks.common import ROOT
from benchmarks.own_data.courses import COURSES, lessons, samples_of
from benchmarks.own_data.learner import Setting
from benchmarks.own_data.learners import LEARNERS
from benchmarks.page import put
from relive.report.figures import save

COURSE = "package-sections"
SHOWN = {
    "auto": "auto",
    "rtf": "rtf",
    "a Gaussian per class": "a Gaussian per class",
    "streaming LDA": "LDA, from sums",
    "random features + ridge": "random features + ridge, from sums",
    "naive Bayes": "naive Bayes, from sums",
    "none (fine-tuning)": "fine-tuning",
    "everything at once: the same MLP": "retraining the MLP on everything",
    "everything at once: SVC": "retraining an SVC on everything",
}
OUTPUT, PAGE = ROOT / "reproduction/months.json", ROOT / "docs/own-data.md"
Found = dict[str, dict[str, list[float]]]  # learner, seed: the accuracy after each month


def months(name: str, seed: int, folder: Path) -> list[float]:
    """Train month after month, and test on the classes so far."""
    torch.set_num_threads(1)
    samples = samples_of(COURSES[COURSE].source, folder)
    taught = lessons(samples, COURSES[COURSE], seed)
    learner = LEARNERS[name].make(Setting(seed, np.unique(samples.y), samples.shape))
    known: set[int] = set()
    accuracy = []
    for X, y in taught.tasks:
        learner.learn(X, y)
        known |= set(y.tolist())
        asked = np.isin(taught.y_test, sorted(known))
        accuracy.append(round(float((learner.predict(taught.X_test[asked]) == taught.y_test[asked]).mean()), 5))
    return accuracy


def run(options: argparse.Namespace) -> None:
    """Do what is missing."""
    found = read()
    keys = [(name, seed) for seed in range(options.seeds) for name in SHOWN if str(seed) not in found.get(name, {})]
    for name, seed in track(keys, "learning"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.setdefault(name, {})[str(seed)] = months(name, seed, options.data)
        stored.write(OUTPUT, found)


def read() -> Found:
    """Return what is stored."""
    found: Found = stored.read(OUTPUT, {})
    return found


def table(found: Found) -> str:
    """Return mean accuracies in %, a row per learner; of the last month also the SEM."""
    n_months = len(next(iter(found["auto"].values())))
    text = ["| learner | " + " | ".join(f"month {k + 1}" for k in range(n_months)) + " | n |"]
    text.append("| --- |" + " --- |" * (n_months + 1))
    for name, title in SHOWN.items():
        runs = 100 * np.array(list(found[name].values()))  # (seeds, months)
        cells = [f"{value:.1f}" for value in runs.mean(0)]
        cells[-1] += f" ± {runs[:, -1].std(ddof=1) / np.sqrt(len(runs)):.1f}"
        text.append(f"| {title} | {' | '.join(cells)} | {len(runs)} |")
    return "\n".join(text)


def figure(found: Found) -> Figure:
    """Return the same as curves."""
    drawn = Figure(figsize=(8, 4.2), layout="constrained", facecolor="white")
    axis = drawn.subplots()
    for name, title in SHOWN.items():
        mean = 100 * np.mean(list(found[name].values()), axis=0)
        style = "--" if LEARNERS[name].keeps_data else "-"
        axis.plot(range(1, len(mean) + 1), mean, marker="o", markersize=3, label=title, linestyle=style)
    axis.set_xlabel("month; two more classes in each")
    axis.set_ylabel("accuracy on all classes so far (%)")
    axis.spines[["top", "right"]].set_visible(False)
    drawn.legend(loc="outside right center", frameon=False, fontsize=8)
    return drawn


def write() -> None:
    """Put the table and the figure into the documentation."""
    put(PAGE, "months", table(read()))
    save(figure(read()), ROOT / "docs/pictures", "months", ("png",))


if __name__ == "__main__":
    stored.commands(__doc__, run, write)
