"""``relive run``: train one method on one protocol and scenario, and report how well it remembers."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from relive._util.errors import InputError
from relive._util.fidelity import fidelity_of, name_of
from relive._util.registry import Registry
from relive.cli.console import counted, err, note, out
from relive.core.catalogue import OPTIMIZERS
from relive.data.catalogue import DATASETS, PROTOCOLS, protocol_facts
from relive.experiments.observer import Observer
from relive.experiments.spec import RunResult, RunSpec
from relive.networks.catalogue import ENCODERS
from relive.paper.published import FURTHER, PAPER_DATASET, PUBLISHED, RUNS_PER_CELL, known_to_fail

if TYPE_CHECKING:
    from relive.experiments.store import Store


def _presets(name: str) -> str:
    """Return the default of a field on each protocol."""
    return ", ".join(f"{facts.preset[name]} ({protocol})" for protocol, facts in PROTOCOLS.items())


def installed(registry: Registry[Any]) -> str:
    """Return the names from installed packages, each after a comma."""
    return "".join(f", {name}" for name in registry if registry.is_installed(name))


PROTOCOL = Annotated[
    str, typer.Option(help=f"How data are split into tasks: {', '.join(PROTOCOLS)}, or your own, my_file.py:PROTOCOL.")
]
SCENARIO = Annotated[str, typer.Option(help="The scenario: task, domain or class.")]
METHOD = Annotated[
    str, typer.Option(help="One of those that `relive methods` lists, or your own, my_file.py:MyMethod.")
]
DATASET = Annotated[
    str,
    typer.Option(
        help=f"{', '.join(DATASETS)}; or your own: a .npz, .csv or .parquet file, a folder of images with a "
        "sub-folder per class, or my_file.py:load."
    ),
]
ENCODER = Annotated[
    str | None,
    typer.Option(
        help="The encoder: mlp, conv (for images), random (fixed random features), random-flat (the same for plain "
        f"rows), inputs (none){installed(ENCODERS)}, or your own, my_file.py:make. By default the method's: mlp for "
        "most."
    ),
]
OPTIMIZER = Annotated[
    str, typer.Option(help=f"The optimizer: adam, sgd{installed(OPTIMIZERS)}, or your own, my_file.py:Mine.")
]
DEVICE = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, mps, or auto (a GPU if there is one).")]
SEED = Annotated[int, typer.Option(help="The random seed.")]
TASKS = Annotated[int | None, typer.Option(help=f"Number of tasks; default: {_presets('tasks')}.")]
ITERS = Annotated[int | None, typer.Option(help=f"Steps per task; default: {_presets('iters')}.")]
LEARNING_RATE = Annotated[
    float | None, typer.Option(help=f"Learning rate of the optimizer; default: {_presets('learning_rate')}.")
]
HIDDEN = Annotated[int | None, typer.Option(help=f"Units in each hidden layer; default: {_presets('hidden')}.")]
BATCH_SIZE = Annotated[int | None, typer.Option(help="Rows per step; default: 128, as in the paper.")]
LATENT = Annotated[int | None, typer.Option(help="Latent variables of the generators; default: 100.")]
FIDELITY = Annotated[str, typer.Option(help="as_run (the 2018 code) or as_written (the paper's equations).")]
CHOOSE = Annotated[
    list[str] | None,
    typer.Option(help="Change one fidelity choice, e.g. fisher_labels=true. Repeatable.", metavar="NAME=VALUE"),
]
SET = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Set a parameter of the method, e.g. c=0.1 with --method si. Repeatable.", metavar="NAME=VALUE"
    ),
]
THREADS = Annotated[int, typer.Option(help="Threads per matrix product.")]
RUNS_DIR = Annotated[Path, typer.Option(help="The directory for runs.")]
DATA_DIR = Annotated[
    Path | None,
    typer.Option(help="Where data sets are stored; default: the variable RELIVE_DATA, or the user's cache directory."),
]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
AGAIN = Annotated[bool, typer.Option("--again", help="Repeat a finished run instead of showing its result.")]
SNAPSHOTS = Annotated[
    bool, typer.Option("--snapshots", help="Keep a model file after each task in the run's folder, for relive studio.")
]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]


EXAMPLES = """Examples:

relive run  (RtF on split MNIST, Class-IL, as in the paper)

relive run --dataset digits --iters 1000  (a first try in a minute, no download)

relive run --scenario task --method si --set c=0.5

relive run --dataset my.npz --protocol split --tasks 5  (your own data: arrays X and y)

relive run --dataset digits --protocol rotated --scenario domain --tasks 5

relive run --dataset digits --iters 300 --protocol blurred  (no boundaries: one task blends into the next)

