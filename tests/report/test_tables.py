"""Which runs count for a cell, its statistics, and the text of the tables."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy.special import betainc
from scipy.stats import ttest_ind

from relive._util.errors import InputError
from relive._util.fidelity import AS_WRITTEN
from relive._util.statistics import holm, mean_and_sem, welch, welch_margin
from relive.experiments.compare import is_quiet
from relive.experiments.spec import RunResult, make_spec
from relive.methods import METHODS as ALL_METHODS
from relive.paper.comparison import METHODS, Comparison, Verdict, compare, preferred
from relive.paper.published import GRID_SEED, PUBLISHED
from relive.paper.tuned import LATER, searched_settings, tuned_of
from relive.report import style
from relive.report.tables import (
    ARROWS,
    FORMATS,
    as_csv,
    as_json,
    as_latex,
    as_markdown,
    as_text,
    records,
    rules,
    settings_notes,
)
from tests.report.fake import paper_like, result_of, searched, spec_of

RTF = ("class", "rtf")


def runs(*accuracies: float, method: str = "rtf", scenario: str = "class") -> list[RunResult]:
    """Runs of one cell of split with these accuracies in percent."""
    return [result_of(spec_of("split", scenario, method, seed), a / 100) for seed, a in enumerate(accuracies, start=1)]


def cell_verdict(*accuracies: float) -> str:
    return compare(runs(*accuracies), "split").cells[RTF].verdict


def welch_by_hand(a: tuple[float, float, int], b: tuple[float, float, int]) -> float:
    """Welch's p-value from (mean, standard deviation, n) by the textbook, Student's tail from the incomplete beta."""
    (m1, s1, n1), (m2, s2, n2) = a, b
    v1, v2 = s1**2 / n1, s2**2 / n2
    t = (m1 - m2) / math.sqrt(v1 + v2)
    df = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
    return float(betainc(df / 2, 0.5, df / (df + t**2)))


def test_names_and_specs_here_are_those_of_the_methods() -> None:
    assert set(METHODS) <= set(ALL_METHODS)
    assert len(set(map(style.method_marker, METHODS))) == len(set(map(style.method_colour, METHODS))) == len(METHODS)
    for protocol, scenario, method in PUBLISHED:
        assert spec_of(protocol, scenario, method, 3) == make_spec(protocol, scenario, method, seed=3)


def test_a_cell_counts_the_papers_runs_and_no_others() -> None:
    counted = [result_of(spec_of(seed=seed)) for seed in range(1, 4)]
    changed = [{"iters": 100}, {"tasks": 2}, {"hidden": 10}, {"dataset": "digits"}, {"learning_rate": 0.1}]
    others = [result_of(spec_of(seed=5, **change)) for change in changed]  # type: ignore[arg-type]
    others += [
        result_of(spec_of(seed=GRID_SEED)),
        result_of(spec_of(seed=0)),  # the one with the digits in order
        result_of(replace(spec_of(seed=6), fidelity=AS_WRITTEN)),
        result_of(spec_of("permuted", seed=7)),
        result_of(spec_of(scenario="task", seed=8)),
    ]
    cell = compare(others + counted, "split").cells[RTF]
    assert [run.spec.seed for run in cell.runs] == [1, 2, 3]


def test_a_seed_counts_once_however_many_threads_it_was_run_with() -> None:
    results = [result_of(replace(spec_of(seed=1), threads=n), 0.9 + n / 100) for n in (2, 1)]
    cell = compare(results, "split").cells[RTF]
    assert cell.n == 1
    assert cell.runs[0].spec.threads == 1


def test_other_settings_count_only_in_the_tuned_table() -> None:
    default, chosen = {"lam": 5000.0}, {"lam": 1e7}
    results = [result_of(spec_of("split", "task", "ewc", 1, default), 0.5)]
    results += [result_of(spec_of("split", "task", "ewc", 1, chosen), 0.9)]
    tuned = {("split", "task", "ewc"): chosen}
    assert compare(results, "split").cells["task", "ewc"].mean == 50
    table = compare(results, "split", searched_settings(tuned))
    assert table.cells["task", "ewc"].mean == 90
    assert table.cells["task", "ewc"].settings == chosen
    assert table.cells["class", "ewc"].settings is None
    assert "not been searched" in table.cells["class", "ewc"].note


def test_methods_without_a_search_are_the_same_in_the_tuned_table() -> None:
    results = runs(91, 92, 93)
    assert compare(results, "split", searched_settings({})).cells[RTF].runs == compare(results, "split").cells[RTF].runs


def test_mean_sem_and_difference() -> None:
    accuracies = [92.1, 92.9, 91.7, 93.3]
    cell = compare(runs(*accuracies), "split").cells[RTF]
    assert cell.n == 4
    assert cell.mean == pytest.approx(fmean(accuracies))
    assert cell.sem == pytest.approx(stdev(accuracies) / 2)
    assert cell.difference == pytest.approx(fmean(accuracies) - 92.56)


def test_welch_is_as_computed_by_hand() -> None:
    ours, paper = [92.1, 92.9, 91.7, 93.3], PUBLISHED["split", "class", "rtf"]
    expected = welch_by_hand((fmean(ours), stdev(ours), 4), (paper.mean, paper.sem * math.sqrt(20), 20))
    assert compare(runs(*ours), "split").cells[RTF].p == pytest.approx(expected, rel=1e-9)


@given(
    st.tuples(st.floats(0, 100), st.floats(0.01, 5), st.integers(2, 40)),
    st.tuples(st.floats(0, 100), st.floats(0.01, 5), st.integers(2, 40)),
)
def test_welch_by_hand_for_any_numbers(a: tuple[float, float, int], b: tuple[float, float, int]) -> None:
    (m1, s1, n1), (m2, s2, n2) = a, b
    p = welch(m1, s1 / math.sqrt(n1), n1, m2, s2 / math.sqrt(n2), n2)
    assert p == pytest.approx(welch_by_hand(a, b), rel=1e-6, abs=1e-12)


def test_the_interval_is_that_of_raw_runs() -> None:
    a, b = [91.0, 93.5, 92.0, 90.1], [92.0, 92.2, 91.7, 92.9, 92.4]
    (m1, s1), (m2, s2) = mean_and_sem(a), mean_and_sem(b)
    assert s1 is not None
    assert s2 is not None
    expected = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    margin = welch_margin(s1, 4, s2, 5)
    assert (m1 - m2 - margin, m1 - m2 + margin) == pytest.approx((expected.low, expected.high))
    assert welch_margin(0, 3, 0, 20) == 0


def test_a_difference_that_may_be_large_does_not_agree() -> None:
    cell = compare(runs(60, 85, 92), "split").cells[RTF]
    assert cell.p_holm is not None
    assert cell.p_holm > 0.05
    assert cell.interval is not None
    assert cell.interval[0] < -20
    assert cell.verdict == "undecided"


def test_welch_without_any_spread() -> None:
    assert welch(90, 0, 3, 90, 0, 20) == 1
    assert welch(90, 0, 3, 91, 0, 20) == 0
    one_sided = welch(90, 0, 3, 91, 0.5, 20)
    assert one_sided == pytest.approx(2 * float(betainc(9.5, 0.5, 19 / (19 + 4))) / 2)


def test_runs_that_are_all_alike_are_tested_and_noted() -> None:
    cell = compare(runs(92.0, 92.0, 92.0), "split").cells[RTF]
    assert cell.sem == 0
    assert cell.p is not None
    assert "same accuracy" in cell.note


def test_holm_as_in_a_hand_example() -> None:
    corrected = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    # sorted: .005 x 4, .01 x 3, .03 x 2, .04 x 1 -> .02, .03, .06, then no smaller than the one before
    assert corrected == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def test_the_correction_is_for_the_cells_tested() -> None:
    near = runs(93.9, 94.0, 93.6, 94.1)
    alone = compare(near, "split").cells[RTF]
    assert alone.p_holm == alone.p
    others = [run for run in paper_like("split", 5) if (run.spec.scenario, run.spec.method) != RTF]
    among = compare(near + others, "split")
    assert among.tested == 28
    p = among.cells[RTF].p_holm
    assert p is not None
    assert alone.p is not None
    assert p == pytest.approx(min(1, 28 * alone.p))


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ([92.5, 92.6, 92.4, 92.9], "agrees"),
        ([95.5, 95.6, 95.4, 95.9], "higher"),
        ([85.5, 85.6, 85.4, 85.9], "lower"),
        ([86.5, 92.6, 95.4], "undecided"),  # 91.5 +- 6.5: it may be far off
        ([91.4, 92.6, 93.6, 92.6], "undecided"),  # by 1.4 points, where the published runs have a spread of 0.9
        ([90.4, 93.6] * 10, "inconclusive"),  # as many runs as published, and still up to 1.4 points
        ([91.4, 93.6] * 10, "agrees"),
        ([91.00, 91.02], "in range"),  # two that agree by chance prove nothing
        ([80.00, 80.02], "lower"),
        ([], "missing"),
    ],
)
def test_verdicts(accuracies: list[float], verdict: str) -> None:
    assert cell_verdict(*accuracies) == verdict


def test_a_single_run_is_judged_by_the_published_spread() -> None:
    allowed = 3 * 0.21 * math.sqrt(20)  # 2.82 points
    assert cell_verdict(92.56 + allowed - 0.01) == "in range"
    assert cell_verdict(92.56 + allowed + 0.01) == "higher"
    assert cell_verdict(92.56 - allowed - 0.01) == "lower"
    cell = compare(runs(90), "split").cells[RTF]
    assert cell.p is None
    assert cell.sem is None
    assert cell.note == "one run: within 2.82 points of the published mean"


def test_a_single_run_may_always_be_a_point_off() -> None:
    published = PUBLISHED["split", "task", "rtf"]  # 99.66, its standard deviation a tenth of a point
    close = compare(runs(published.mean - 0.99, scenario="task"), "split")
    far = compare(runs(published.mean - 1.01, scenario="task"), "split")
    assert close.cells["task", "rtf"].verdict == "in range"
    assert far.cells["task", "rtf"].verdict == "lower"


def test_mean_and_sem_of_one_value_has_no_sem() -> None:
    assert mean_and_sem([3.0]) == (3.0, None)


@pytest.mark.parametrize(("share", "quiet"), [(None, False), (1.0, True), (0.96, True), (0.94, False)])
def test_which_times_count(share: float | None, quiet: bool) -> None:
    assert is_quiet(result_of(spec_of(), share=share)) is quiet


def test_every_thread_needs_a_core() -> None:
    two = replace(spec_of(), threads=2)
    assert not is_quiet(result_of(two, share=1.0))
    assert is_quiet(result_of(two, share=2.0))


def test_a_run_of_no_time_has_no_share_of_it() -> None:
    assert not is_quiet(result_of(spec_of(), seconds=0.0))


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'split'"):
        compare([], "spilt")


@pytest.fixture
def table() -> Comparison:
    """A table with cells of all kinds."""
    results = [run for run in paper_like("split", 5) if run.spec.method not in ("rtf", "lwf", "dgr")]
    return compare(results + runs(80, 81, 82) + runs(91, method="dgr"), "split")


def as_plain_text(table: Comparison, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(as_text(table))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_text_fits_a_terminal_and_says_it_all(table: Comparison) -> None:
    text = as_plain_text(table)
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "DGR+distill",
        "81.00 ± 0.58  n=3",
        "▼ lower",
        "≈ in range",
        "missing",
        "λ = 5000, γ = 1",
        "X = 95 %",
        "Holm",
    ):
        assert word in text


def test_only_xdg_has_its_setting_from_elsewhere() -> None:
    said = [note for note in settings_notes(compare([], "split")) if "later report" in note]
    assert said == ["XdG: X = 95 % (from the authors' later report: the 2018 code has no default)"]
    assert not [note for note in settings_notes(compare([], "split", LATER)) if "later report" in note]


def test_markdown_has_a_row_per_method(table: Comparison) -> None:
    rows = [line for line in as_markdown(table).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 10
    assert all(row.count("|") == 5 for row in rows)
    assert "**81.00 ± 0.58** (n=3)<br>paper 92.56 ± 0.21<br>−11.56 [−13.72, −9.40] ▼ lower" in rows[-2]
    assert rows[3].endswith("| – | – |")


def test_latex_is_plain_and_balanced(table: Comparison) -> None:
    text = as_latex(table)
    assert text.isascii()
    assert text.count("{") == text.count("}")
    assert [line.count("&") for line in text.splitlines() if line.endswith(r"\\")] == [3] * 20
    assert r"81.00 $\pm$ 0.58$^{\downarrow}$ {\small $n=3$}" in text
    assert r"\emph{missing}" in text
    assert r"$^{?}$" in as_latex(compare(runs(86.5, 92.6, 95.4), "split"))  # undecided
    assert r"$^{=}$" in as_latex(compare(runs(92.5, 92.6, 92.4, 92.9), "split"))  # agrees
    assert r"$\lambda$ = 5000" in text


def test_json_and_csv_say_the_same(table: Comparison) -> None:
    cells = json.loads(as_json(table))["cells"]
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(cells) == len(rows) == 28
    for cell, row in zip(cells, rows, strict=True):
        assert (cell["scenario"], cell["method"], cell["verdict"]) == (row["scenario"], row["method"], row["verdict"])
        assert row["mean"] == ("" if cell["mean"] is None else str(cell["mean"]))
    rtf = next(c for c in cells if (c["scenario"], c["method"]) == RTF)
    assert (rtf["n"], rtf["verdict"], rtf["published_mean"], rtf["published_n"]) == (3, "lower", 92.56, 20)
    cell = table.cells[RTF]
    assert cell.interval is not None
    assert (rtf["difference_low"], rtf["difference"], rtf["difference_high"]) == pytest.approx(
        (-13.72, -11.56, -9.40), abs=5e-3
    )
    assert (rtf["p_welch"], rtf["p_holm"]) == (cell.p, cell.p_holm)
    assert rtf["p_holm"] == pytest.approx(min(1, table.tested * rtf["p_welch"]))  # the smallest of all
    assert rtf["p_holm"] > rtf["p_welch"]
    assert rtf == next(r for r in records(table) if (r["scenario"], r["method"]) == RTF)


def test_every_format_works_with_nothing_to_show() -> None:
    empty = compare([], "permuted")
    assert {cell.verdict for cell in empty.cells.values()} == {"missing"}
    assert all(write(empty) for write in FORMATS.values())
    assert "missing" in as_plain_text(empty)


def test_tuned_settings_are_told_for_each_scenario() -> None:
    tuned = {("split", "task", "ewc"): {"lam": 1e7}, ("split", "domain", "ewc"): {"lam": 100.0}}
    notes = settings_notes(compare([], "split", searched_settings(tuned)))
    assert "EWC: Task-IL λ = 1e7; Domain-IL λ = 100; Class-IL not searched yet" in notes


def test_only_values_of_the_grid_can_be_chosen() -> None:
    results, tuned = searched("split", "task", ("si",))
    assert tuned_of(results) == tuned
    spec = results[0].spec
    beside = [
        result_of(replace(spec, settings={**spec.settings, "c": 3.0}), 0.99),
        result_of(replace(spec, threads=2), 0.99),
        result_of(replace(spec, seed=3), 0.99),
        result_of(replace(spec, settings={**spec.settings, "xi": 0.5}), 0.99),
        result_of(replace(spec, settings={}), 0.99),
    ]
    assert tuned_of(results + beside) == tuned
    assert tuned_of(results[1:]) == {}  # an unfinished search chooses nothing


def test_one_tuned_run_does_not_take_the_place_of_many() -> None:
    results, tuned = searched("split", "task", ("si",))
    chosen = tuned["split", "task", "si"]
    fresh = [result_of(spec_of("split", "task", "si", seed, chosen), 0.95) for seed in range(1, 4)]
    for n, wanted in ((1, 5), (3, 3)):
        runs = paper_like("split", 5) + results + fresh[:n]
        table = preferred(compare(runs, "split"), compare(runs, "split", searched_settings(tuned)))
        assert table.cells["task", "si"].n == wanted


@pytest.mark.parametrize(
    ("verdict", "mark"),
    [
        ("agrees", "="),
        ("inconclusive", r"\sim"),
        ("undecided", "?"),
        ("in range", r"\approx"),
        ("higher", r"\uparrow"),
        ("lower", r"\downarrow"),
    ],
)
def test_every_verdict_has_a_sign_and_a_rule(verdict: Verdict, mark: str) -> None:
    table = compare(runs(92, 92.5, 93), "split")
    shown = replace(table, cells={RTF: replace(table.cells[RTF], verdict=verdict)})
    assert f"{ARROWS[verdict]} {verdict}" in as_markdown(shown)
    assert f"{ARROWS[verdict]} {verdict}" in as_plain_text(shown, 200)
    assert f"$^{{{mark}}}$" in as_latex(shown)
    assert f"“{verdict}”" in rules(shown)
