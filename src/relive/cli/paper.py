"""``relive paper``: the paper's table as one resumable command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relive._util.errors import InputError, unknown
from relive.cli import sweeping
from relive.experiments.spec import SCENARIO_NAMES
from relive.paper.comparison import METHODS
from relive.paper.published import FIRST_SEED, GRIDS, PROTOCOL_NAMES, PUBLISHED

if TYPE_CHECKING:
    from relive.experiments.spec import RunSpec
    from relive.experiments.store import Store

EXAMPLES = """Examples:

relive paper --protocol split --seeds 5

relive paper --protocol permuted --scenario class --method rtf --method dgr-distill --seeds 1

relive paper --protocol split --seeds 20 --from reproduction  (runs in the ledger count as done)

relive paper --tuned --scenario task --method ewc  (with searched settings, after the same `relive grid`)

relive paper --later --scenario task --method ewc
"""

SCENARIOS = Annotated[list[str] | None, typer.Option(help="Only this scenario. Repeatable.")]
METHOD = Annotated[list[str] | None, typer.Option(help="Only this method. Repeatable.")]
SEEDS = Annotated[int, typer.Option(help="Runs per cell, with seeds 1, 2, …", min=1)]
TUNED = Annotated[bool, typer.Option("--tuned", help="Use the settings that `relive grid` chose.")]
LATER = Annotated[bool, typer.Option("--later", help="Use the settings of the authors' later report.")]


def command(
    protocol: Annotated[str, typer.Option(help="split or permuted.")] = "split",
    scenario: SCENARIOS = None,
    method: METHOD = None,
    seeds: SEEDS = 20,
    tuned: TUNED = False,
    later: LATER = False,
    workers: sweeping.WORKERS = None,
    engine: sweeping.ENGINE = "local",
    scheduler: sweeping.SCHEDULER = None,
    runs_dir: sweeping.RUNS_DIR = Path("runs"),
    taken_from: sweeping.FROM = None,
    data_dir: sweeping.DATA_DIR = None,
    quiet: sweeping.QUIET = False,
) -> None:
    """Run the paper's experiments and print its table with your numbers next to the published ones.

    Finished runs are skipped; after an interrupt the same command resumes.
    """
    from relive.cli.table import check_options, show

    if protocol not in PROTOCOL_NAMES:
        raise unknown("protocol of the paper", protocol, PROTOCOL_NAMES)
    methods = method or list(METHODS)
    for name in methods:
        if name not in METHODS:
            raise InputError(f"{unknown('method of the paper', name, METHODS)}. relive compare takes any method")
    check_options(tuned, later)
    store = sweeping.make_store(runs_dir, taken_from)
    chosen_seeds = range(FIRST_SEED, FIRST_SEED + seeds)
    specs = cell_specs(protocol, scenario or list(SCENARIO_NAMES), methods, chosen_seeds, store, tuned, later)
    with sweeping.make_engine(engine, workers, scheduler) as chosen:
        status = sweeping.sweep(specs, chosen, store, data_dir, quiet)
    show(protocol, store, tuned, later)
    sweeping.end(status)


def cell_specs(
    protocol: str, scenarios: list[str], methods: list[str], seeds: range, store: Store, tuned: bool, later: bool
) -> list[RunSpec]:
    """Return the runs of some cells of a table, with the settings chosen for each cell."""
    from relive.cli.table import chosen_settings
    from relive.experiments.sweep import specs_of

    results, damaged = store.scan() if tuned else ([], [])
    chosen = chosen_settings(tuned, later, results).cells or {}
    specs = []
    lacking = []
    for cell in ((protocol, scenario, name) for name in methods for scenario in scenarios):
        _, scenario, name = cell
        searchable = (protocol, name) in GRIDS and cell in PUBLISHED
        if tuned and searchable and cell not in chosen:
            lacking.append(f"relive grid --protocol {protocol} --scenario {scenario} --method {name}")
        grid = {key: [value] for key, value in chosen.get(cell, {}).items()}
        specs += specs_of([protocol], [scenario], [name], seeds, grid)
    if lacking:
        raise InputError(
            "\n  ".join([f"{store.root} has no finished grid search for some of these settings; first run:", *lacking])
            + "".join(f"\nleft out: {error}" for error in damaged)
        )
    if not specs:
        raise InputError("there is nothing to run: none of the chosen methods works in the chosen scenarios")
    return specs