relive run --dataset digits --iters 300 --encoder conv  (or your own network, my_file.py:make)

relive run --dataset digits --iters 300 --snapshots  (a model file after each task, for relive studio)

relive run --method none --json --quiet | jq .average_accuracy
"""


def command(
    protocol: PROTOCOL = "split",
    scenario: SCENARIO = "class",
    method: METHOD = "rtf",
    seed: SEED = 0,
    dataset: DATASET = "mnist",
    encoder: ENCODER = None,
    optimizer: OPTIMIZER = "adam",
    device: DEVICE = "cpu",
    tasks: TASKS = None,
    iters: ITERS = None,
    learning_rate: LEARNING_RATE = None,
    hidden: HIDDEN = None,
    batch_size: BATCH_SIZE = None,
    latent: LATENT = None,
    fidelity: FIDELITY = "as_run",
    choose: CHOOSE = None,
    settings: SET = None,
    threads: THREADS = 1,
    runs_dir: RUNS_DIR = Path("runs"),
    data_dir: DATA_DIR = None,
    quiet: QUIET = False,
    again: AGAIN = False,
    snapshots: SNAPSHOTS = False,
    as_json: JSON = False,
) -> None:
    """Train one method and print its accuracy on every task next to the paper's number.

    After an interrupt the same command resumes from the last finished task; for a finished run it shows the result.
    """
    from relive.experiments.spec import make_spec
    from relive.experiments.store import Store

    chosen, store = pairs("--choose", choose), Store(runs_dir)
    given: dict[str, float | None] = {"tasks": tasks, "iters": iters, "threads": threads}
    given |= {"learning_rate": learning_rate, "hidden": hidden, "batch_size": batch_size, "latent": latent}
    spec = make_spec(
        protocol,
        scenario,
        method,
        seed=seed,
        dataset=dataset,
        encoder=encoder,
        optimizer=optimizer,
        device=device,
        fidelity=fidelity_of(fidelity).choose(chosen),
        settings={name: number(name, value) for name, value in pairs("--set", settings).items()},
        **{name: value for name, value in given.items() if value is not None},
    )
    for hint in (known_to_fail(protocol, scenario, method), _without_effect(spec, chosen)):
        if hint and not quiet:
            err.say("hint:", hint, "yellow")
    again = again or (snapshots and _lacks_snapshots(spec, store, quiet))
    known = None if again else _done_before(spec, store, quiet)
    result = known or _run(spec, store, data_dir, quiet, again, snapshots)
    if as_json:
        typer.echo(json.dumps(result.to_json()))
    else:
        _show(result, store.directory(spec))


def _done_before(spec: RunSpec, store: Store, quiet: bool) -> RunResult | None:
    """Return the result of a run that is already finished, if it is intact."""
    from relive._util.versions import provenance
    from relive.experiments.resultfile import DamagedResult

    try:
        result = store.load(spec)
    except DamagedResult:
        return None
    if result is not None and not quiet:
        same = "" if result.versions == provenance() else " with other versions or on another processor"
        note(f"this run was already done{same}, and this is its result; --again repeats it")
    return result


def _lacks_snapshots(spec: RunSpec, store: Store, quiet: bool) -> bool:
    """Return whether a run is done, but without snapshots."""
    from relive.studio.snapshots import snapshots_in

    directory = store.directory(spec)
    lacks = (directory / "result.json").exists() and not snapshots_in(directory)
    if lacks and not quiet:
        note("this run was done before, without snapshots: it is repeated")
    return lacks


def _without_effect(spec: RunSpec, chosen: Iterable[str]) -> str:
    """Name the fidelity choices that change nothing in this run."""
    from relive.methods import method_facts

    method, protocol = method_facts(spec.method), protocol_facts(spec.protocol)
    idle = [name for name in chosen if name not in (*method.choices, protocol.choice, "adam_epsilon")]
    return f"{', '.join(idle)} changes nothing for {method.title} on {protocol.title}" if idle else ""


def pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Parse NAME=VALUE texts into a dictionary."""
    pairs: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InputError(f"{option} {text!r}: write it as NAME=VALUE")
        if name.strip() in pairs:
            raise InputError(f"{option} gives {name.strip()} twice: {pairs[name.strip()]} and {value.strip()}")
        pairs[name.strip()] = value.strip()
    return pairs


