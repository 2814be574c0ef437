"""Every figure of the report, with its name, its caption and a text description."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data, survey
from relive.experiments.arrays import Pictures
from relive.experiments.compare import OWN_CORE, SideBySide
from relive.experiments.resultfile import DamagedResult
from relive.experiments.spec import PROBE_ROWS, SCENARIO_NAMES, RunResult
from relive.experiments.store import Store
from relive.paper.comparison import Comparison
from relive.paper.published import PRESETS
from relive.paper.tuned import Tuned, as_in_paper
from relive.report import figures, own_runs, pictures
from relive.report.style import PROTOCOL_TITLES, SCENARIO_TITLES, method_title
from relive.report.tables import settings_notes

SAMPLED_TASKS = {"split": (0, 1, 2, 3, 4), "permuted": (0, 3, 5, 8)}
GENERATORS = ("rtf", "dgr-distill", "dgr")
ORDERS = {
    "split": "Every seed shuffles the digits over the tasks.",
    "permuted": "",
}
SEEN = {
    "split": "",
    "permuted": "With seed 0 the first task's digits are not permuted, so that its samples can be recognised: ideally "
    "one in four after four tasks, one in nine after nine.",
}
PADDING = 2  # pixels on each side before they are permuted, as in the paper


@dataclass(frozen=True)
class Drawn:
    """A figure and its texts: the file's name, a heading, a caption, and a description instead of the image."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure


def examples(data_dir: Path | None = None) -> list[Drawn]:
    """Draw the two protocols (figures 1 and 2) with MNIST if it is on this machine, else with small digits."""
    copies = survey("mnist", data_dir)
    data = load_data("digits" if any(copy.problem for copy in copies) else "mnist", data_dir, quiet=True)
    firsts = _one_of_each(data)
    note = "" if data.name == "mnist" else f" Drawn with the data set {data.name}, since MNIST is not on this machine."
    padded = np.pad(firsts, ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))
    rng = np.random.default_rng(0)
    orders = [None, *(rng.permutation(padded[0].size) for _ in range(PRESETS["permuted"]["tasks"] - 1))]
    return [
        Drawn(
            "examples-split",
            "The split protocol (figure 1)",
            "Ten digits become five tasks of two." + note,
            "Five panels, one per task, with two digits each: 0 and 1, 2 and 3, up to 8 and 9.",
            pictures.split_examples(firsts, data.top),
        ),
        Drawn(
            "examples-permuted",
            "The permuted protocol (figure 2)",
            "Every task has all ten digits, padded by two pixels, with the pixels in an order of its own." + note,
            "Three panels: the ten digits as they are, and twice with their pixels shuffled beyond recognition.",
            pictures.permuted_examples(padded, orders, data.top),
        ),
    ]


def _one_of_each(data: Dataset) -> Pictures:
    """Return the first test picture of every class."""
    rows = [int(np.flatnonzero(data.test_labels == label)[0]) for label in range(data.n_classes)]
    return data.test_inputs[rows]


def own_gallery(group: SideBySide, number: int) -> Iterator[Drawn]:
    """Draw the user's own runs side by side."""
    yield Drawn(
        f"own-{number}-learning",
        f"{group.title}: as learning goes on",
        f"Accuracy over the tasks so far, on the first {PROBE_ROWS} test rows of each; mean of the runs.",
        "A line per method: its test accuracy over training steps, a panel per scenario.",
        own_runs.learning_figure(group),
    )
    yield Drawn(
        f"own-{number}-time",
        f"{group.title}: accuracy against training time",
        "A mark per run, a star per mean of several. Hollow or pale: the run had its core for less than "
        f"{100 * OWN_CORE:.0f} % of the time, or that is not known, and its time says little.",
        "Scatter plots of average accuracy against training seconds, one per scenario.",
        own_runs.time_figure(group),
    )


