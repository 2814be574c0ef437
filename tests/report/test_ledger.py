"""The ledger: what stands in results/, and that the docs say what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.ledger import tables, take

from relive.errors import InputError
from relive.experiments.paper import PUBLISHED
from relive.experiments.spec import PROTOCOL_NAMES
from relive.experiments.store import Store
from relive.report.comparison import compare
from tests.report.fake import result_of, spec_of
from tests.report.fake import searched as searched_runs

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "results"


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


def test_finished_runs_are_taken_once_and_without_their_pictures(tmp_path: Path) -> None:
    runs, ledger = tmp_path / "runs", tmp_path / "results"
    results, _ = searched_runs("split", "task", ("si", "online-ewc"))
    for result in results:
        Store(runs).prepare(result.spec)
        Store(runs).save(result, [np.zeros((1, 2, 2), np.uint8)])
    Store(runs).prepare(spec_of(seed=7))  # under way
    assert take(runs, ledger) == len(results)
    assert take(runs, ledger) == 0
    assert {path.name for path in ledger.rglob("*") if path.is_file()} == {"spec.json", "result.json"}
    assert len(Store(ledger).scan()[0]) == len(results)
    online, si = tables(results)["split-searches"].split("\n\n")
    assert [line.count("|") for line in online.splitlines()] == [16] * 6  # λ from 1 to 1e13, a row for each of four γ
    assert (online.count("**"), si.count("**")) == (2, 2)
    assert si.startswith("| SI: c = | 0.001 |")


def test_nothing_is_taken_that_does_not_belong_there(tmp_path: Path) -> None:
    runs, ledger = tmp_path / "runs", tmp_path / "results"
    with pytest.raises(InputError, match="there is no runs directory"):
        take(runs, ledger)
    for change in ({"dataset": "digits"}, {"iters": 5}, {"tasks": 2}):
        Store(runs).save(result_of(spec_of(**change)), [])
    assert take(runs, ledger) == 0
    Store(runs).save(result_of(spec_of()), [])
    assert take(runs, ledger) == 1


@pytest.mark.parametrize("where", ["runs", "results"])
def test_with_a_damaged_result_nothing_is_done(tmp_path: Path, where: str) -> None:
    for name, seed in (("runs", 0), ("results", 1)):
        Store(tmp_path / name).save(result_of(spec_of(seed=seed)), [])
    (path,) = (tmp_path / where).glob("*/result.json")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match=f"{path} is damaged"):
        take(tmp_path / "runs", tmp_path / "results")
    assert len(list((tmp_path / "results").iterdir())) == 1
