"""``relive grid``: search a method's hyperparameters as in the paper's appendix, and keep the best."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from relive.cli import sweeping
from relive.cli.console import note, out
from relive.paper.published import GRID_SEED, GRIDS, PROTOCOL_NAMES
from relive.report.style import PROTOCOL_TITLES, SCENARIO_TITLES, method_title, settings_text

_SIZES = {cell: prod(map(len, grid.values())) for cell, grid in GRIDS.items()}
RUNS = {
    protocol: ", ".join(f"{name} {size}" for (which, name), size in _SIZES.items() if which == protocol)
    for protocol in PROTOCOL_NAMES
}
EXAMPLES = f"""Runs in a search on split: {RUNS["split"]}; on permuted: {RUNS["permuted"]}.

Examples:

relive grid --protocol split --scenario task --method ewc

relive grid --protocol permuted --scenario class --method si --workers 2
"""


def command(
    method: Annotated[str, typer.Option(help="xdg, ewc, online-ewc or si.")],
    protocol: Annotated[str, typer.Option(help="split or permuted.")] = "split",
    scenario: Annotated[str, typer.Option(help="task, domain or class.")] = "task",
    workers: sweeping.WORKERS = None,
    engine: sweeping.ENGINE = "local",
    scheduler: sweeping.SCHEDULER = None,
    runs_dir: sweeping.RUNS_DIR = Path("runs"),
    taken_from: sweeping.FROM = None,
    data_dir: sweeping.DATA_DIR = None,
    quiet: sweeping.QUIET = False,
) -> None:
    """Run every value of the grid once, judged on the test sets; `relive paper --tuned` uses the best."""
    from relive.paper.grid import at_edge, grid_specs
    from relive.paper.tuned import best

    specs = grid_specs(protocol, scenario, method)
    store = sweeping.make_store(runs_dir, taken_from)
    with sweeping.make_engine(engine, workers, scheduler) as chosen_engine:
        sweeping.end(sweeping.sweep(specs, chosen_engine, store, data_dir, quiet))
    results = [result for spec in specs if (result := store.load(spec)) is not None]
    chosen = best(results)
    title = f"{method_title(method)}, {PROTOCOL_TITLES[protocol]}, {SCENARIO_TITLES[scenario]}"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("settings")
    table.add_column("average accuracy", justify="right")
    table.add_column()
    for result in results:
        mark = "← chosen" if result is chosen else ""
        table.add_row(settings_text(result.spec.settings, method), f"{100 * result.average_accuracy:.2f} %", mark)
    out.print(table)
    out.print(f"one run per value, seed {GRID_SEED}, judged on the test sets, as in the paper")
    for name in at_edge(protocol, method, chosen.spec.settings):
        value = chosen.spec.settings[name]
        note(f"{name} = {value:g} is at the edge of its grid; there may be a better value beyond it")
