"""Snapshots from the command line, and the studio as a process: its address, how it ends, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from relive._util.errors import DataError
from tests.cli.conftest import Command

QUICK = ("--dataset", "digits", "--iters", "3", "--hidden", "8", "--latent", "2", "--tasks", "2")


def snapshots(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("runs/*/snapshots/*"))


def test_a_run_keeps_snapshots_and_the_same_result(relive: Command, tmp_path: Path) -> None:
    words = ("run", *QUICK, "--json")
    plain = json.loads(relive(*words).out)
    again = relive(*words, "--snapshots")
    assert "done before, without snapshots: it is repeated" in again.err
    assert snapshots(tmp_path) == ["task1.safetensors", "task2.safetensors"]
    times = {"train_seconds": 0, "cpu_seconds": 0}
    assert json.loads(again.out) | times == plain | times
    assert "this is its result" in relive(*words, "--snapshots").err
    path = next(tmp_path.glob("runs/*/snapshots/task2.safetensors"))
    about = json.loads(relive("inspect", path, "--json").out)
    assert [c["label"] for c in about["classes"]] == [str(digit) for digit in range(10)]
    assert not list(tmp_path.glob("runs/*/progress.json"))


def test_a_comparison_keeps_snapshots_of_all_its_runs(relive: Command, tmp_path: Path, no_workers: None) -> None:
    done = relive("compare", *QUICK, "--method", "none", "--method", "rtf", "--seeds", "1", "--snapshots", "--quiet")
    assert done.code == 0
    assert len(snapshots(tmp_path)) == 4


def test_the_studio_prints_its_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "relive", "studio", "--no-open", "--host", "127.0.0.1"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert server.stdout is not None
    assert server.stdout.readline() == "studio    runs (stop with Ctrl-C)\n"
    address, _, token = server.stdout.readline().strip().partition("#token=")
    assert len(token) >= 32
    request = urllib.request.Request(f"{address}api/catalogue", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert "rtf" in answer.read().decode()
    os.kill(server.pid, signal.SIGINT)
    out, err = server.communicate(timeout=60)
    assert (server.returncode, out, err) == (0, "stopped.\n", "")
    assert not list(tmp_path.iterdir())  # it created no files


def test_what_the_studio_cannot_do_is_said(relive: Command) -> None:
    assert "--from nowhere: there is no such directory" in relive("studio", "--no-open", "--from", "nowhere").err
    assert (
        "--demo fashion-mnist: choose digits or mnist" in relive("studio", "--no-open", "--demo", "fashion-mnist").err
    )
    assert "relive studio --demo mnist" in relive("studio", "mnist").err
    far = relive("studio", "--no-open", "--host", "192.0.2.1")
    assert "cannot listen on 192.0.2.1" in far.err
    assert "other machines can reach 192.0.2.1" in far.err


@pytest.mark.parametrize(("words", "dataset"), [(["--demo"], "digits"), (["--demo", "mnist"], "mnist")])
def test_the_demonstration_is_of_the_data_that_are_named_or_says_how_to_do_without(
    relive: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], dataset: str
) -> None:
    made: list[list[str]] = []
    monkeypatch.setattr("relive.cli.studio._make_demo", lambda commands, *_: made.extend(commands))
    monkeypatch.setattr("relive.data.datasets.sources.load_data", lambda *_: None)
    relive("studio", *words, "--no-open", "--host", "192.0.2.1")  # which it cannot listen on
    assert [command[:3] for command in made] == [["run", "--dataset", dataset]] * 2

    def no_data(*_: object) -> None:
        raise DataError(f"cannot get {dataset}")

    monkeypatch.setattr("relive.data.datasets.sources.load_data", no_data)
    said = relive("studio", *words, "--no-open").err
    assert (
        said == f"error: cannot get {dataset}\nrelive studio --demo, without {dataset}, takes digits, which are here\n"
    )
    assert len(made) == 2


def test_without_the_extra_it_is_named() -> None:
    code = "import sys, relive.cli; sys.modules['uvicorn'] = None; sys.argv[1:] = ['studio']; relive.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "relive studio needs uvicorn, which is not installed: pip install 'relive[studio]'" in done.stderr
