"""``relive run`` as a user meets it: real processes, exit codes, what stands on stdout and on stderr."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from relive.cli import main
from relive.experiments.spec import make_spec
from relive.experiments.store import Store

QUICK = ["--dataset", "digits", "--iters", "5"]


def relive(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relive", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_json_is_the_only_thing_on_stdout(tmp_path: Path) -> None:
    done = relive("run", *QUICK, "--method", "ewc", "--set", "lam=10", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"spec", "average_accuracy", "accuracy_matrix", "train_seconds", "parameters", "versions"} <= set(result)
    assert result["spec"]["settings"] == {"lam": 10.0}
    assert 0 <= result["average_accuracy"] <= 1
    assert [len(row) for row in result["accuracy_matrix"]] == [5] * 5
    assert "hint" in done.stderr
    assert "19.90" in done.stderr
    assert "learned task 5 of 5" in done.stderr


def test_quiet_says_nothing_on_stderr(tmp_path: Path) -> None:
    done = relive("run", *QUICK, "--method", "none", "--quiet", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_is_shown_beside_the_paper_and_leaves_its_directory(tmp_path: Path) -> None:
    done = relive("run", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "92.56 ± 0.21 %" in done.stdout
    assert "dataset=digits, iters=5" in done.stdout  # what is not as in the paper is said
    (directory,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in directory.iterdir()} == {
        "spec.json",
        "result.json",
        "samples.npz",
        "accuracy.png",
        "replay.png",
    }
    for picture in ("accuracy.png", "replay.png"):
        assert str(Path("runs") / directory.name / picture) in done.stdout
        assert (directory / picture).read_bytes().startswith(b"\x89PNG")


def test_a_finished_run_is_shown_and_done_again_only_if_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    first = relive("run", *QUICK, cwd=tmp_path)
    (done,) = store.scan()[0]
    store.save(replace(done, average_accuracy=0.123), [])
    shown = relive("run", *QUICK, cwd=tmp_path)
    assert "this run was done before: this is its result; --again does it again" in shown.stderr
    assert "average accuracy  12.30 %" in shown.stdout
    assert "replay.png" in shown.stdout
    store.save(replace(done, versions={**done.versions, "torch": "1"}), [])
    shown = relive("run", *QUICK, cwd=tmp_path)
    assert "done before with other versions or on another processor" in shown.stderr
    assert (shown.stdout, store.scan()[0][0].versions["torch"]) == (first.stdout, "1")
    again = relive("run", *QUICK, "--again", cwd=tmp_path)
    assert "done before" not in again.stderr
    assert again.stdout.splitlines()[:7] == first.stdout.splitlines()[:7]
    assert store.scan()[0][0].versions == done.versions


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "rft"], "unknown method 'rft': did you mean 'rtf'?"),
        (["--scenario", "clas"], "unknown scenario 'clas': did you mean 'class'?"),
        (["--protocol", "splitt"], "unknown protocol 'splitt': did you mean 'split'?"),
        (["--dataset", "minst"], "unknown data set 'minst': did you mean 'mnist'?"),
        (["--dataset", "digits", "--tasks", "3"], "tasks = 3: digits has 10 classes"),
        (["--method", "xdg"], "the task must be known"),
        (["--method", "si", "--set", "c=-1"], "setting c = -1.0 of SI is out of range"),
        (["--method", "si", "--set", "c=nan"], "setting c = nan of SI is out of range"),
        (["--method", "si", "--set", "c=much"], "setting c = 'much' is not a number"),
        (["--method", "ewc", "--set", "lambda=3"], "unknown setting of EWC 'lambda'"),
        (["--method", "rtf", "--set", "c=1"], "RtF has no settings"),
        (["--set", "c"], "write it as NAME=VALUE"),
        (["--method", "si", "--set", "c=1", "--set", "c=2"], "--set gives c twice: 1 and 2"),
        (["--dataset", "digits", "--threads", "100000"], "threads = 100000: this machine has"),
        (["--seed", str(2**63)], "it must be below 2**63"),
        (["--fidelity", "as_told"], "fidelity = 'as_told': choose one of as_run, as_written"),
        (["--choose", "fisher_label=true"], "did you mean 'fisher_labels'?"),
        (["--choose", "fisher_labels=wrong"], "choose one of predicted, true, expected"),
        (["--iters", "0"], "iters = 0: it must be a whole number of at least 1"),
        (["--seed", "-1"], "seed = -1"),
        (["--dataset", "digits", "--runs-dir", "/dev/null/runs"], "cannot write to the runs directory /dev/null/runs"),
        (["--data-dir", "/dev/null/data"], "/dev/null/data"),
    ],
)
def test_bad_input_gets_a_clear_message_and_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["relive", "run", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    out, err = capfd.readouterr()
    assert exit_.value.code == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_corrupted_file_is_named_and_not_used(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train-images-idx3-ubyte").write_bytes(b"not an image")
    done = relive("run", "--data-dir", str(data), cwd=tmp_path)
    assert done.returncode == 2
    assert "train-images-idx3-ubyte" in done.stderr
    assert "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_finished_tasks_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, how: signal.Signals
) -> None:
    arguments = ["run", "--dataset", "digits", "--iters", "25", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "relive", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 90
    while not list(tmp_path.glob("runs/*/checkpoint.safetensors")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "stopped. Kept:" in err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    resumed = relive(*arguments, cwd=tmp_path)
    whole = relive(*arguments, "--runs-dir", "other", cwd=tmp_path)
    assert resumed.returncode == whole.returncode == 0
    assert "going on after task" in resumed.stderr
    assert "learned task 1 of 5" not in resumed.stderr
    for key in ("accuracy_matrix", "curve", "average_accuracy", "spec"):
        assert json.loads(resumed.stdout)[key] == json.loads(whole.stdout)[key]
    (first,) = tmp_path.glob("runs/*/samples.npz")
    (second,) = tmp_path.glob("other/*/samples.npz")
    assert first.read_bytes() == second.read_bytes()


def test_a_diverged_run_is_an_error_not_a_result(tmp_path: Path) -> None:
    settings = ["--set", "c=1e38", "--set", "xi=1e-12"]
    arguments = ["--dataset", "digits", "--scenario", "task", "--method", "si", "--iters", "20", *settings]
    done = relive("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "training diverged" in done.stderr
    assert not list(tmp_path.glob("runs/*/result.json"))


def test_output_that_cannot_be_printed_is_said(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "relive", "run", *QUICK, "--method", "none", "--json", "--quiet"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot print: [Errno 28] No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("runs/*/result.json"))


def test_a_damaged_checkpoint_is_said_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["relive", "run", *QUICK, "--method", "none", "--runs-dir", "runs"])
    path = Store(Path("runs")).prepare(make_spec(method="none", dataset="digits", iters=5)) / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    err = capfd.readouterr().err
    assert "checkpoint.safetensors is not a relive checkpoint" in err
    assert "learned task 1 of 5" in err


def test_the_same_run_is_not_done_twice_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["relive", "run", *QUICK, "--method", "none"])
    lease = Store(Path("runs")).lease(make_spec(method="none", dataset="digits", iters=5))
    with lease, pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "this very run is under way in another process" in capfd.readouterr().err


def test_help_answers_without_torch(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "relive", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "relive run --scenario class" in done.stdout
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"torch", "sklearn", "matplotlib", "scipy"}


def test_methods_are_listed_with_their_settings(tmp_path: Path) -> None:
    done = relive("methods", "--json", cwd=tmp_path)
    listing = json.loads(done.stdout)
    assert list(listing)[:10] == [
        "none",
        "xdg",
        "ewc",
        "online-ewc",
        "si",
        "lwf",
        "dgr",
        "dgr-distill",
        "rtf",
        "offline",
    ]
    assert listing["online-ewc"]["settings"]["split"] == {"lam": 5000.0, "gamma": 1.0}
    proportions = {name: chosen["proportion"] for name, chosen in listing["xdg"]["settings"].items()}
    assert proportions == {"split": 0.95, "permuted": 0.55, "rotated": 0.95, "blurred": 0.95}
    assert listing["xdg"]["scenarios"] == ["task"]
    table = relive("methods", cwd=tmp_path).stdout
    assert "Kirkpatrick" in table
    assert "lam=5000" in table


def test_another_encoder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n\ndef make(shape, hidden, rng):\n    return nn.Linear(shape[0] * shape[1], hidden)\n"
    )
    for encoder, method in (("conv", "rtf"), ("mine.py:make", "ewc")):
        done = relive("run", *QUICK, "--encoder", encoder, "--method", method, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"(dataset=digits, iters=5, encoder={encoder}), which has" in done.stdout
    results, _ = Store(tmp_path / "runs").scan()
    assert {result.spec.encoder for result in results} == {"conv", "mine.py:make"}
    for words, message in (
        (["--encoder", "convs"], "unknown encoder 'convs': did you mean 'conv'"),
        (["--encoder", "mine.py:made"], "mine.py has no 'made'"),
        (["--encoder", "conv", "--method", "xdg", "--scenario", "task"], "XdG does not work with the encoder Conv"),
    ):
        refused = relive("run", *QUICK, *words, cwd=tmp_path)
        assert refused.returncode == 2
        assert message in refused.stderr