def number(name: str, text: str) -> float:
    """Return the value of a setting."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"setting {name} = {text!r} is not a number") from None


def _run(spec: RunSpec, store: Store, data_dir: Path | None, quiet: bool, again: bool, snapshots: bool) -> RunResult:
    """Do a sweep of this one run in this process, and draw its figures."""
    from relive.cli.progress import LiveObserver
    from relive.experiments.engines import InProcess
    from relive.experiments.execute import check_runs
    from relive.experiments.sweep import Status, Sweep
    from relive.experiments.worker import execute_job
    from relive.studio.snapshots import Snapshots

    directory = store.directory(spec)

    def refuse_to_wait(status: Status) -> None:
        if status.elsewhere:
            raise InputError(
                f"this run is already in progress in another process, in {directory}; wait for it or stop it"
            )

    data = check_runs([spec], data_dir, quiet=quiet)[spec.dataset]
    observer = Observer() if quiet else LiveObserver(spec, err)
    keep = Snapshots(spec, directory) if snapshots else None
    work = functools.partial(execute_job, data=data, observer=observer, note=note, keep=keep)
    try:
        Sweep([spec], store, InProcess(), work=work, again=again, note=note).run(refuse_to_wait)
    except KeyboardInterrupt:
        err.print(_what_was_kept(spec, store))
        raise typer.Exit(130) from None
    result = store.load(spec)
    assert result is not None
    from relive.report.pictures import draw_run  # takes a second to import: only after training

    draw_run(result, store.samples(spec), directory)
    return result


def _what_was_kept(spec: RunSpec, store: Store) -> str:
    """Describe what an interrupted run leaves behind."""
    from relive._util.versions import versions
    from relive.experiments.checkpoint import FileCheckpoint

    directory = store.directory(spec)
    if store.load(spec) is not None:
        return f"stopped. Kept: a finished result of this run, in {directory}."
    kept = FileCheckpoint(store, spec, versions()).load()
    if kept is None:
        return f"stopped before the first of {spec.tasks} tasks was finished: nothing was kept."
    done = len(kept[1].matrix)
    return f"stopped. Kept: {done} finished of {spec.tasks} tasks, in {directory}; the same command resumes from there."


def _show(result: RunResult, directory: Path) -> None:
    """Print each task's accuracy, the average next to the paper's, and where the files are."""
    spec = result.spec
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    table.add_column("right after learning it", justify="right")
    table.add_column("in the end", justify="right")
    for k, final in enumerate(result.accuracy_matrix[-1]):
        table.add_row(f"{k + 1}", f"{100 * result.accuracy_matrix[k][k]:.2f} %", f"{100 * final:.2f} %")
    out.print(table)
    average = f"average accuracy  {100 * result.average_accuracy:.2f} %"
    out.print(Text.assemble((average, "bold"), _published(spec)))
    forgetting, transfer = round(100 * result.forgetting, 2) + 0.0, round(100 * result.backward_transfer, 2) + 0.0
    changes = f"forgetting {forgetting:.2f} points, backward transfer {transfer:+.2f} points".replace("-", "−")
    besides = counted(result.stored_numbers, "other number") if result.stored_numbers else "nothing else"
    out.print(
        f"{changes}, trained in {result.train_seconds:.0f} s, {counted(result.parameters, 'parameter')}, "
        f"{besides} kept between tasks"
    )
    out.print(f"run       {directory}")
    for picture in sorted(directory.glob("*.png")):
        out.print(f"picture   {picture}")


def _published(spec: RunSpec) -> str:
    """Return the paper's number and how this run differs from the paper; empty for other data sets."""
    from relive.experiments.spec import make_spec

    cell = PUBLISHED.get((spec.protocol, spec.scenario, spec.method))
    if spec.dataset != PAPER_DATASET:
        return ""
    if cell is None:
        elsewhere = FURTHER.get((spec.protocol, spec.scenario, spec.method))
        return f"published: {elsewhere.mean:.2f} % ({elsewhere.reference})" if elsewhere else ""
    spread = cell.sem * math.sqrt(RUNS_PER_CELL)
    runs = f"mean ± SEM of {RUNS_PER_CELL} runs; their standard deviation is about {spread:.1f}"
    published = f"{cell.mean:.2f} ± {cell.sem:.2f} % ({runs})"
    preset = make_spec(spec.protocol, spec.scenario, spec.method, seed=spec.seed).to_json()
    mine = spec.to_json()
    changed = [
        f"{name}={value}"
        for name, value in mine.items()
        if value != preset.get(name) and name not in ("fidelity", "threads", "settings", "sources")
    ]
    changed += [f"{k}={v:g}" for k, v in spec.settings.items() if v != preset["settings"][k]]
    if mine["fidelity"] != preset["fidelity"]:
        changed.append(name_of(spec.fidelity))
    if changed:
        return f"   differs from the paper ({', '.join(changed)}), which has {published}"
    return f"   paper: {published}"
