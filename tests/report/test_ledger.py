"""What is in reproduction/, and that the docs agree with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.ledger import tables

from relive.experiments.store import Store
from relive.paper.comparison import compare
from relive.paper.published import PROTOCOL_NAMES, PUBLISHED
from tests.report.fake import searched as searched_runs

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "reproduction"


def test_every_result_is_whole_and_names_its_code() -> None:
    results, damaged = Store(LEDGER).scan()
    assert damaged == []
    assert [result.spec.name for result in results if "code" not in result.versions] == []


@pytest.mark.parametrize("protocol", PROTOCOL_NAMES)
def test_every_cell_of_both_tables_has_a_run(protocol: str) -> None:
    table = compare(Store(LEDGER).scan()[0], protocol)
    assert len(table.cells) == sum(which == protocol for which, _, _ in PUBLISHED)
    assert [key for key, cell in table.cells.items() if not cell.n] == []


def test_the_docs_have_what_the_ledger_gives() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for table in tables(Store(LEDGER).scan()[0]).values():
        assert table.strip() in page, "bring them up to date with: python -m benchmarks.ledger"


def test_a_search_is_a_table_with_the_chosen_value_in_bold() -> None:
    results, _ = searched_runs("split", "task", ("si", "online-ewc"))
    online, si = tables(results)["split-searches"].split("\n\n")
    assert [line.count("|") for line in online.splitlines()] == [16] * 6  # λ from 1 to 1e13, a row for each of four γ
    assert (online.count("**"), si.count("**")) == (2, 2)
    assert si.startswith("| SI: c = | 0.001 |")
