"""The comparison with other libraries: the parts that need none of them installed."""

from __future__ import annotations

from benchmarks.peers import relive_split
from benchmarks.peers.run import DOCS, SEEDS, everything, needed, read
from benchmarks.peers.tables import cell, tables


def test_the_page_has_the_tables_of_the_results() -> None:
    assert tables(everything()) in DOCS.read_text()


def test_the_lines_of_a_recipe_are_counted_with_what_it_calls_and_imports() -> None:
    # three imports, the def line, and the two lines of its body
    assert needed(relive_split, ["learner_of"]) == 6
    assert needed(relive_split, ["learner_of", "learn"]) == read()["lines"]["relive"]


def test_a_cell_says_how_many_runs_it_has_unless_it_has_all() -> None:
    run = {"library": "relive", "method": "rtf", "scenario": "class"}
    runs = [run | {"seed": seed, "average_accuracy": 0.9 + 0.01 * seed} for seed in SEEDS]
    assert cell(runs, "relive", "rtf", "class") == "92.00 ± 0.58"
    assert cell(runs[:2], "relive", "rtf", "class") == "91.50 ± 0.50 (n = 2)"
    assert cell(runs[:1], "relive", "rtf", "class") == "91.00 (n = 1)"
    assert cell(runs, "relive", "rtf", "task") == "not run"
