"""The ledger: what stands in results/, and that the docs say what it says."""

from __future__ import annotations

from pathlib import Path

from relive.experiments.paper import GRIDS, PUBLISHED
from relive.experiments.store import Store
from relive.experiments.tuned import read_tuned
from relive.report.comparison import compare
from relive.report.tables import accuracy_text, as_markdown

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "results"


def test_every_result_is_whole_and_names_its_code() -> None:
    results, damaged = Store(LEDGER).scan()
    assert damaged == []
    assert [result.spec.name for result in results if "code" not in result.versions] == []


def test_every_cell_of_table_1_has_a_run() -> None:
    table = compare(Store(LEDGER).scan()[0], "split")
    assert len(table.cells) == sum(protocol == "split" for protocol, _, _ in PUBLISHED)
    assert [key for key, cell in table.cells.items() if not cell.n] == []


def test_the_docs_have_what_the_ledger_gives() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    results = Store(LEDGER).scan()[0]
    assert as_markdown(compare(results, "split")) in page, "relive table --runs-dir results --format markdown"
    tuned = compare(results, "split", read_tuned(LEDGER))
    searched = [cell for (_, method), cell in tuned.cells.items() if ("split", method) in GRIDS and cell.n]
    for cell in searched:
        assert f"{accuracy_text(cell.mean, cell.sem)} % (n = {cell.n})" in page, (
            "relive table --runs-dir results --tuned"
        )
