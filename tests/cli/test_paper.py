"""``relive paper`` and ``relive grid`` as a user sees them: real MNIST and real workers, with few iterations."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relive.cli import sweeping
from relive.experiments.resultfile import read_result
from relive.experiments.store import Store
from relive.experiments.sweep import Status
from relive.paper import published as paper
from relive.paper.tuned import tuned_of
from tests.cli.conftest import Command

SMALL: dict[str, Any] = {"iters": 4, "hidden": 10, "latent": 4, "batch_size": 16}
SCRIPT = f"""
from relive.cli import main
from relive.paper import published as paper

for preset in paper.PRESETS.values():
    preset.update({SMALL} | {{"iters": 60}})
main()
"""


@pytest.fixture
def relive(relive: Command, mnist_home: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Commands with presets that take no time."""
    monkeypatch.setenv("RELIVE_DATA", str(mnist_home))
    for preset in paper.PRESETS.values():
        for name, value in SMALL.items():
            monkeypatch.setitem(preset, name, value)
    return relive


def cell_of(relive: Command, scenario: str, method: str, *options: str) -> dict[str, Any]:
    cells = json.loads(relive("table", "--format", "json", *options).out)["cells"]
    (found,) = [cell for cell in cells if (cell["scenario"], cell["method"]) == (scenario, method)]
    return dict(found)


def test_the_papers_table_and_what_is_done_is_not_done_again(relive: Command, tmp_path: Path) -> None:
    asked = ["paper", "--scenario", "class", "--method", "none", "--method", "rtf", "--seeds", "2"]
    first = relive(*asked)
    assert first.code == 0, first.err
    assert "0 of 4 runs done" in first.err
    assert "4 of 4 runs done\n" in first.err
    assert "92.56" in first.out
    results, damaged = Store(tmp_path / "runs").scan()
    assert (len(results), damaged) == (4, [])
    cell = cell_of(relive, "class", "rtf")
    assert cell["n"] == 2
    assert cell_of(relive, "task", "rtf")["verdict"] == "missing"
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/result.json"))]
    again = relive(*asked)
    assert (again.code, again.out) == (0, first.out)
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/result.json"))] == stamps


def test_without_a_terminal_a_sweep_gives_a_sign_of_life(
    capfd: pytest.CaptureFixture[str],
) -> None:
    display = sweeping.Display(quiet=False)
    for _ in range(3):
        display.update(Status(total=2))
    assert capfd.readouterr().err.count("0 of 2 runs done") == 1
    display.last_line -= sweeping.SIGN_OF_LIFE
    for _ in range(3):
        display.update(Status(total=2))
    assert capfd.readouterr().err.count("0 of 2 runs done") == 1


