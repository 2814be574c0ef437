"""The page as a file: complete, self-contained, escaped, and useful with few runs or none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from relive._util.errors import InputError
from relive.cli import app
from relive.experiments.shown import register_methods_in
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.experiments.store import RESULT, SAMPLES, Store
from relive.report import page, style
from relive.report.page import Report, read_explanations, render, write
from relive.report.times import TIMES
from tests.report.fake import paper_like, pictures_of, result_of, searched, spec_of

VOID = {"meta", "link", "input", "img", "br"}
OPTIONAL_END = {"td"}  # HTML allows the rows of runs to omit it


class Reader(HTMLParser):
    """Collects a page's attributes and text, and whether every element that must be closed is."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID | OPTIONAL_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPTIONAL_END:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def report_of(results: list[RunResult], root: Path, explanations: dict[str, str] | None = None) -> Report:
    return Report(root, results, {}, explanations or {})


def page_of(report: Report) -> Reader:
    """The page without its figures."""
    return read(render(report, [], {}))


def test_a_page_with_everything_is_whole_and_self_contained(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    grid, tuned = searched("split", "task")
    results = [run for run in paper_like("split", 2) if run.spec.method in ("none", "xdg", "rtf")] + grid
    store.save(result_of(spec_of()), pictures_of(5))
    written = write(Report(store.root, results, tuned, {}), tmp_path / "out" / "report.html")
    text = written[0].read_text(encoding="utf-8")
    reader = read(text)
    names = {path.stem for path in written[1:]}
    assert {
        "examples-split",
        "agreement-split",
        "time-split",
        "samples-split",
        "learning-split-task",
        "grid-split",
    } <= names
    assert all(path.stat().st_size > 1000 for path in written)
    images = reader.all("img")
    assert len(images) == len(names)
    assert all(str(image["src"]).startswith("data:image/svg+xml;base64,") and image["alt"] for image in images)
    assert written[0].stat().st_size < 10e6
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert len(reader.all("tr")) > len(results)


def test_nothing_yet_says_what_to_do(tmp_path: Path) -> None:
    written = write(report_of([], tmp_path), tmp_path / "report.html")
    assert written == [tmp_path / "report.html"]
    text = read(written[0].read_text(encoding="utf-8")).text
    assert "Nothing here yet." in text
    assert f"relive paper --protocol split --seeds 5 --runs-dir {tmp_path}" in text
    assert "Permuted MNIST: no runs yet" in text


def test_one_run_is_enough_for_a_page(tmp_path: Path) -> None:
    text = page_of(report_of([result_of(spec_of(), 0.91)], tmp_path)).text
    assert "91.00" in text
    assert "1 run in" in text
    assert "≈ in range" in text
    assert "1 in range" in text


def test_every_setting_and_version_is_there(tmp_path: Path) -> None:
    text = page_of(report_of([result_of(spec_of("split", "task", "online-ewc"))], tmp_path)).text
    for word in ("λ = 5000, γ = 1", "half_gamma_twice", "torch 2.13.0", "learning rate", "as_run", "5 × 2000"):
        assert word in text


def test_whatever_is_in_a_result_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    run = replace(result_of(spec_of(dataset=evil)), versions={"relive": evil, "torch": evil})
    root = tmp_path / "<img src=x>"
    report = Report(root, [run], {}, {}, [f"{evil} is damaged"])
    text = render(report, [], {})
    assert evil not in text
    assert "<img src=x>" not in text
    assert read(text).text.count(evil) >= 3


def test_departures_have_their_explanation_beside_them(tmp_path: Path) -> None:
    runs = [result_of(spec_of("split", "task", m, seed), 0.5 + seed / 1000) for m in ("ewc", "si") for seed in range(3)]
    reader = page_of(report_of(runs, tmp_path, {"split/task/ewc": "λ is <known> to be too small"}))
    assert "λ is <known> to be too small" in reader.text
    assert reader.text.count("Not explained yet.") == 1
    assert len(reader.all("dt")) == len(style.WORDS) + 2


def test_a_cell_that_nearly_departs_may_be_explained_too(tmp_path: Path) -> None:
    texts = {"split/class/rtf": "why it nearly does", "split/class/dgr": "of a cell without runs"}
    text = page_of(report_of([result_of(spec_of(), 0.91)], tmp_path, texts)).text
    assert "why it nearly does" in text
    assert "of a cell without runs" not in text


def test_tuned_tables_have_explanations_of_their_own(tmp_path: Path) -> None:
    tuned = {("split", "task", "ewc"): {"lam": 1e7}}
    run = result_of(spec_of("split", "task", "ewc", 1, {"lam": 1e7}), 0.5)
    texts = {"split/task/ewc": "the default", "split/task/ewc/tuned": "the search"}
    text = page_of(Report(tmp_path, [run], tuned, texts)).text
    assert "the search" in text
    assert "the default" not in text


def test_the_later_reports_table_is_shown_if_there_are_runs_for_it(tmp_path: Path) -> None:
    xdg = result_of(spec_of("split", "task", "xdg", 1))  # the default is the later report's, too
    later = result_of(spec_of("split", "task", "ewc", 1, {"lam": 1e7}), 0.5)
    texts = {"split/task/ewc/later": "why it is so"}
    assert "table-split-later" not in page_of(Report(tmp_path, [xdg], {}, {})).text
    text = page_of(Report(tmp_path, [later], {}, texts)).text
    assert "Split MNIST, later report" in text
    assert "why it is so" in text
    assert "later report table" in text
    assert "1 cells with settings to choose" not in text


def test_the_report_uses_the_times_in_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "runs")
    for run in paper_like("split", 2, share=0.5):
        store.save(run, [])
    output, runs_dir = tmp_path / "report.html", str(store.root)
    cells = {f"split/{s}": {"seconds": {"rtf": [5, 6], "dgr-distill": [10, 12]}} for s in SCENARIO_NAMES}
    (store.root / TIMES).write_text(json.dumps(cells))
    monkeypatch.setattr("relive.report.page.Report.figures", lambda self, data_dir=None: [])
    assert CliRunner().invoke(app, ["report", "--runs-dir", runs_dir, "--output", str(output)]).exit_code == 0
    assert "2 interleaved repeats" in output.read_text()


