"""A page on a model's quality: accuracy by class, confusions, and calibration."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from relive.report.figures import settle, to_bytes

if TYPE_CHECKING:
    from relive.classifier.evaluation import Change, Evaluation

BLUE, GREY = "#0072b2", "0.55"
MOST_WRITTEN = 20  # classes with which a confusion matrix has its numbers written in


def evaluation_page(
    model: str,
    data: str,
    done: Evaluation,
    changed: Sequence[Change],
    confusions: Sequence[tuple[Any, Any, int]],
) -> str:
    """Return the page, one HTML file that needs nothing else."""
    environment = Environment(
        loader=PackageLoader("relive.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("evaluation.html").render(
        model=model,
        data=data,
        done=done,
        changed={change.label: change for change in changed if change.label is not None},
        total=changed[0] if changed else None,
        confusions=confusions,
        figures=[
            (
                "Confusions: one row per true class, one column per prediction, in % of the row.",
                _png(_confusion(done)),
            ),
            (
                "Accuracy by confidence. On the diagonal, confidence can be trusted.",
                _png(_reliability(done)),
            ),
        ],
        version=version("relive"),
    )


def _png(figure: Figure) -> str:
    settle(figure)
    return base64.b64encode(to_bytes(figure, "png")).decode()


def _confusion(done: Evaluation) -> Figure:
    """Return the confusion matrix, in shares of each true class."""
    asked = [i for i, label in enumerate(done.labels) if label in done.by_class]
    counts = done.confusion[asked]
    shares = 100 * counts / counts.sum(1, keepdims=True)
    side = min(3 + 0.3 * len(done.labels), 12)
    figure = Figure(
        figsize=(side, side * max(len(asked), 2) / max(len(done.labels), 2) * 0.9 + 0.6), layout="constrained"
    )
    axis = figure.subplots()
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    names = [_short(label) for label in done.labels]
    axis.set_xticks(
        range(len(names)),
        names,
        rotation=45 if max(map(len, names)) > 3 else 0,
        ha="right" if max(map(len, names)) > 3 else "center",
    )
    axis.set_yticks(range(len(asked)), [names[i] for i in asked])
    axis.set_xlabel("answer")
    axis.set_ylabel("truth")
    if len(done.labels) <= MOST_WRITTEN:
        for i, j in np.argwhere(counts > 0):
            colour = "white" if shares[i, j] > 50 else "black"
            axis.text(j, i, f"{shares[i, j]:.0f}", ha="center", va="center", fontsize=8, color=colour)
    return figure


def _reliability(done: Evaluation) -> Figure:
    """Return accuracy against confidence, with the number of answers at each."""
    figure = Figure(figsize=(4.5, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    n = sum(b.n for b in done.reliability)
    x, y = [b.confidence for b in done.reliability], [b.accuracy for b in done.reliability]
    axis.plot(x, y, color=BLUE, linewidth=1.5)
    axis.scatter(x, y, s=[20 + 300 * b.n / n for b in done.reliability], color=BLUE, zorder=3)
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("mean confidence (larger marks: more answers)")
    axis.set_ylabel("share of correct answers")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _short(label: Any) -> str:
    text = str(label)
    return text if len(text) <= 16 else f"{text[:15]}…"
