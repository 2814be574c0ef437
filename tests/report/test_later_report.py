"""The paper's tables with the settings of the authors' later report."""

from __future__ import annotations

from relive.paper.comparison import compare
from relive.paper.tuned import LATER
from relive.report.tables import records, settings_notes, title
from tests.report.fake import result_of, spec_of


def test_the_later_report_has_a_table_of_its_own() -> None:
    later = {"lam": 1e8, "gamma": 0.7}
    results = [result_of(spec_of("split", "domain", "online-ewc", 1, s), 0.6) for s in ({}, later)]
    table = compare(results, "split", LATER)
    cell = table.cells["domain", "online-ewc"]
    assert [run.spec.settings for run in cell.runs] == [later]
    assert table.cells["task", "xdg"].settings == {"proportion": 0.95}
    assert all(cell.settings is not None for cell in table.cells.values())  # nothing is left to search
    assert "settings of the authors' later report" in title(table)
    assert {record["settings_from"] for record in records(table)} == {"later"}
    assert not any("has no default" in note for note in settings_notes(table))