@pytest.mark.usefixtures("no_workers")
def test_a_search_chooses_what_tuned_runs_use(relive: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(paper.GRIDS, ("split", "si"), {"c": [0.01, 1e3, 1e38]})
    tuned = ["paper", "--scenario", "task", "--method", "si", "--seeds", "2", "--tuned"]
    before = relive(*tuned)
    assert before.code == 2
    assert "relive grid --protocol split --scenario task --method si" in before.err
    searched = relive("grid", "--scenario", "task", "--method", "si", "--quiet")
    assert searched.code == 0, searched.err
    assert searched.out.count("← chosen") == 1
    runs = {run.spec.settings["c"]: run.average_accuracy for run in Store(tmp_path / "runs").scan()[0]}
    best = max(runs, key=lambda c: runs[c])
    chosen = tuned_of(Store(tmp_path / "runs").scan()[0])["split", "task", "si"]["c"]
    assert runs[chosen] == runs[best]
    assert (f"c = {chosen:g} is at the edge of its grid" in searched.err) is (chosen != 1e3)
    assert relive(*tuned, "--quiet").code == 0
    assert cell_of(relive, "task", "si", "--tuned")["n"] == 2  # the run of the search does not count
    assert cell_of(relive, "task", "si", "--tuned")["settings"]["c"] == chosen
    assert cell_of(relive, "task", "si")["n"] == 0
    damaged = next((tmp_path / "runs").glob("*seed1000*/result.json"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    said = relive(*tuned)
    assert said.code == 2
    assert f"{damaged.relative_to(tmp_path)} is damaged" in said.err.replace("\n", " ")


@pytest.mark.usefixtures("no_workers")
def test_runs_with_the_later_reports_settings_are_in_its_table(
    relive: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(paper.PRESETS["split"], "iters", 20)
    said = relive("paper", "--scenario", "task", "--method", "si", "--seeds", "1", "--later", "--quiet")
    assert said.code == 0, said.err
    assert "settings of the authors' later report" in " ".join(said.out.split())
    assert "later report" in " ".join(relive("table", "--later").out.split())
    assert relive("paper", "--scenario", "task", "--method", "rtf", "--seeds", "1", "--later", "--quiet").code == 0
    assert cell_of(relive, "task", "si", "--later")["settings"] == {"c": 50.0, "xi": 0.1}
    assert cell_of(relive, "task", "si", "--later")["n"] == 1
    assert cell_of(relive, "task", "si")["n"] == 0
    both = relive("paper", "--later", "--tuned")
    assert both.code == 2
    assert "choose one of them" in both.err


@pytest.mark.usefixtures("no_workers")
def test_what_was_set_aside_is_named_even_if_the_sweep_cannot_go_on(relive: Command, tmp_path: Path) -> None:
    asked = ["paper", "--scenario", "task", "--method", "none", "--seeds", "2", "--quiet"]
    assert relive(*asked).code == 0
    first, second = sorted((tmp_path / "runs").iterdir())
    (first / "result.json").write_text("{}")
    shutil.rmtree(second)
    second.write_text("another kind")
    said = relive(*asked)
    assert said.code == 1
    assert "set aside, and the run is repeated" in said.err
    assert "cannot write to the runs directory" in said.err


@pytest.mark.usefixtures("no_workers")
def test_a_failing_run_is_named_and_the_others_are_kept(
    relive: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(paper.GRIDS, ("split", "si"), {"c": [1.0, 1e38], "xi": [1e-12]})
    monkeypatch.setitem(paper.PRESETS["split"], "iters", 20)
    said = relive("grid", "--scenario", "task", "--method", "si", traceback=True)
    assert said.code == 1
    assert "failed: split-task-si-mnist-seed1000" in said.err
    assert "1 of 2 runs failed, each twice; 1 finished, in runs" in said.err
    assert said.out == ""
    assert [run.spec.settings["c"] for run in Store(tmp_path / "runs").scan()[0]] == [1.0]
    assert tuned_of(Store(tmp_path / "runs").scan()[0]) == {}  # nothing is chosen from an unfinished search


def test_every_search_that_is_missing_is_named_at_once(relive: Command) -> None:
    said = relive("paper", "--tuned", "--method", "ewc", "--method", "xdg", "--method", "none")
    assert said.code == 2
    for cell in ("task --method ewc", "domain --method ewc", "class --method ewc", "task --method xdg"):
        assert f"relive grid --protocol split --scenario {cell}\n" in said.err
    assert said.err.count("relive grid") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paper", "--protocol", "spilt"], "did you mean 'split'"),
        (["paper", "--method", "rft"], "did you mean 'rtf'"),
        (["paper", "--scenario", "task", "--scenario", "clas"], "did you mean 'class'"),
        (["paper", "--method", "xdg", "--scenario", "class"], "there is nothing to run"),
        (["paper", "--engine", "slurm"], "engine = 'slurm': choose local or dask"),
        (["paper", "--scheduler", "tcp://127.0.0.1:8786"], "--scheduler tcp://127.0.0.1:8786 is for --engine dask"),
        (["paper", "--engine", "dask", "--scheduler", "foo"], "scheduler = 'foo': give the full address"),
        (
            ["paper", "--engine", "dask", "--scheduler", "tcp://a:1", "--workers", "2"],
            "--workers 2 is for --engine local",
        ),
        (["paper", "--engine", "dask"], "--engine dask needs --scheduler"),
        (["paper", "--workers", "0"], "workers"),
        (["paper", "--seeds", "0"], "--seeds"),
        (["grid", "--method", "si", "--scenario", "clas"], "did you mean 'class'"),
        (["paper", "--method", "ncm"], "relive compare takes any method"),
        (["grid", "--method", "lwf"], "lwf has no grid in the paper"),
        (
            ["grid", "--method", "xdg", "--scenario", "class"],
            "XdG does not work in scenario 'class': it chooses the gated units by the task",
        ),
    ],
)
def test_bad_input_gets_a_clear_message_and_changes_nothing(
    relive: Command, tmp_path: Path, words: list[str], message: str
) -> None:
    said = relive(*words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_workers")  # except the interrupted command, which has one
@pytest.mark.parametrize("pressed", [0, 0.7])
def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(
    relive: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pressed: float
) -> None:
    asked = ["paper", "--scenario", "task", "--method", "none", "--seeds", "6", "--workers", "1"]
    command = [sys.executable, "-c", SCRIPT, *asked]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 90
    while not list(tmp_path.glob("runs/*/result.json")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + pressed
    while time.monotonic() < end and process.poll() is None:  # repeatedly, until Python itself ends
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "the same command resumes from there" in err
    assert "Traceback" not in err
    kept = len(Store(tmp_path / "runs").scan()[0])
    assert 1 <= kept < 6
    monkeypatch.setitem(paper.PRESETS["split"], "iters", 60)
    done = relive(*asked)
    assert done.code == 0, done.err
    assert len(Store(tmp_path / "runs").scan()[0]) == 6
    assert "85.15" in done.out


@pytest.mark.usefixtures("no_workers")
def test_a_ledger_takes_finished_runs_and_a_sweep_counts_them_as_done(relive: Command, tmp_path: Path) -> None:
    asked = ["paper", "--scenario", "class", "--method", "rtf", "--seeds", "2", "--workers", "1"]
    assert relive(*asked).code == 0
    collected = relive("collect", "runs", "--into", "ledger", "--samples")
    assert (collected.code, collected.out.splitlines()[0]) == (0, "added     2 runs")
    assert sorted(path.name for path in Path("ledger").iterdir()) == ["samples.npz", "split.jsonl"]
    (first, *_), _ = Store(Path("runs")).scan()
    assert len(Store(Path("ledger")).samples(first.spec)) == first.spec.tasks
    before = cell_of(relive, "class", "rtf")
    assert cell_of(relive, "class", "rtf", "--runs-dir", "ledger") == before
    shutil.rmtree("runs")
    again = relive(*asked, "--from", "ledger", "--runs-dir", "fresh")
    assert (again.code, not Path("fresh").exists()) == (0, True), again.err
    assert "n=2" in again.out
    assert "added     0 runs" in relive("collect", "ledger", "--into", "ledger").out


@pytest.mark.usefixtures("no_workers")
def test_a_damaged_result_is_not_collected(relive: Command) -> None:
    asked = ["paper", "--scenario", "task", "--method", "none", "--seeds", "2", "--quiet", "--workers", "1"]
    assert relive(*asked).code == 0
    shutil.copytree("runs", "others")
    path = next(Path("runs").glob("*seed2*/result.json"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    said = relive("collect", "runs", "--into", "ledger")
    assert (said.code, "added     1 run\n" in said.out, f"{path} is damaged" in said.err) == (1, True, True)
    assert relive("collect", "runs", "others", "--into", "ledger").code == 1  # wherever the damage is
    result = read_result(Path("others") / path.parent.name / path.name)
    Store(Path("runs")).save(replace(result, train_seconds=9.0), [])
    said = relive("collect", "runs", "--into", "ledger")
    assert f"ledger has another result of {result.spec.name}, and keeps it; --replace takes the one in runs" in said.err
    assert (
        "replaced  1 run\nknown     1 run, already there\n"
        in relive("collect", "runs", "--into", "ledger", "--replace").out
    )


def test_a_ledger_is_a_directory_and_so_is_what_it_takes(relive: Command, tmp_path: Path) -> None:
    (tmp_path / "split.jsonl").touch()
    (tmp_path / "runs").mkdir()
    assert "split.jsonl is a file: give the runs directory" in relive("collect", "split.jsonl", "--into", "l").err
    said = relive("collect", "runs", "--into", "split.jsonl")
    assert (said.code, "a ledger is a directory" in said.err) == (2, True)


@pytest.mark.parametrize("words", [("collect", "nowhere", "--into", "x"), ("paper", "--from", "nowhere")])
def test_a_ledger_that_is_not_there(words: tuple[str, ...], relive: Command, tmp_path: Path) -> None:
    before = list(tmp_path.iterdir())
    said = relive(*words)
    assert (said.code, "nowhere" in said.err) == (2, True)
    assert list(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("no_workers")
def test_compare_is_one_command(relive: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from relive import Method\n\n\nclass Mine(Method):\n    title = 'My own'\n")
    asked = ["compare", "--dataset", "digits", "--method", "rtf", "--method", "mine.py:Mine", "--seeds", "2"]
    said = relive(*asked, "--format", "json", "--workers", "1")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert [(e["title"], e["n"]) for e in told["entries"]] == [("RtF", 2), ("My own", 2)]
    assert [p["n"] for p in told["pairs"]] == [2]
    assert sorted(path.name for path in Path("runs/figures").glob("*.png")) == [
        "compare-learning.png",
        "compare-time.png",
    ]
    again = relive(*asked)
    assert (again.code, "My own" in again.out) == (0, True)
    listed = relive("methods", "mine.py:Mine", "--json")
    assert json.loads(listed.out)["mine.py:Mine"]["title"] == "My own"
    assert relive("report").code == 0
    assert "My own" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_workers")
def test_a_table_with_failed_runs_is_shown_and_the_exit_code_says_so(
    relive: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(paper.PRESETS["split"], "iters", 5)
    monkeypatch.setattr("relive.methods.lwf.LwF.after_task", lambda *given: 1 / 0)
    said = relive("paper", "--scenario", "task", "--method", "none", "--method", "lwf", "--seeds", "1", traceback=True)
    assert (said.code, "None" in said.out) == (1, True)
    assert "1 of 2 runs failed, each twice; 1 finished, in runs" in said.err


@pytest.mark.usefixtures("no_workers")
def test_compare_sets_what_methods_have_and_says_what_is_left_out(relive: Command) -> None:
    asked = ["compare", "--dataset", "digits", "--tasks", "2", "--iters", "5", "--seeds", "1", "--method", "none"]
    said = relive(*asked, "--method", "ewc", "--method", "xdg", "--set", "lam=7", "--format", "json")
    assert said.code == 0, said.err
    assert "XdG does not work in scenario class, and is left out there" in said.err
    assert [run.spec.settings for run in Store(Path("runs")).scan()[0] if run.spec.method == "ewc"] == [{"lam": 7.0}]
    wrong = relive(*asked, "--set", "lam=7")
    assert (wrong.code, "unknown setting 'lam'" in wrong.err) == (2, True)


@pytest.mark.usefixtures("no_workers")
def test_compare_shows_the_others_if_a_method_fails_and_its_error_once(relive: Command, tmp_path: Path) -> None:
    own = "class Bad(Method):\n    def loss(self, *given):\n        raise KeyError('mine')\n"
    (tmp_path / "bad.py").write_text(f"from relive import Method\n\n\n{own}")
    asked = ["compare", "--dataset", "digits", "--tasks", "2", "--iters", "5", "--seeds", "2", "--format", "json"]
    said = relive(*asked, "--method", "none", "--method", "bad.py:Bad", traceback=True)
    assert said.code == 1
    assert [(e["title"], e["n"]) for e in json.loads(said.out)["entries"]] == [("None", 2)]
    assert "2 of 4 runs failed, each twice; 2 finished, in runs" in said.err
    assert said.err.count("Traceback") == 1
    assert relive(*asked, "--method", "bad.py:Bad", traceback=True).out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "xdg"], "there is nothing to run"),
        (["--method", "rft"], "did you mean 'rtf'"),
        (["--method", "rtf", "--scenario", "clas"], "did you mean 'class'"),
        (["--method", "rtf", "--format", "yaml"], "unknown format 'yaml'"),
        (["--method", "gone.py:Mine"], "there is no file gone.py"),
        (["--method", "none", "--method", "xdg", "--scenario", "task", "--encoder", "conv"], "XdG does not support"),
    ],
)
def test_compare_refuses_before_anything_is_run(words: list[str], message: str, relive: Command) -> None:
    said = relive("compare", "--dataset", "digits", *words)
    assert (said.code, message in said.err) == (2, True), said.err
    assert not Path("runs").exists()
