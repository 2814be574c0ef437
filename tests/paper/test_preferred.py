"""Which settings' runs figures and claims are about."""

from __future__ import annotations

from relive.experiments.spec import RunResult
from relive.paper.comparison import compare, preferred
from relive.paper.tuned import LATER, searched_settings
from tests.report.fake import paper_like, result_of, searched, spec_of


def test_preferred_takes_tuned_runs_where_there_are_enough() -> None:
    grid, tuned = searched("split", "task", ("si",))
    chosen = tuned["split", "task", "si"]
    results = paper_like("split", 1) + grid + [result_of(spec_of("split", "task", "si", 1, chosen), 0.5)]
    table = preferred(compare(results, "split"), compare(results, "split", searched_settings(tuned)))
    assert table.cells["task", "si"].mean == 50
    assert table.cells["task", "ewc"].n == 1


def test_preferred_takes_the_table_with_the_most_runs_and_the_last_of_equals() -> None:
    grid, tuned = searched("split", "task", ("si",))
    later = [result_of(spec_of("split", "task", "si", 1, {"c": 50}), 0.6)]
    found = [result_of(spec_of("split", "task", "si", 1, tuned["split", "task", "si"]), 0.5)]

    def mean(results: list[RunResult]) -> float | None:
        tables = [compare(results, "split", settings) for settings in (LATER, searched_settings(tuned))]
        return preferred(compare(results, "split"), *tables).cells["task", "si"].mean

    results = paper_like("split", 1) + grid
    assert [mean(results + later), mean(results + found), mean(results + later + found)] == [60, 50, 50]
    more = result_of(spec_of("split", "task", "si", 2, {"c": 50}), 0.6)
    assert mean([*results, *later, more, *found]) == 60
