"""``relive table``: one of the paper's tables, with this machine's numbers next to the published ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relive._util.errors import InputError, unknown
from relive.cli.console import err, note, out

if TYPE_CHECKING:
    from relive.experiments.spec import RunResult
    from relive.experiments.store import Store
    from relive.paper.tuned import Settings

PROTOCOL = Annotated[
    str, typer.Option(help="split or permuted, as in the paper; for any other, your runs are shown side by side.")
]
TUNED = Annotated[bool, typer.Option("--tuned", help="Runs with the settings that `relive grid` chose.")]
LATER = Annotated[bool, typer.Option("--later", help="Runs with the settings of the authors' later report.")]
FORMAT = Annotated[str, typer.Option("--format", help="text, markdown, latex, json or csv.")]
RUNS_DIR = Annotated[Path, typer.Option(help="The directory for runs.")]

EXAMPLES = """Examples:

relive table --protocol split

relive table --protocol permuted --tuned

relive table --protocol split --format latex > table1.tex
"""


def command(
    protocol: PROTOCOL = "split",
    tuned: TUNED = False,
    later: LATER = False,
    output_format: FORMAT = "text",
    runs_dir: RUNS_DIR = Path("runs"),
) -> None:
    """Print mean ± SEM and n of every cell next to the published one, and whether they differ."""
    from relive.experiments.store import Store

    check_options(tuned, later)
    show(protocol, Store(runs_dir), tuned, later, output_format)


def check_options(tuned: bool, later: bool) -> None:
    """Refuse two options that choose different settings."""
    if tuned and later:
        raise InputError("--tuned and --later are two tables: choose one of them")


def chosen_settings(tuned: bool, later: bool, results: Iterable[RunResult]) -> Settings:
    """Return which settings a table's runs must have, given its two options."""
    from relive.paper import tuned as paper

    return paper.searched_settings(paper.tuned_of(results)) if tuned else paper.LATER if later else paper.DEFAULTS


def show(protocol: str, store: Store, tuned: bool = False, later: bool = False, output_format: str = "text") -> None:
    """Print a table from the runs in a store."""
    from relive.paper.comparison import compare
    from relive.paper.published import IN_ORDER, PROTOCOL_NAMES
    from relive.paper.tuned import as_in_paper
    from relive.report.tables import FORMATS, as_text

    if output_format != "text" and output_format not in FORMATS:
        raise unknown("format", output_format, ["text", *FORMATS])
    results, _ = whole_results(store)
    if protocol not in PROTOCOL_NAMES:
        _show_own(protocol, results, tuned or later, output_format)
        return
    table = compare(results, protocol, chosen_settings(tuned, later, results))
    if output_format == "text":
        out.print(as_text(table), soft_wrap=False)
    else:
        sys.stdout.write(FORMATS[output_format](table))
    paper = [r for r in results if r.spec.protocol == protocol and as_in_paper(r.spec, r.spec.settings)]
    in_order = sum(r.spec.seed == IN_ORDER.get(protocol) for r in paper)
    left_out = sum(r.spec.protocol == protocol for r in results) - len(paper)
    shown = {run.spec for cell in table.cells.values() for run in cell.runs}
    others = sum(r.spec.seed != IN_ORDER.get(protocol) and r.spec not in shown for r in paper)
    for n, why in (
        (left_out, "not with the paper's data set, size or fidelity"),
        (in_order, f"with seed {IN_ORDER.get(protocol)} the digits are in order, with every other seed shuffled"),
        (others, "with other settings, or of grid searches"),
    ):
        if n:
            what = "1 finished run is" if n == 1 else f"{n} finished runs are"
            note(f"{what} not in this table: {why}; relive report lists all runs")
    codes = {run.versions.get("code") for cell in table.cells.values() for run in cell.runs}
    if len(codes) > 1:
        note(f"these runs were made by {len(codes)} versions of the code; relive report lists them")


def _show_own(protocol: str, results: list[RunResult], chosen: bool, output_format: str) -> None:
    """Print comparable runs of a protocol that the paper does not have side by side."""
    from relive.data.catalogue import PROTOCOLS
    from relive.experiments.compare import side_by_side
    from relive.report import own_runs

    mine = [result for result in results if protocol in (result.spec.protocol, result.protocol_title)]
    if not mine and protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, {**PROTOCOLS, **{result.protocol_title: None for result in results}})
    if chosen or output_format not in ("text", "markdown"):
        raise InputError(
            f"the paper has no table for {protocol}: its runs are shown as text or markdown, without --tuned or "
            "--later; relive compare writes json and csv"
        )
    if not mine:
        note(f"there are no finished runs of {protocol} yet; start with: relive run --protocol {protocol}")
    for group in side_by_side(mine):
        if output_format == "text":
            out.print(own_runs.as_text(group), soft_wrap=False)
        else:
            sys.stdout.write(own_runs.as_markdown(group))


def whole_results(store: Store) -> tuple[list[RunResult], list[str]]:
    """Return the intact results in a store and the problems with the others, which are also printed on stderr."""
    from relive.experiments.shown import register_methods_in

    runs_dir = store.root
    if not runs_dir.is_dir() and not store.also:
        raise InputError(
            f"there is no runs directory {runs_dir}: give another with --runs-dir, or start with relive run"
        )
    results, damaged = store.scan()
    register_methods_in(results)
    if not results and not damaged:
        note(f"there are no finished runs in {runs_dir} yet; start with: relive paper --protocol split --seeds 5")
    for error in damaged:
        err.say("left out:", str(error), "yellow")
    return results, [str(error) for error in damaged]
