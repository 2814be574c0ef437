"""The pictures that explain: how fine-tuning forgets, what the three scenarios ask, how a method is chosen.

python -m benchmarks.docsite.pictures    # into docs/pictures
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from relive._util.fidelity import AS_RUN
from relive._util.statistics import mean_and_sem
from relive.experiments.spec import RunResult
from relive.experiments.store import Store
from relive.paper.comparison import compare
from relive.paper.published import PAPER_DATASET, counts
from relive.paper.tuned import LATER
from relive.report.figures import agreement_figure, save
from relive.report.style import method_colour, method_marker, method_title

ROOT = Path(__file__).parents[2]
LEDGER, PICTURES = ROOT / "reproduction", ROOT / "docs/pictures"
FORGETTING: dict[str, dict[str, Any]] = {  # the runs that are drawn, by their encoders and settings
    "discriminant": {"encoder": "random", "numbers": 1.1e6},
    "rtf": {"encoder": "mlp"},
    "lwf": {"encoder": "mlp"},
    "ewc": {"encoder": "mlp", "lam": 5000.0},
    "none": {"encoder": "mlp"},
}
INK, QUIET, BOX, ANSWER = "#1a1a1a", "#5f5f5f", "#eef2f7", "#d9ead3"
SCENARIOS = {  # title: what is given besides the picture, the question, the answer
    "Task-IL": ("the task: 2 or 3", "2 or 3?", "3"),
    "Domain-IL": ("nothing", "first or second\nof its pair?", "second"),
    "Class-IL": ("nothing", "which of all digits\nmet so far?", "3"),
}
RULE = (
    (
        "Must classes be forgettable\nwithout a trace?",
        "discriminant",
        "with sums for each class",
    ),  # question, answer if yes, and why
    ("Your own network, or a named encoder?", "rtf", "trained, with generated replay"),
    ("Images of a known shape?", "discriminant", "closed form on random convolutions"),
    ("Domain-IL: the same classes\nin another context?", "domains", "a closed form for every domain"),
    (
        "Rows of 513 to 2,000 numbers, not all\nin [0, 1], such as a network's features?",
        "slda",
        "closed form on all of them",
    ),
)
OTHERWISE = ("discriminant", "closed form on random features")


def forgetting(results: list[RunResult]) -> Figure:
    """Return the accuracy on the tasks met so far, after each task of split MNIST in Class-IL."""
    runs: dict[str, dict[int, RunResult]] = defaultdict(dict)  # by method and seed
    for result in results:
        spec = result.spec
        asked = (spec.protocol, spec.scenario, spec.dataset) == ("split", "class", PAPER_DATASET)
        if (
            asked
            and counts("split", spec.seed)
            and spec.fidelity == AS_RUN
            and FORGETTING.get(spec.method)
            == {
                "encoder": spec.encoder,
                **spec.settings,
            }
        ):
            runs[spec.method][spec.seed] = result
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    axis = figure.subplots()
    for method in FORGETTING:
        curves = [
            [100 * sum(row[: k + 1]) / (k + 1) for k, row in enumerate(r.accuracy_matrix)]
            for r in runs[method].values()
        ]
        means = [mean_and_sem(column)[0] for column in zip(*curves, strict=True)]
        label = f"{method_title(method)} (n = {len(curves)})"
        style: dict[str, Any] = {"color": method_colour(method), "marker": method_marker(method)}
        axis.plot(range(1, len(means) + 1), means, label=label, linewidth=2, **style)
    axis.set(xlabel="tasks learned: two new digits each, old data gone", ylabel="accuracy on all digits so far (%)")
    axis.set_xticks(range(1, 6))
    axis.set_ylim(0, 103)
    axis.grid(axis="y", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def scenarios() -> Figure:
    """Return what the three scenarios give and ask, on the same five tasks."""
    digits = load_digits()
    samples = [digits.images[list(digits.target).index(c)] for c in range(10)]
    figure = Figure(figsize=(8.4, 5.0), layout="constrained")
    grid = figure.add_gridspec(2, 1, height_ratios=[1, 2.1])
    top, bottom = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
    top.suptitle("Five tasks, learned one after the other; the data of earlier ones are gone", fontsize=11)
    for k, axis in enumerate(top.subplots(1, 5)):
        for j in range(2):
            axis.imshow(samples[2 * k + j], cmap="gray_r", extent=(1.2 * j, 1.2 * j + 1, 0, 1))
        axis.set(xlim=(-0.15, 2.35), ylim=(-0.15, 1.15), xticks=[], yticks=[], title=f"task {k + 1}")
        axis.title.set_fontsize(10)
        axis.spines[:].set_color("#bbbbbb")
    for axis, (title, (given, asked, answer)) in zip(bottom.subplots(1, 3), SCENARIOS.items(), strict=True):
        _blank(axis)
        axis.text(5, 9.4, title, ha="center", fontsize=13, weight="bold", color=INK)
        axis.imshow(samples[3], cmap="gray_r", extent=(3.9, 6.1, 6.3, 8.5), zorder=2)
        _box(axis, 5, 5.2, f"also given: {given}", BOX)
        _box(axis, 5, 3.2, asked, BOX)
        _box(axis, 5, 1.0, f"answer: {answer}", ANSWER, weight="bold")
        for y in (4.45, 1.9):
            axis.annotate("", (5, y - 0.35), (5, y + 0.15), arrowprops={"arrowstyle": "->", "color": QUIET})
    return figure


def rule() -> Figure:
    """Return how a method is chosen if none is named."""
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    axis = figure.subplots()
    _blank(axis)
    axis.set(xlim=(0, 16), ylim=(0.2, 12))
    for k, (question, method, why) in enumerate(RULE):
        y = 11.2 - 2 * k
        _box(axis, 4, y, question, BOX)
        _box(axis, 12.6, y, f"{method}\n{why}", ANSWER)
        axis.annotate("yes", (10.0, y), (8.6, y), va="center", arrowprops={"arrowstyle": "->", "color": QUIET})
        axis.annotate("", (4, y - 1.45), (4, y - 0.55), arrowprops={"arrowstyle": "->", "color": QUIET})
        axis.text(4.2, y - 1.05, "no", color=QUIET, fontsize=10)
    _box(axis, 4, 1.2, "\n".join(OTHERWISE), ANSWER)
    return figure


def _blank(axis: Axes) -> None:
    axis.set(xlim=(0, 10), ylim=(0, 10))
    axis.axis("off")


def _box(axis: Axes, x: float, y: float, text: str, colour: str, weight: str = "normal") -> None:
    style = {"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": "#c4ccd6"}
    axis.text(x, y, text, ha="center", va="center", fontsize=10, color=INK, weight=weight, bbox=style)


def main() -> None:
    """Draw them all."""
    results, _ = Store(LEDGER).scan()
    drawn = {"forgetting": forgetting(results), "scenarios": scenarios(), "rule": rule()}
    drawn["agreement-split"] = agreement_figure(compare(results, "split"))
    drawn["agreement-permuted"] = agreement_figure(compare(results, "permuted", LATER))
    for name, figure in drawn.items():
        save(figure, PICTURES, name, ("png",))
        print(f"picture   {PICTURES / name}.png")


if __name__ == "__main__":
    main()
