"""``relive table``: one of the paper's tables, with this machine's numbers beside the published ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relive.cli.console import err, note, out
from relive.errors import InputError, unknown

if TYPE_CHECKING:
    from relive.experiments.spec import RunResult

PROTOCOL = Annotated[str, typer.Option(help="split or permuted.")]
TUNED = Annotated[bool, typer.Option("--tuned", help="Runs with the settings that `relive grid` chose.")]
FORMAT = Annotated[str, typer.Option("--format", help="text, markdown, latex, json or csv.")]
RUNS_DIR = Annotated[Path, typer.Option(help="Where runs are kept.")]

EXAMPLES = """Examples:

relive table --protocol split

relive table --protocol permuted --tuned

relive table --protocol split --format latex > table1.tex
"""


def command(
    protocol: PROTOCOL = "split",
    tuned: TUNED = False,
    output_format: FORMAT = "text",
    runs_dir: RUNS_DIR = Path("runs"),
) -> None:
    """Print mean ± SEM and n of every cell, the published cell beside it, and whether they differ."""
    show(protocol, runs_dir, tuned, output_format)


def show(protocol: str, runs_dir: Path, tuned: bool = False, output_format: str = "text") -> None:
    """Print a table from the runs in a directory."""
    from relive.experiments.tuned import as_in_paper, tuned_of
    from relive.report.comparison import compare
    from relive.report.tables import FORMATS, as_text

    if output_format != "text" and output_format not in FORMATS:
        raise unknown("format", output_format, ["text", *FORMATS])
    results, _ = whole_results(runs_dir)
    table = compare(results, protocol, tuned_of(results) if tuned else None)
    if output_format == "text":
        out.print(as_text(table), soft_wrap=False)
    else:
        sys.stdout.write(FORMATS[output_format](table))
    left_out = sum(r.spec.protocol == protocol and not as_in_paper(r.spec, r.spec.settings) for r in results)
    if left_out:
        what = "1 finished run is" if left_out == 1 else f"{left_out} finished runs are"
        note(f"{what} not in this table: not of the paper's data set, size or fidelity; relive report lists all runs")
    codes = {run.versions.get("code") for cell in table.cells.values() for run in cell.runs}
    if len(codes) > 1:
        note(f"these runs were made by {len(codes)} versions of the code; relive report says which")


def whole_results(runs_dir: Path) -> tuple[list[RunResult], list[str]]:
    """Return the results in a runs directory, and what is wrong with the others, which is also said on stderr."""
    from relive.experiments.store import Store

    if not runs_dir.is_dir():
        raise InputError(
            f"there is no runs directory {runs_dir}: give another with --runs-dir, or start with relive run"
        )
    results, damaged = Store(runs_dir).scan()
    if not results and not damaged:
        note(f"there are no finished runs in {runs_dir} yet; start with: relive paper --protocol split --seeds 5")
    for error in damaged:
        err.print(f"[yellow]left out:[/] {err.escape(str(error))}")
    return results, [str(error) for error in damaged]
