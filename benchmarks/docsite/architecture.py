"""The two pictures of docs/architecture.md: which package may import which, and the path of one batch.

python -m benchmarks.docsite.architecture    # into docs/pictures
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from relive.report.figures import save

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"
INK, QUIET, BOX, HOOK = "#1a1a1a", "#5f5f5f", "#eef2f7", "#fde9d4"
PURPOSE = {
    "cli": "the command line",
    "studio": "the page on this machine",
    "report": "tables, figures, HTML",
    "paper": "published numbers, grids",
    "serving": "a model over HTTP",
    "inference": "predictions in NumPy",
    "classifier": "estimator, model file",
    "experiments": "specs, runs, sweeps, stores",
    "methods": "one file per method",
    "core": "the training loop and its parts",
    "networks": "encoders, decoders, heads",
    "data": "data sets, protocols, tasks",
    "_util": "files, schemas, seeds",
}
STEPS = (  # (address, what it does, whether a method decides it), in the order of Learner.step, for RtF
    ("relive.data.tasks:Examples", "pixels of the drawn rows become numbers", False),
    ("relive.core.sources:Together", "128 rows of the current task: input, unit, active units, weight", False),
    ("relive.methods.generative_replay:RtF.replay", "128 rows that the copy generates, with its soft targets", True),
    ("relive.core.batch:concat", "one batch; current rows weigh 1/N, replayed ones 1 − 1/N", False),
    ("relive.methods.generative_replay:RtF.loss", "one forward pass: classification and reconstruction", True),
    ("relive.networks.models:FeedbackClassifier", "encoder, head, latent variables, feedback connections", False),
    ("relive.core.learner:Learner.step", "the gradient of the weighted loss", False),
    ("relive.core.method:Method.regularise", "EWC and SI add the gradient of their penalty here", True),
    ("relive.core.optimizers:Adam.step", "the step", False),
    ("relive.core.method:Method.after_step", "SI adds up what each parameter has contributed", True),
)


def layers() -> list[list[str]]:
    """Return the packages from top to bottom, as in the import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [row.split(" | ") for row in next(c["layers"] for c in contracts if c["type"] == "layers")]


def imports(package: str) -> set[str]:
    """Return the packages that one package's files import from, also only for type checking."""
    found = set()
    for path in (ROOT / "src/relive" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.split(".")[1] for name in names if name.startswith("relive.")}
    return found - {package}


def packages() -> Figure:
    """Return which package imports from which: a dot right of the diagonal, never left of it."""
    rows = [name for names in layers() for name in names]
    n = len(rows)
    figure = Figure(figsize=(8.4, 5.0), layout="constrained")
    axis = figure.subplots()
    for k, name in enumerate(rows):
        used = imports(name)
        axis.add_patch(Rectangle((k - 0.5, k - 0.5), 1, 1, color="#d5dce6"))
        axis.scatter([j for j, other in enumerate(rows) if other in used], [k] * len(used), s=36, color="#35618e")
    axis.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    axis.xaxis.tick_top()
    axis.set_xticks(range(n), rows, rotation=45, ha="left", fontsize=9, color=INK)
    axis.set_yticks(range(n), [f"{name}: {PURPOSE[name]}" for name in rows], fontsize=9.5, color=INK)
    axis.set_xticks([k + 0.5 for k in range(n - 1)], minor=True)
    axis.set_yticks([k + 0.5 for k in range(n - 1)], minor=True)
    axis.grid(which="minor", color="#e6e9ee")
    axis.tick_params(which="both", length=0)
    axis.spines[:].set_color("#c4ccd6")
    return figure


def batch() -> Figure:
    """Return the path of one batch through a step."""
    figure = Figure(figsize=(8.4, 0.52 * len(STEPS) + 0.3), layout="constrained")
    axis = _blank(figure, len(STEPS))
    for k, (address, what, decides) in enumerate(STEPS):
        y = len(STEPS) - k - 0.5
        module, _, name = address.partition(":")
        file = module.removeprefix("relive.").replace(".", "/")
        axis.text(0.1, y, f"{k + 1}", ha="left", va="center", fontsize=10, color=QUIET)
        box = _box(HOOK if decides else BOX)
        axis.text(0.6, y, f"{file}.py  {name}", ha="left", va="center", fontsize=9, color=INK, bbox=box)
        axis.text(5.2, y, what, ha="left", va="center", fontsize=9.5, color=INK)
        if k + 1 < len(STEPS):
            axis.annotate("", (1.2, y - 0.7), (1.2, y - 0.3), arrowprops={"arrowstyle": "->", "color": QUIET})
    return figure


def _blank(figure: Figure, height: int) -> Axes:
    axis = figure.subplots()
    axis.set(xlim=(0, 10), ylim=(0, height))
    axis.axis("off")
    return axis


def _box(colour: str = BOX) -> dict[str, str]:
    return {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "#c4ccd6"}


def main() -> None:
    """Draw both."""
    for name, figure in {"layers": packages(), "batch": batch()}.items():
        save(figure, PICTURES, name, ("png",))
        print(f"picture   {PICTURES / name}.png")


if __name__ == "__main__":
    main()
