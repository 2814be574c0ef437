"""Classes that arrive one after another, on real data: relive's methods against what an engineer could choose instead.

    python -m benchmarks.own_data prepare            put the data sets into the cache
    python -m benchmarks.own_data run [--only wine --only iris] [--learner rtf] [--seeds 5] [--jobs 2]
    python -m benchmarks.own_data write              tables and figures into the documentation
    python -m benchmarks.own_data tune               how the constants of the simple learners were chosen

Every learner sees the same tasks in the same order and is tested on all classes at the end. Runs are appended to a file
of JSON lines as they end; stored runs are not repeated. Needs ``pip install -c constraints.txt -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks.common import ROOT
from benchmarks.own_data.courses import COURSES, FOLDER, SOURCES, samples_of
from benchmarks.own_data.figures import figure
from benchmarks.own_data.learner import scaling
from benchmarks.own_data.learners import LEARNERS
from benchmarks.own_data.report import cells, page, short_table, summary_table
from benchmarks.own_data.results import missing, read, run_all
from benchmarks.own_data.tuning import CANDIDATES, tune
from benchmarks.page import put
from relive._util.files import write_atomic
from relive.report.figures import save


def prepare(options: argparse.Namespace) -> None:
    """Make every data set, and print a Markdown table of them."""
    print("| data set | to learn | to test | features | classes | samples per class | per task | inputs | digest |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for source in options.source or SOURCES:
        samples = samples_of(source, options.data)
        counts = np.bincount(samples.y)
        test = f"{len(samples.test[1]):,}" if samples.test else "of these"
        inputs = "standardised" if scaling(samples.X)[0].any() else "[0, 1]"
        print(
            f"| {source} | {samples.X.shape[0]:,} | {test} | {samples.X.shape[1]:,} | {len(counts)} "
            f"| {counts.min():,} to {counts.max():,} | {per_task(source)} | {inputs} | `{samples.digest}` |"
        )


def per_task(source: str) -> int:
    """Return how many classes of a data set come at a time."""
    return next(course.per_task for course in COURSES.values() if course.source == source)


def run(options: argparse.Namespace) -> None:
    """Do what is missing."""
    courses, learners = options.only or list(COURSES), options.learner or list(LEARNERS)
    for name in courses:
        samples_of(COURSES[name].source, options.data)
    if options.again:
        kept = [
            line
            for line, run in zip(lines(options.output), read(options.output), strict=True)
            if run.learner not in learners or run.course not in courses
        ]
        write_atomic(options.output, "".join(kept).encode())
    keys = missing(read(options.output), courses, learners, options.seeds)
    failed = 0
    for result in track(run_all(keys, options.output, options.data, options.jobs), "learning", total=len(keys)):
        if isinstance(result, str):
            failed += 1
            print(result, file=sys.stderr)
    print(summary_table(cells(read(options.output))))
    if failed:
        sys.exit(f"{failed} of {len(keys)} runs failed")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True) if path.exists() else []


def write(options: argparse.Namespace) -> None:
    """Write tables between their marks, and the figures next to the page."""
    runs = read(options.output)
    put(options.page, "comparison", page(runs))
    table = cells(runs)
    put(options.short_page, "summary", short_table(table))
    save(figure(table, "numbers", "numbers kept"), options.pictures, "benchmark-numbers", ("png",))
    save(figure(table, "seconds", "CPU time of learning (s)"), options.pictures, "benchmark-time", ("png",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=FOLDER, help="where prepared data sets are kept")
    parser.add_argument("--output", type=Path, default=ROOT / "reproduction/own-data/runs.jsonl")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare")
    one.add_argument("source", nargs="*", choices=[[], *SOURCES])
    one.set_defaults(do=prepare)
    one = commands.add_parser("run")
    one.add_argument("--only", action="append", choices=list(COURSES), help="a course; may be given several times")
    one.add_argument("--learner", action="append", choices=list(LEARNERS), help="a learner; may be given several times")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    one.add_argument("--again", action="store_true", help="discard the stored runs of these courses and learners first")
    one.set_defaults(do=run)
    one = commands.add_parser("write")
    one.add_argument("--page", type=Path, default=ROOT / "docs/benchmark.md")
    one.add_argument("--short-page", type=Path, default=ROOT / "docs/which-method.md")
    one.add_argument("--pictures", type=Path, default=ROOT / "docs/pictures")
    one.set_defaults(do=write)
    one = commands.add_parser("tune")
    one.add_argument("name", nargs="*", choices=[[], *CANDIDATES])
    one.set_defaults(do=tune)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
