"""What RtF and BI-R replay of each class after the last task of split MNIST (Class-IL), side by side.

python -m benchmarks.replay_by_class [--seed 1] [--iterations 2000] [--output docs/pictures]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.progress import track

from benchmarks.common import ROOT
from relive import Learner, accuracy, load_data, make_method, scenario_of, tasks_of
from relive._util.seeds import stream
from relive.classifier.answers import most_likely_classes
from relive.networks import GenerativeClassifier
from relive.report.figures import save
from relive.report.style import method_title

GENERATED, SHOWN = 1000, 10


def replayed(method: str, seed: int, iterations: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Learn all tasks; return the mean accuracy, generated pictures (n, height, width) and their predicted classes."""
    tasks = tasks_of("split", load_data("mnist"), n_tasks=5, seed=seed)
    scenario = scenario_of("class", [task.classes for task in tasks])
    learner = Learner(make_method(method), scenario, tasks[0].n_inputs, seed=seed)
    for k in track(range(len(tasks)), f"{method_title(method)}: learning"):
        learner.learn(tasks[: k + 1], iterations)
    assert isinstance(learner.net, GenerativeClassifier)
    x = learner.net.generate(GENERATED, stream(seed, "replay by class"))
    names = np.array([name for task in tasks for name in task.names])
    order = np.array([c for task in tasks for c in task.classes])
    digits = np.empty(len(order), dtype=object)
    digits[order] = names  # the digit that each class is
    said = digits[most_likely_classes(learner, x, len(tasks) - 1)]
    mean = sum(accuracy(learner, task, k) for k, task in enumerate(tasks)) / len(tasks)
    return mean, x.view(GENERATED, *tasks[0].shape).numpy(), said.astype(str)


def drawn(seed: int, iterations: int) -> Figure:
    """Return the figure: a panel per method, a row per class with its share of all that is replayed."""
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = np.ravel(np.asarray(figure.subfigures(1, 2, wspace=0.06)))
    for panel, method in zip(panels, ("rtf", "bir"), strict=True):
        mean, pictures, said = replayed(method, seed, iterations)
        labels = sorted(set("0123456789"))
        axes = panel.subplots(len(labels), 1)
        for axis, label in zip(axes, labels, strict=True):
            mine = pictures[said == label][:SHOWN]
            blank = np.zeros((SHOWN - len(mine), *pictures.shape[1:]))
            axis.imshow(np.concatenate([*mine, *blank], axis=1), cmap="gray_r", vmin=0, vmax=1)
            axis.set_axis_off()
            axis.set_xlim(-80, axis.get_xlim()[1])  # room for the label
            share = 100 * float((said == label).mean())
            axis.text(-6, 14, f"{label}  ({share:.0f} %)", ha="right", va="center", fontsize=10)
        panel.suptitle(f"{method_title(method)}: {100 * mean:.1f} % right", fontsize=12)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/pictures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    save(drawn(options.seed, options.iterations), options.output, "replay-by-class", ["png"])


if __name__ == "__main__":
    main()