def test_rows_say_what_a_run_is_used_for(tmp_path: Path) -> None:
    grid, tuned = searched("split", "task", ("si",))
    chosen = result_of(spec_of("split", "task", "si", 1, tuned["split", "task", "si"]))
    in_order = result_of(spec_of(seed=0))
    results = [in_order, result_of(spec_of(iters=10)), *grid, chosen, result_of(spec_of())]
    shown = page_of(Report(tmp_path, results, tuned, {}))
    uses = [row["data-use"] for row in shown.all("tr") if "data-use" in row]
    assert sorted(map(str, set(uses))) == ["grid search", "other", "table, tuned table", "tuned table", "your runs"]
    assert "1 run is in none of the tables (the one seed that keeps the digits in order)" in shown.text
    assert "none of the tables" not in page_of(Report(tmp_path, results[1:], tuned, {})).text


def test_explanations_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / page.EXPLANATIONS
    assert read_explanations(tmp_path) == {}
    file.write_text(json.dumps({"split/task/ewc": "because", "permuted/class/si/tuned": "so"}))
    assert read_explanations(tmp_path)["split/task/ewc"] == "because"
    for wrong, message in (
        ("[", "not JSON"),
        ("[]", "object of strings"),
        ('{"split/task/ew": "x"}', "split/task/ewc"),
    ):
        file.write_text(wrong)
        with pytest.raises(InputError, match=message):
            read_explanations(tmp_path)


