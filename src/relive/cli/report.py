"""``relive report``: one HTML file with the tables, the claims, every figure and a row per run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relive._util.errors import InputError
from relive.cli.console import counted, err, out
from relive.cli.sweeping import check_writable
from relive.cli.table import RUNS_DIR, whole_results

OUTPUT = Annotated[Path, typer.Option(help="The page to write; its figures go into the folder figures/ next to it.")]
DATA_DIR = Annotated[Path | None, typer.Option(help="Where MNIST is stored, for the examples.")]

EXAMPLES = """Examples:

relive report

relive report --runs-dir reproduction --output site/report.html
"""


def command(runs_dir: RUNS_DIR = Path("runs"), output: OUTPUT = Path("report.html"), data_dir: DATA_DIR = None) -> None:
    """Write a report of all finished runs as one page that opens from disk; figures also as SVG and PNG."""
    from relive.experiments.store import Store
    from relive.paper.tuned import tuned_of
    from relive.report.page import Report, read_explanations, write
    from relive.report.times import read_times

    if output.is_dir():
        raise InputError(f"output = {output} is a directory: name the page, e.g. {output / 'report.html'}")
    check_writable("--output", output.parent)
    results, damaged = whole_results(Store(runs_dir))
    err.print(f"drawing the figures of {counted(len(results), 'run')} …")
    explanations, times = read_explanations(runs_dir), read_times(runs_dir)
    report = Report(runs_dir, results, tuned_of(results), explanations, damaged, times)
    written = write(report, output, data_dir)
    out.print(f"report    {written[0]}  ({len(results)} runs, {written[0].stat().st_size / 1e6:.1f} MB)")
    if len(written) > 1:
        out.print(f"figures   {written[1].parent}  ({len(written) - 1} files)")
