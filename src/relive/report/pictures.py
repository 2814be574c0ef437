"""The figures made of images: examples of the protocols, and what a generator replays; and those of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from relive._util.console import shown
from relive.experiments.arrays import Pictures
from relive.experiments.spec import RunResult
from relive.report.figures import accuracy_figure, save


def draw_run(result: RunResult, samples: list[Pictures], directory: Path) -> None:
    """Draw the figures of a run into its directory, as PNG."""
    save(accuracy_figure(result), directory, "accuracy", ["png"])
    if samples:
        save(replay_figure(samples), directory, "replay", ["png"])


def split_examples(pictures: Pictures, top: int = 255) -> Figure:
    """Return the split protocol (figure 1): two classes per task.

    Parameters
    ----------
    pictures
        One picture of each class, in order.
    top
        The highest grey value.
    """
    n_tasks = len(pictures) // 2
    figure = Figure(figsize=(2.1 * n_tasks, 1.85), layout="constrained")
    for task, axis in enumerate(figure.subplots(1, n_tasks)):
        width = _show(axis, pictures[2 * task : 2 * task + 2], columns=2, top=top)
        axis.set_title(f"Task {task + 1}", fontweight="bold")
        labels = [f"“{2 * task}”\nfirst class", f"“{2 * task + 1}”\nsecond class"]
        axis.set_xticks([width / 4, 3 * width / 4], labels)
        axis.tick_params(length=0)
    return figure


def permuted_examples(
    pictures: Pictures, permutations: Sequence[npt.NDArray[np.intp] | None], top: int = 255
) -> Figure:
    """Return the permuted protocol (figure 2): the same classes in every task, their pixels in another order.

    Parameters
    ----------
    pictures
        One picture of each class, already padded.
    permutations
        Of each task, or None where there is none; the first two tasks and the last are shown.
    top
        The highest grey value.
    """
    some = [0, 1, None, len(permutations) - 1]
    figure = Figure(figsize=(12, 2.3), layout="constrained")
    panels = figure.subplots(1, len(some), width_ratios=[1, 1, 0.08, 1])
    for axis, task in zip(panels, some, strict=True):
        if task is None:
            axis.set_axis_off()
            axis.text(0.5, 0.5, "…", transform=axis.transAxes, ha="center", va="center", fontsize=20)
            continue
        order = permutations[task]
        flat = pictures.reshape(len(pictures), -1)
        _show(axis, pictures if order is None else flat[:, order].reshape(pictures.shape), columns=5, top=top)
        axis.set_title(f"Task {task + 1}", fontweight="bold")
        axis.set_xlabel("no permutation" if order is None else f"permutation {task}")
    return figure


def samples_figure(rows: Sequence[tuple[str, list[Pictures]]], tasks: Sequence[int]) -> Figure:
    """Return what generators replay after some tasks (figure 6), a row per run.

    Parameters
    ----------
    rows
        A label and the pictures after each task, of every run to show.
    tasks
        After which tasks, counted from 0.
    """
    figure = Figure(figsize=(12, 11.5 / len(tasks) * len(rows) + 0.4), layout="constrained")
    panels = figure.subplots(len(rows), len(tasks), squeeze=False)
    for row, (label, samples) in zip(panels, rows, strict=True):
        for axis, task in zip(row, tasks, strict=True):
            _show(axis, samples[task][:49], columns=7)
        row[0].set_ylabel(label)
    for axis, task in zip(panels[0], tasks, strict=True):
        axis.set_title(f"after task {task + 1}")
    return figure


def replay_figure(samples: list[Pictures], per_task: int = 20) -> Figure:
    """Return a row of generated inputs for every task of one run: what is replayed after it."""
    figure = Figure(figsize=(10, 0.5 * len(samples) + 0.5), layout="constrained")
    axes = figure.subplots(len(samples), 1, squeeze=False)[:, 0]
    for k, (axis, pictures) in enumerate(zip(axes, samples, strict=True)):
        _show(axis, pictures[:per_task], columns=per_task)
        axis.set_ylabel(f"after task {k + 1}", rotation=0, ha="right", va="center")
    figure.suptitle("What the network replays")
    return figure


def classes_figure(rows: Sequence[tuple[str, Pictures]], per_class: int = 20) -> Figure:
    """Return a row of pictures for every class: what a model replays of it. A class that it does not is left blank.

    Parameters
    ----------
    rows
        A class's name and its pictures, of every class.
    per_class
        How many are shown.
    """
    figure = Figure(figsize=(10, 0.5 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axis, (name, pictures) in zip(axes, rows, strict=True):
        blank = np.full((max(per_class - len(pictures), 0), *pictures.shape[1:]), 255, dtype=np.uint8)
        _show(axis, np.concatenate([pictures[:per_class], blank]), columns=per_class)
        axis.set_ylabel(shown(name), rotation=0, ha="right", va="center", parse_math=False)
    figure.suptitle("What the model replays")
    return figure


def _show(axis: Axes, pictures: Pictures, columns: int, top: int = 255) -> int:
    """Draw pictures side by side with white gaps, and return the width of it all."""
    gap = max(1, pictures.shape[1] // 14)
    colour = [(0, 0)] * (pictures.ndim - 3)
    padded = np.pad(pictures, [(0, 0), (gap, gap), (gap, gap), *colour], constant_values=top)
    rows = [np.hstack(list(padded[i : i + columns])) for i in range(0, len(padded), columns)]
    whole = np.vstack([row for row in rows if row.shape == rows[0].shape])
    axis.imshow(whole, cmap="gray", vmin=0, vmax=top, interpolation="nearest", aspect="equal")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_frame_on(False)
    return int(whole.shape[1])
