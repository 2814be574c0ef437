"""What is in reproduction/, and that the docs agree with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.ledger import LEDGER, PAGE, PAGES, against, beside, choices, missing, other_seeds, repeats, tables
from scipy.stats import ttest_1samp

from relive._util.fidelity import AS_RUN, fidelity_of
from relive.experiments.spec import RunResult
from relive.experiments.store import Store
from relive.paper.comparison import compare
from relive.paper.published import PROTOCOL_NAMES, PUBLISHED
from relive.paper.tuned import LATER
from tests.report.fake import paper_like, result_of, spec_of
from tests.report.fake import searched as searched_runs


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
    for name, table in tables(Store(LEDGER).scan()[0]).items():
        page = PAGES.get(name, PAGE).read_text(encoding="utf-8")
        assert table.strip() in page, "bring them up to date with: python -m benchmarks.ledger"


def test_a_search_is_a_table_with_the_chosen_value_in_bold() -> None:
    results, _ = searched_runs("split", "task", ("si", "online-ewc"))
    online, si = tables(results)["split-searches"].split("\n\n")
    assert [line.count("|") for line in online.splitlines()] == [16] * 6  # λ from 1 to 1e13, a row for each of four γ
    assert (online.count("**"), si.count("**")) == (2, 2)
    assert si.startswith("| SI: c = | 0.001 |")


def test_settings_are_side_by_side_for_the_cells_that_have_any() -> None:
    later = result_of(spec_of("split", "class", "si", 1, {"c": 0.5}), 0.203)
    results = [*paper_like("split", 3), later]
    lines = beside([compare(results, "split"), compare(results, "split", LATER)]).splitlines()
    assert len(lines) == 2 + 10  # XdG in one scenario, three methods in three
    assert "| c = 0.5, ξ = 0.1<br>**20.30** (n=1)" in lines[-1]
    assert "λ = 1e7: no runs" in lines[3]


def test_what_is_missing_is_counted_once_with_its_cost() -> None:
    rows = [line.split(" | ") for line in missing(paper_like("split", 20)).splitlines()]
    assert rows[2][2:5] == ["28 of 28", "0", "0.0"]
    assert rows[3][2:4] == ["0 of 9", "180"]  # XdG's settings are the defaults
    assert rows[4][2:4] == ["0 of 0", "0"]  # nothing has been searched
    less = [run for run in paper_like("split", 20) if (run.spec.scenario, run.spec.method) != ("task", "rtf")]
    few = [run for run in paper_like("split", 20) if run.spec.method == "rtf" and run.spec.seed < 11]
    rows = [line.split(" | ") for line in missing(less + few).splitlines()]
    assert rows[2][2:4] == ["27 of 28", "10"]
    assert float(rows[2][4]) == pytest.approx(10 * 220 / 3600, abs=0.1)


def test_methods_are_compared_with_none_seed_by_seed() -> None:
    accuracies = {"none": (0.5, 0.6, 0.55), "ewc": (0.52, 0.62, 0.57), "si": (0.5, 0.6)}
    runs = [
        result_of(spec_of("split", "domain", method, seed), value)
        for method, values in accuracies.items()
        for seed, value in enumerate(values, start=1)
    ]
    lines = against(compare(runs, "split"), "domain", "none", ("none", "ewc", "si")).splitlines()
    assert lines[2:] == ["| EWC | +2.00 ± 0.00 (n=3) |  | +0.47 ± 2.31 |  |"]  # two runs of SI are too few
    assert len(against(compare(runs, "split"), "domain", "none", ("si",)).splitlines()) == 2  # EWC was not asked for


def test_the_error_of_the_published_difference_is_smaller_if_methods_shared_seeds_and_follow_each_other() -> None:
    runs = [
        result_of(spec_of("split", "domain", method, seed), 0.5 + 0.01 * (seed if direction > 0 else 11 - seed))
        for method, direction in (("none", 1), ("ewc", 1), ("si", -1))
        for seed in range(1, 11)
    ]
    ewc, si = against(compare(runs, "split"), "domain", "none", ("ewc", "si")).splitlines()[2:]
    # published SEMs: None 1.66, EWC 1.61, SI 1.18; a correlation of 1 subtracts them, one of −1 adds them
    assert ewc == "| EWC | +0.00 ± 0.00 (n=10) | 1.00 | +0.47 ± 2.31 | ± 0.05 |"
    assert si.endswith("| −1.00 | +6.44 ± 2.04 | ± 2.84 |")


def test_methods_with_further_seeds_have_a_row_for_each_set() -> None:
    runs = [result_of(spec_of("split", "domain", "none", seed), 0.5 + 0.01 * seed) for seed in (1, 2, 21, 22, 41)]
    runs += [result_of(spec_of("split", "domain", "si", seed), 0.5) for seed in (1, 2)]  # in no other set
    by_numpy = AS_RUN.choose({"class_order": "shuffled_by_numpy"})
    for seed, fidelity in ((1111, by_numpy), (1112, AS_RUN), (1, by_numpy)):  # the second and third are in no set
        runs.append(result_of(replace(spec_of("split", "domain", "none", seed), fidelity=fidelity), 0.9))
    assert other_seeds(runs, "split", "domain").splitlines()[2:] == [
        "| None | 1 to 20 | 51.50 ± 0.50 (n=2) | 57.33 ± 1.66 |",
        "| None | 21 to 40 | 71.50 ± 0.50 (n=2) | 57.33 ± 1.66 |",
        "| None | 1111 to 1130, the digits of the 2018 code | 90.00 (n=1) | 57.33 ± 1.66 |",
    ]


def test_a_choice_is_compared_with_the_run_that_differs_in_nothing_else() -> None:
    true, both = AS_RUN.choose({"fisher_labels": "true"}), fidelity_of("as_written")
    specs = [spec_of("split", "task", "ewc", seed) for seed in (1, 2, 3)]
    runs = [result_of(spec, 0.8) for spec in specs]
    runs += [result_of(replace(spec, fidelity=true), 0.81) for spec in specs[:2]]
    runs[-1] = replace(runs[-1], versions=runs[-1].versions | {"code": "another"})
    runs += [
        result_of(replace(specs[2], fidelity=both), 0.1),
        result_of(replace(specs[2], iters=9, fidelity=true), 0.2),
    ]
    assert choices(runs).splitlines()[2:] == [
        "| `fisher_labels=true` | Split MNIST | EWC | Task-IL | +1.00 ± 0.00 (n=2) | 1 of 2 |"
    ]


def test_a_repeat_is_compared_with_the_same_run_on_its_first_processor() -> None:
    def on(processor: str, seed: int, accuracy: float) -> RunResult:
        run = result_of(spec_of("split", "task", "si", seed), accuracy)
        return replace(run, versions=run.versions | {"processor": processor})

    first = [on("A", 1, 0.80), on("A", 2, 0.90), on("B", 3, 0.50), on("B", 4, 0.1)]
    again = [on("C", 1, 0.83), on("C", 2, 0.89), on("C", 3, 0.51), on("D", 4, 0.08), on("C", 5, 0.5)]  # the last: new
    p = ttest_1samp([3.0, -1.0, 1.0], 0.0).pvalue
    assert repeats(first, again).splitlines()[2:] == [
        f"| Split MNIST | SI | Task-IL | C | A, B | +1.00 ± 1.15 (n=3) | {p:.3f} | +3.00 |",
        "| Split MNIST | SI | Task-IL | D | B | −2.00 (n=1) | – | −2.00 |",
    ]
