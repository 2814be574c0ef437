"""How far a model can be trusted, on the data sets of ``benchmarks.own_data`` (``prepare`` puts them into the cache).

    python -m benchmarks.trust run [--seeds 3]       calibration and unknown classes: what is missing
    python -m benchmarks.trust retention             the self-report: what is missing
    python -m benchmarks.trust write                 the tables of docs/own-data.md

Runs are appended to a file of JSON lines as they end; stored runs are not repeated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.common import ROOT
from benchmarks.own_data.courses import FOLDER
from benchmarks.page import put
from benchmarks.trust import confidence, retention


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "retention", "write"])
    parser.add_argument("--data", type=Path, default=FOLDER, help="where prepared data sets are kept")
    parser.add_argument("--output", type=Path, default=ROOT / "reproduction/own-data", help="where results are kept")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/own-data.md")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of all learners but rtf, which is trained with one")
    options = parser.parse_args()
    if options.what == "run":
        seeds = {learner: 1 if learner == "rtf" else options.seeds for learner in confidence.LEARNERS}
        confidence.run_all(options.output / "confidence.jsonl", options.data, seeds)
    elif options.what == "retention":
        retention.run_all(options.output / "retention.jsonl", options.data)
    else:
        put(options.page, "confidence", confidence.tables(confidence.read(options.output / "confidence.jsonl")))
        put(options.page, "retention", retention.tables(retention.read(options.output / "retention.jsonl")))


if __name__ == "__main__":
    main()
