"""``relive compare``: any methods on any data set and protocol, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from relive._util.errors import InputError, unknown
from relive.cli import run, sweeping
from relive.cli.console import err, note, out

METHODS = Annotated[
    list[str], typer.Option("--method", help="One of `relive methods`, or my_file.py:MyMethod. Repeatable.")
]
SCENARIOS = Annotated[
    list[str] | None, typer.Option("--scenario", help="task, domain or class; class if not given. Repeatable.")
]
SET = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of every method that has it; several values, NAME=V1,V2, are compared. Repeatable.",
    ),
]
SEEDS = Annotated[int, typer.Option(help="Runs of each method and scenario, with seeds 1, 2, …", min=1)]
FORMAT = Annotated[str, typer.Option("--format", help="text, markdown, json or csv.")]
FIGURES = Annotated[Path | None, typer.Option(help="Where the figures go; by default a folder in --runs-dir.")]

EXAMPLES = """Examples:

relive compare --dataset digits --iters 500 --method none --method rtf --seeds 5

relive compare --dataset digits --method rtf --method my_file.py:MyMethod --scenario task --scenario class

relive compare --dataset digits --method none --method ewc --set lam=1e4 --scenario task

relive compare --dataset digits --method my_file.py:MyMethod --set strength=0.1,1,10 --seeds 5  (each value)

relive compare --dataset my.npz --tasks 3 --method none --method rtf

relive compare --dataset digits --protocol rotated --scenario domain --method none --method si

relive compare --method si --method ewc --scenario task --seeds 3 --format json > compared.json
"""


def command(
    method: METHODS,
    scenario: SCENARIOS = None,
    dataset: run.DATASET = "mnist",
    protocol: run.PROTOCOL = "split",
    encoder: run.ENCODER = None,
    optimizer: run.OPTIMIZER = "adam",
    device: run.DEVICE = "cpu",
    seeds: SEEDS = 3,
    tasks: run.TASKS = None,
    iters: run.ITERS = None,
    learning_rate: run.LEARNING_RATE = None,
    hidden: run.HIDDEN = None,
    batch_size: run.BATCH_SIZE = None,
    latent: run.LATENT = None,
    fidelity: run.FIDELITY = "as_run",
    settings: SET = None,
    output_format: FORMAT = "text",
    figures: FIGURES = None,
    workers: sweeping.WORKERS = None,
    engine: sweeping.ENGINE = "local",
    scheduler: sweeping.SCHEDULER = None,
    runs_dir: sweeping.RUNS_DIR = Path("runs"),
    taken_from: sweeping.FROM = None,
    data_dir: sweeping.DATA_DIR = None,
    quiet: sweeping.QUIET = False,
    snapshots: run.SNAPSHOTS = False,
) -> None:
    """Run several methods on the same tasks and compare them: a table, and figures of accuracy over time and tasks.

    Finished runs are skipped; after an interrupt the same command resumes. A method is left out of scenarios in which
    it does not work. If runs fail, the others are compared, and the exit code is 1.
    """
    from relive.experiments.compare import together
    from relive.experiments.sweep import specs_of
    from relive.report import own_runs
    from relive.report.figures import save

    if output_format != "text" and output_format not in own_runs.FORMATS:
        raise unknown("format", output_format, ["text", *own_runs.FORMATS])
    given: dict[str, Any] = {
        "tasks": tasks,
        "iters": iters,
        "encoder": encoder,
        "optimizer": optimizer,
        "device": device,
    }
    given |= {"learning_rate": learning_rate, "hidden": hidden, "batch_size": batch_size, "latent": latent}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    scenarios = scenario or ["class"]
    values = settings_of(method, run.pairs("--set", settings))
    specs = [
        spec
        for name in method
        for spec in specs_of(
            [protocol],
            scenarios,
            [name],
            range(1, seeds + 1),
            values[name],
            dataset=dataset,
            fidelity=fidelity,
            **changes,
        )
    ]
    if not quiet:
        note_left_out(method, scenarios)
    if not specs:
        raise InputError("there is nothing to run: none of the chosen methods works in the chosen scenarios")
    folder = figures or runs_dir / "figures"
    sweeping.check_writable("--figures", folder)  # now, not after hours of training
    store = sweeping.make_store(runs_dir, taken_from)
    with sweeping.make_engine(engine, workers, scheduler) as chosen:
        status = sweeping.sweep(specs, chosen, store, data_dir, quiet, snapshots=snapshots)
    results = [result for spec in specs if (result := store.load(spec)) is not None]
    if not results:
        sweeping.end(status)
    group = together(results, method)
    if output_format == "text":
        out.print(own_runs.as_text(group), soft_wrap=False)
    else:
        sys.stdout.write(own_runs.FORMATS[output_format](group))
    for name, figure in (
        ("compare-time", own_runs.time_figure(group)),
        ("compare-learning", own_runs.learning_figure(group)),
    ):
        save(figure, folder, name)
        err.print(f"figure    {folder / name}.png")
    sweeping.end(status)


def settings_of(methods: list[str], given: dict[str, str]) -> dict[str, dict[str, list[float]]]:
    """Return, for each method, the values to try of those settings that it has; refuse one that no method has."""
    from relive.methods import method_facts

    known = {name: method_facts(name).defaults for name in methods}
    values = {name: _values(name, text) for name, text in given.items()}
    settings = sorted({name for defaults in known.values() for name in defaults})
    for setting in given:
        if not settings:
            raise InputError(f"unknown setting {setting!r}: {', '.join(methods)} has no settings")
        if setting not in settings:
            raise unknown("setting", setting, settings)
    return {
        name: {setting: values[setting] for setting in values if setting in defaults}
        for name, defaults in known.items()
    }


def _values(setting: str, text: str) -> list[float]:
    """Return the values to try of a setting, which are separated by commas."""
    values = [run.number(setting, value.strip()) for value in text.split(",")]
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"--set {setting}={text}: setting {setting} has the value {value:g} twice")
    return values


def note_left_out(methods: list[str], scenarios: list[str]) -> None:
    """Say which methods do not work in which scenarios."""
    from relive.methods import method_facts

    for name in methods:
        facts = method_facts(name)
        lacking = [scenario for scenario in scenarios if scenario not in facts.scenarios]
        if lacking:
            note(f"{facts.title} does not work in scenario {' and '.join(lacking)}, and is left out there")
