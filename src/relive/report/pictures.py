"""The two pictures of a run: what it replays after each task, and how well it knew each task as learning went on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from relive.experiments.spec import RunResult
from relive.files import write_atomic
from relive.report.style import TASK_COLOURS

Samples = list[npt.NDArray[np.uint8]]


def draw_run(result: RunResult, samples: Samples, directory: Path) -> None:
    """Draw the pictures of a run into its directory, as PNG."""
    _save(accuracy_figure(result), directory / "accuracy.png")
    if samples:
        _save(replay_figure(samples), directory / "replay.png")


def replay_figure(samples: Samples, per_task: int = 20) -> Figure:
    """Return a row of generated inputs for every task: what is replayed after it."""
    gap = max(1, samples[0].shape[1] // 14)
    rows = []
    for pictures in samples:
        chosen = pictures[:per_task]
        padded = np.pad(chosen, ((0, 0), (gap, gap), (gap, gap)), constant_values=255)
        rows.append(np.hstack(list(padded)))
    height = 0.5 * len(rows) + 0.5
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for k, (axis, row) in enumerate(zip(axes, rows, strict=True)):
        axis.imshow(row, cmap="gray", vmin=0, vmax=255, interpolation="nearest", aspect="equal")
        axis.set_ylabel(f"after task {k + 1}", rotation=0, ha="right", va="center")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_frame_on(False)
    figure.suptitle("What the network replays")
    return figure


def accuracy_figure(result: RunResult) -> Figure:
    """Return the accuracy on each task, from its start to the end of the run."""
    spec = result.spec
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axis = figure.subplots()
    for k in range(spec.tasks):
        points = [(task * spec.iters + step, 100 * row[k]) for task, step, row in result.curve if len(row) > k]
        ends = [((i + 1) * spec.iters, 100 * result.accuracy_matrix[i][k]) for i in range(k, spec.tasks)]
        steps, values = zip(*sorted({**dict(points), **dict(ends)}.items()), strict=True)
        colour = TASK_COLOURS[k % len(TASK_COLOURS)]
        axis.plot(steps, values, color=colour, linewidth=1.6)
        axis.plot(*zip(*ends, strict=True), "o", color=colour, markersize=4, label=f"task {k + 1}")
    for k in range(1, spec.tasks):
        axis.axvline(k * spec.iters, color="0.85", linewidth=0.8, zorder=0)
    axis.set_xlabel("training steps (a line where a new task begins)")
    axis.set_ylabel("test accuracy (%)")
    axis.set_ylim(-2, 102)
    axis.set_xlim(0, spec.tasks * spec.iters)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    axis.set_title(f"{spec.method}, {spec.protocol} {spec.dataset}, scenario {spec.scenario}, seed {spec.seed}")
    return figure


def _save(figure: Figure, path: Path) -> None:
    write_atomic(path, lambda file: figure.savefig(file, format="png", dpi=120))
