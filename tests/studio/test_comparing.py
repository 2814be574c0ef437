"""What the page compares: finished runs, the paper's tables and claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relive.experiments.spec import SCENARIO_NAMES
from relive.experiments.store import Store
from relive.report.times import TIMES
from relive.studio.comparing import Comparer
from tests.report.fake import paper_like, result_of, spec_of

HALVED = "RtF almost halves the training time of DGR+distill"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A directory with runs and interleaved training times."""
    store = Store(tmp_path / "ledger")
    for run in paper_like("split", 2, share=0.5):
        store.save(run, [])
    measured = {"seconds": {"rtf": [5, 6], "dgr-distill": [10, 12]}}
    (store.root / TIMES).write_text(json.dumps({f"split/{s}": measured for s in SCENARIO_NAMES}))
    return store.root


def test_training_times_come_from_all_directories(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relive.report.page.Report.figures", lambda self, data_dir=None: [])
    for store in (Store(ledger), Store(tmp_path / "own", also=(ledger,))):
        comparer = Comparer(store)
        assert {c["title"]: c["status"] for c in comparer.everything(1)["claims"]}[HALVED] == "holds"
        assert "2 interleaved repeats" in comparer.report(None, None)


def test_comparisons_are_kept_until_runs_or_training_times_change(ledger: Path) -> None:
    comparer = Comparer(Store(ledger))
    first = comparer.everything(1)
    assert comparer.everything(1) is first
    assert comparer.everything(2) is not first
    (ledger / TIMES).unlink()
    statuses = {claim["title"]: claim["status"] for claim in comparer.everything(2)["claims"]}
    assert statuses[HALVED] == "too few runs to tell"


def test_a_damaged_file_of_times_is_named_and_the_rest_is_compared(ledger: Path) -> None:
    (ledger / TIMES).write_text("{")
    found = Comparer(Store(ledger)).everything(1)
    assert any(TIMES in said for said in found["damaged"])
    assert {c["title"]: c["status"] for c in found["claims"]}[HALVED] == "too few runs to tell"
    assert len(found["tables"]) == 1


def test_a_table_has_the_command_that_fills_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(result_of(spec_of("split", "task", "ewc", 1, {"lam": 1e7})), [])
    tables = Comparer(store).everything(1)["tables"]
    assert [table["short"] for table in tables] == ["Split MNIST", "Split MNIST, later report"]
    assert [table["command"] for table in tables] == [
        "relive paper --protocol split",
        "relive paper --protocol split --later",
    ]