def gallery(table: Comparison, results: Sequence[RunResult], tuned: Tuned, root: Path) -> Iterator[Drawn]:
    """Draw all figures of one protocol.

    Parameters
    ----------
    table
        The runs to show.
    results
        All results, those of grid searches among them.
    tuned
        What the grid searches chose.
    root
        The runs directory, for the pictures that generators made.
    """
    name, protocol = table.protocol, PROTOCOL_TITLES[table.protocol]
    if any(cell.n for cell in table.cells.values()):
        yield Drawn(
            f"agreement-{name}",
            f"{protocol}: every run against the published cell",
            "A dot per run, seeds from the bottom of a row to its top, in standard deviations of the published runs "
            "from their mean; the grey band is one of them on either side. Black: the 95 % interval of the difference "
            f"between the means. Triangles: beyond the edge. Settings: {'. '.join(settings_notes(table))}.",
            f"Dot plots of the difference to the published accuracy on {protocol}, one per scenario, a row per method.",
            figures.agreement_figure(table),
        )
        yield Drawn(
            f"time-{name}",
            f"{protocol}: accuracy against training time (figure {4 if name == 'split' else 5})",
            "A mark per run, a star per mean of several, with its method's mark in it. Hollow or pale: the run had its "
            f"core for less than {100 * OWN_CORE:.0f} % of the time, or that is not known, and its time says little; a "
            "star's time is the mean of the other runs where there are any, else the median. Settings: "
            f"{'. '.join(settings_notes(table))}. {_processors(table)}",
            f"Scatter plots of average accuracy against training seconds on {protocol}, one per scenario.",
            figures.time_figure(table),
        )
    yield from _samples(name, results, Store(root))
    for scenario in SCENARIO_NAMES:
        yield from _as_learning_goes_on(table, scenario)
    searches = figures.grid_figure(results, tuned, name)
    if searches is not None:
        yield Drawn(
            f"grid-{name}",
            f"{protocol}: grid searches (appendix)",
            "One run per value, judged on the test sets. Star: the chosen value; dotted line: the default.",
            f"Average accuracy on {protocol} against hyperparameter values, a row per scenario, a column per method.",
            searches,
        )


def _processors(table: Comparison) -> str:
    """Say on what the runs were timed."""
    kinds = {run.versions.get("processor") for cell in table.cells.values() for run in cell.runs}
    if kinds == {None}:
        return "On which kind of processor they were timed was not recorded."
    if len(kinds) == 1:
        return f"All were timed on {kinds.pop()}."
    return "They were not all timed on the same kind of processor, or that is not known: compare times with care."


def _samples(name: str, results: Sequence[RunResult], store: Store) -> Iterator[Drawn]:
    """Draw what the generators replay: of each method the first seed with pictures, in the hardest scenario."""
    rows = []
    for method in GENERATORS:
        runs = [r for r in results if (r.spec.protocol, r.spec.method) == (name, method) and as_in_paper(r.spec, {})]
        for run in sorted(runs, key=lambda run: (-SCENARIO_NAMES.index(run.spec.scenario), run.spec.seed)):
            try:
                samples = store.samples(run.spec)
            except DamagedResult as error:
                warnings.warn(f"left out: {error}", stacklevel=2)
                continue
            if len(samples) == run.spec.tasks:
                label = f"{method_title(method)}\n{SCENARIO_TITLES[run.spec.scenario]}, seed {run.spec.seed}"
                rows.append((label, samples))
                break
    if not rows:
        return
    protocol, tasks = PROTOCOL_TITLES[name], SAMPLED_TASKS[name]
    yield Drawn(
        f"samples-{name}",
        f"{protocol}: what is replayed" + (" (figure 6)" if name == "permuted" else ""),
        f"Random samples from the generators after learning a task: such are replayed during the next. {SEEN[name]}",
        f"Grids of generated pictures after tasks {', '.join(str(task + 1) for task in tasks)}, a row per method.",
        pictures.samples_figure(rows, tasks),
    )


def _as_learning_goes_on(table: Comparison, scenario: str) -> Iterator[Drawn]:
    learning, forgetting = figures.learning_figure(table, scenario), figures.forgetting_figure(table, scenario)
    where = f"{PROTOCOL_TITLES[table.protocol]}, {SCENARIO_TITLES[scenario]}"
    if learning is None or forgetting is None:
        return
    yield Drawn(
        f"learning-{table.protocol}-{scenario}",
        f"{where}: each task as learning goes on",
        "Test accuracy on each task from its start to the end, mean of n runs. Dots: on the whole test set, after each "
        f"task; lines in between: on its first {PROBE_ROWS} pictures. {ORDERS[table.protocol]}",
        f"A panel per method with one line per task: its test accuracy over training steps, {where}.",
        learning,
    )
    yield Drawn(
        f"forgetting-{table.protocol}-{scenario}",
        f"{where}: forgetting",
        "Each row: after learning that task, the accuracy on it and on those before; mean of n runs. "
        f"{ORDERS[table.protocol]}",
        f"A heat map per method: test accuracy on each task after each task, {where}.",
        forgetting,
    )