def test_headings_go_down_one_level_at_a_time(tmp_path: Path) -> None:
    reader = page_of(report_of(paper_like("split", 1), tmp_path))
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_and_reports_do_without_torch() -> None:
    program = "import sys, relive.cli.table, relive.cli.report, relive.report.page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """A store with two runs, a grid search, and a damaged result."""
    store = Store(tmp_path / "runs")
    store.save(result_of(spec_of(seed=1), 0.92), [])
    store.save(result_of(spec_of(seed=3), 0.93), [])
    damaged = store.save(result_of(spec_of(seed=2), 0.94), []) / RESULT
    damaged.write_text(damaged.read_text().replace("0.94", "0.95", 1))
    for result in searched("split", "task", ("si",))[0]:
        store.save(result, [])
    return store.root


def test_relive_report(runs_dir: Path) -> None:
    output = runs_dir.parent / "site" / "report.html"
    done = CliRunner().invoke(app, ["report", "--runs-dir", str(runs_dir), "--output", str(output)])
    assert done.exit_code == 0
    assert "11 runs" in done.stdout
    assert "seed2" in done.stderr
    assert (output.parent / "figures" / "time-split.svg").exists()
    assert "is damaged" in output.read_text(encoding="utf-8")


def test_a_report_is_not_written_over_a_directory(runs_dir: Path) -> None:
    done = CliRunner().invoke(app, ["report", "--runs-dir", str(runs_dir), "--output", str(runs_dir)])
    assert isinstance(done.exception, InputError)
    assert "is a directory: name the page" in str(done.exception)
    assert not (runs_dir.parent / "figures").exists()


def test_relive_table(runs_dir: Path) -> None:
    done = CliRunner().invoke(app, ["table", "--runs-dir", str(runs_dir), "--format", "json"])
    assert done.exit_code == 0
    assert "seed2" in done.stderr
    cells = {(c["scenario"], c["method"]): c for c in json.loads(done.stdout)["cells"]}
    assert cells["class", "rtf"]["n"] == 2
    assert cells["class", "rtf"]["mean"] == pytest.approx(92.5)
    tuned = CliRunner().invoke(app, ["table", "--runs-dir", str(runs_dir), "--tuned"])
    assert f"c = {searched('split', 'task', ('si',))[1]['split', 'task', 'si']['c']:g}" in tuned.stdout


def test_relive_table_says_which_runs_it_leaves_out(runs_dir: Path) -> None:
    said = "not with the paper's data set, size or fidelity"
    assert said not in CliRunner().invoke(app, ["table", "--runs-dir", str(runs_dir)]).stderr
    for change in ({"dataset": "digits"}, {"iters": 10}):
        Store(runs_dir).save(result_of(spec_of(**change)), [])
    done = CliRunner().invoke(app, ["table", "--runs-dir", str(runs_dir)])
    assert f"2 finished runs are not in this table: {said}" in " ".join(done.stderr.split())
    assert "9 finished runs are not in this table: with other settings, or of grid searches" in done.stderr
    assert said not in CliRunner().invoke(app, ["table", "--protocol", "permuted", "--runs-dir", str(runs_dir)]).stderr


def test_damaged_pictures_are_left_out_and_the_rest_is_shown(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    directory = store.save(result_of(spec_of(seed=1), 0.92), pictures_of(5))
    (directory / SAMPLES).write_bytes((directory / SAMPLES).read_bytes()[:50])
    with pytest.warns(UserWarning, match="left out: .*samples.npz is damaged"):
        written = write(report_of(store.scan()[0], store.root), tmp_path / "report.html")
    assert "samples-split.svg" not in {path.name for path in written}
    assert "time-split.svg" in {path.name for path in written}


def test_relive_table_names_a_wrong_format(runs_dir: Path) -> None:
    done = CliRunner().invoke(app, ["table", "--runs-dir", str(runs_dir), "--format", "jason"])
    assert isinstance(done.exception, InputError)
    assert "did you mean 'json'" in str(done.exception)


def test_runs_of_ones_own_stand_side_by_side_and_nothing_is_said_of_the_paper(tmp_path: Path) -> None:
    runs = [
        result_of(spec_of("split", "class", method, seed, dataset="digits"), accuracy + seed / 100)
        for method, accuracy in (("rtf", 0.8), ("none", 0.2))
        for seed in (1, 2, 3)
    ]
    shown = page_of(report_of(runs, tmp_path)).text
    assert "Runs side by side" in shown
    assert "82.00 ± 0.58" in shown
    assert "None − RtF" in shown
    for word in ("of 28", "The paper’s claims, checked", "The paper’s results, run again"):
        assert word not in shown
    both = page_of(report_of([*runs, result_of(spec_of(seed=2), 0.9)], tmp_path)).text
    assert both.index("Your runs, side by side") < both.index("The paper’s claims, checked")
    assert "of 28 cells have runs" in both


def test_runs_that_are_in_no_cell_of_the_paper_are_one_s_own(tmp_path: Path) -> None:
    """With other settings, or with the one seed that keeps the digits in order."""
    runs = [result_of(spec_of("split", "task", "si", 1, {"c": 7.0}), 0.9), result_of(spec_of(seed=0), 0.9)]
    shown = page_of(report_of(runs, tmp_path)).text
    assert "Runs side by side" in shown
    assert "c = 7" in shown
    for word in ("of 28", "The paper’s claims, checked", "The paper’s results, run again"):
        assert word not in shown


def test_a_run_that_is_in_no_table_has_its_true_reason(tmp_path: Path) -> None:
    own = spec_of("split", "class", "rtf", 1, dataset="digits")
    results = [result_of(spec) for spec in (spec_of(), own, replace(own, threads=2))]
    results.append(result_of(spec_of("split", "task", "si", 1, {"c": 7.0})))
    shown = page_of(report_of(results, tmp_path)).text
    assert (
        "1 run is in none of the tables (a seed that is counted already, run with another number of threads)" in shown
    )
    assert "1 run is in none of the tables (with settings that no table has)" in shown


def test_the_page_names_the_methods_that_keep_data(tmp_path: Path) -> None:
    mine = replace(result_of(spec_of("split", "class", "none", dataset="digits")), shown={"keeps_data": "yes"})
    mine = replace(mine, spec=replace(mine.spec, method="mine.py:Buffered"))
    register_methods_in([mine])
    keeping = page_of(report_of([mine, result_of(spec_of()), result_of(spec_of(method="offline"))], tmp_path)).text
    assert "never sees old data again (only methods that keep data do: Buffered, Offline); then" in keeping
    assert "never sees old data again; then" in page_of(report_of([result_of(spec_of())], tmp_path)).text
