"""``relive run`` as a user sees it: real processes, exit codes, stdout and stderr."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relive.cli import ending
from relive.experiments.spec import make_spec
from relive.experiments.store import Store
from tests.cli.conftest import Command
from tests.experiments.small import result_of

QUICK = ["--dataset", "digits", "--iters", "5"]


def start(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """Run a command in a separate process."""
    command = [sys.executable, "-m", "relive", *arguments]
    return subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True, **options)


def test_json_is_the_only_thing_on_stdout(relive: Command) -> None:
    done = relive("run", *QUICK, "--method", "ewc", "--set", "lam=10", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert {"spec", "average_accuracy", "accuracy_matrix", "train_seconds", "parameters", "versions"} <= set(result)
    assert result["spec"]["settings"] == {"lam": 10.0}
    assert 0 <= result["average_accuracy"] <= 1
    assert [len(row) for row in result["accuracy_matrix"]] == [5] * 5
    assert "hint" in done.err
    assert "19.90" in done.err
    assert "learned task 5 of 5" in done.err


def test_quiet_says_nothing_on_stderr(relive: Command) -> None:
    done = relive("run", *QUICK, "--method", "none", "--quiet", "--json")
    assert (done.code, done.err) == (0, "")


def test_a_run_leaves_its_directory(relive: Command, tmp_path: Path) -> None:
    done = relive("run", *QUICK)
    assert done.code == 0, done.err
    assert "average accuracy" in done.out
    assert "paper" not in done.out  # which has no results on these digits
    (directory,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in directory.iterdir()} == {
        "spec.json",
        "result.json",
        "samples.npz",
        "accuracy.png",
        "replay.png",
    }
    for picture in ("accuracy.png", "replay.png"):
        assert str(Path("runs") / directory.name / picture) in done.out
        assert (directory / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "paper: 92.56 ± 0.21 % (mean ± SEM of 20 runs; their standard deviation is about 0.9)"),
        ({"seed": 7}, "paper: 92.56 ± 0.21 % (mean ± SEM of 20 runs"),
        ({"iters": 5, "encoder": "conv"}, "differs from the paper (iters=5, encoder=conv), which has 92.56 ± 0.21 %"),
        ({"method": "si", "settings": {"c": 3.0}}, "differs from the paper (c=3), which has 20.04 ± 0.08 %"),
        ({"fidelity": "as_written"}, "differs from the paper (as_written), which has 92.56"),
    ],
)
def test_a_run_on_the_paper_s_data_is_shown_beside_its_number(
    changes: dict[str, Any], message: str, relive: Command
) -> None:
    spec = make_spec(**changes)
    words = [
        word
        for name in ("seed", "iters", "encoder", "method", "fidelity")
        if name in changes
        for word in (f"--{name}", str(changes[name]))
    ]
    words += [word for name, value in changes.get("settings", {}).items() for word in ("--set", f"{name}={value}")]
    Store(Path("runs")).save(result_of(spec), [])
    shown = relive("run", *words)
    assert (shown.code, message in shown.out) == (0, True), shown


def test_a_finished_run_is_shown_and_done_again_only_if_asked_for(relive: Command) -> None:
    store = Store(Path("runs"))
    first = relive("run", *QUICK)
    (done,) = store.scan()[0]
    store.save(replace(done, average_accuracy=0.123), [])
    shown = relive("run", *QUICK)
    assert "this run was already done, and this is its result; --again repeats it" in shown.err
    assert "average accuracy  12.30 %" in shown.out
    assert "replay.png" in shown.out
    store.save(replace(done, versions={**done.versions, "torch": "1"}), [])
    shown = relive("run", *QUICK)
    assert "already done with other versions or on another processor" in shown.err
    assert (shown.out, store.scan()[0][0].versions["torch"]) == (first.out, "1")
    again = relive("run", *QUICK, "--again")
    assert "already done" not in again.err
    assert again.out.splitlines()[:7] == first.out.splitlines()[:7]
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
        (["--dataset", "digits", "--threads", "100000"], "threads = 100000: this machine only has"),
        (["--seed", str(2**63)], "it must be a whole number of at most 9223372036854775807"),
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
    relive: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = relive("run", *arguments)
    assert (done.code, done.out) == (1 if "/dev/null" in message else 2, "")  # unwritable: not a usage error
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_corrupted_file_is_named_and_not_used(relive: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train-images-idx3-ubyte").write_bytes(b"not an image")
    done = relive("run", "--data-dir", data)
    assert done.code == 1
    assert "train-images-idx3-ubyte" in done.err
    assert "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db" in done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_finished_tasks_and_the_run_goes_on_to_the_same_bits(
    relive: Command, tmp_path: Path, how: signal.Signals
) -> None:
    arguments = ["run", "--dataset", "digits", "--iters", "25", "--json"]
    process = start(*arguments, cwd=tmp_path, stdout=subprocess.PIPE)
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
    assert "the same command resumes from there" in err
    assert "Traceback" not in err
    resumed = relive(*arguments)
    whole = relive(*arguments, "--runs-dir", "other")
    assert resumed.code == whole.code == 0
    assert "resuming after task" in resumed.err
    assert "learned task 1 of 5" not in resumed.err
    for key in ("accuracy_matrix", "curve", "average_accuracy", "spec"):
        assert json.loads(resumed.out)[key] == json.loads(whole.out)[key]
    (first,) = tmp_path.glob("runs/*/samples.npz")
    (second,) = tmp_path.glob("other/*/samples.npz")
    assert first.read_bytes() == second.read_bytes()


def test_a_diverged_run_is_an_error_not_a_result(relive: Command, tmp_path: Path) -> None:
    settings = ["--set", "c=1e38", "--set", "xi=1e-12"]
    done = relive("run", "--dataset", "digits", "--scenario", "task", "--method", "si", "--iters", "20", *settings)
    assert done.code == 1
    assert "training diverged" in done.err
    assert not list(tmp_path.glob("runs/*/result.json"))


def test_output_that_cannot_be_printed_is_said(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = start("run", *QUICK, "--method", "none", "--json", "--quiet", cwd=tmp_path, stdout=full)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "cannot print: [Errno 28] No space left on device" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("runs/*/result.json"))


def test_a_damaged_checkpoint_is_said_and_not_used(relive: Command) -> None:
    path = Store(Path("runs")).prepare(make_spec(method="none", dataset="digits", iters=5)) / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    done = relive("run", *QUICK, "--method", "none")
    assert done.code == 0
    assert "checkpoint.safetensors is not a relive checkpoint" in done.err
    assert "learned task 1 of 5" in done.err


def test_a_damaged_result_is_set_aside_and_the_run_done_again(relive: Command, tmp_path: Path) -> None:
    path = Store(Path("runs")).prepare(make_spec(method="none", dataset="digits", iters=5)) / "result.json"
    path.write_bytes(b"not a result")
    done = relive("run", *QUICK, "--method", "none")
    assert done.code == 0
    assert done.err.index("set aside, and the run is repeated") < done.err.index("learned task 1 of 5")
    assert path.with_name("result.json.damaged").read_bytes() == b"not a result"


def test_the_same_run_is_not_done_twice_at_a_time(relive: Command) -> None:
    with Store(Path("runs")).lease(make_spec(method="none", dataset="digits", iters=5)):
        done = relive("run", *QUICK, "--method", "none")
    assert done.code == 2
    assert "this run is already in progress in another process" in done.err


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


def test_methods_are_listed_with_their_settings(relive: Command) -> None:
    listing = json.loads(relive("methods", "--json").out)
    paper = ["none", "xdg", "ewc", "online-ewc", "si", "lwf", "dgr", "dgr-distill", "rtf", "offline"]
    assert list(listing)[:10] == paper
    assert listing["online-ewc"]["settings"]["split"] == {"lam": 5000.0, "gamma": 1.0}
    proportions = {name: chosen["proportion"] for name, chosen in listing["xdg"]["settings"].items()}
    assert proportions == {"split": 0.95, "permuted": 0.55, "rotated": 0.95, "blurred": 0.95}
    assert listing["xdg"]["scenarios"] == ["task"]
    xi = {"symbol": "ξ", "low": 1e-12, "high": None, "percent": False}
    assert xi.items() <= listing["si"]["about_settings"]["xi"].items()
    assert "finite" in listing["si"]["about_settings"]["xi"]["explain"]
    table = relive("methods").out
    assert "Kirkpatrick" in table
    assert "lam=5000" in table


def test_another_encoder(relive: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n\ndef make(shape, hidden, rng):\n    return nn.Linear(shape[0] * shape[1], hidden)\n"
    )
    for encoder, method in (("conv", "rtf"), ("mine.py:make", "ewc")):
        done = relive("run", *QUICK, "--encoder", encoder, "--method", method)
        assert done.code == 0, done.err
    results, _ = Store(tmp_path / "runs").scan()
    assert {result.spec.encoder for result in results} == {"conv", "mine.py:make"}
    for words, message in (
        (["--encoder", "convs"], "unknown encoder 'convs': did you mean 'conv'"),
        (["--encoder", "mine.py:made"], "mine.py has no 'made'"),
        (["--encoder", "conv", "--method", "xdg", "--scenario", "task"], "XdG does not support the encoder Conv"),
    ):
        refused = relive("run", *QUICK, *words, "--runs-dir", "none")
        assert (refused.code, message in refused.err) == (2, True), refused.err
    assert not Path("none").exists()


OWN = """
import torch

from relive import Method


class Raises(Method):
    def after_task(self, net, learned, seen):
        raise RuntimeError("my own bug")


class Opens(Method):
    def after_task(self, net, learned, seen):
        open("/nowhere/x")


class Typo(Method):
    def regularize(self, gradient):
        pass


class Nothing(Method):
    def logits(self, net, x, task):
        return super().logits(net, x, task) * (1 if net.training else torch.nan)


class Whole(Method):
    def __init__(self, per_task: int = 2):
        self.per_task = per_task
"""


@pytest.mark.filterwarnings("default:Typo")
def test_mistakes_in_one_s_own_method_are_said_to_be_there(relive: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("class Mine(:\n")
    words = ["run", "--dataset", "digits", "--tasks", "2", "--iters", "3", "--method"]
    for more, message in (
        (["mine.py:Raises"], "mine.py, line 9: RuntimeError: my own bug"),
        (["broken.py:Mine"], "broken.py, line 1: SyntaxError"),
        (["mine.py:Opens"], "mine.py, line 14: FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/x'"),
        (["mine.py:Nothing"], "logits are not numbers (nan)"),
        (["mine.py:Whole", "--set", "per_task=2.5"], "setting per_task = 2.5 of Whole must be a whole number"),
    ):
        said = relive(*words, *more)
        assert said.code in (1, 2)
        assert message in " ".join(said.err.split()), said.err
        assert "bug in relive" not in said.err
    said = relive(*words, "mine.py:Typo")
    assert said.code == 0
    assert "Typo.regularize is not a hook and is never called: did you mean regularise?" in " ".join(said.err.split())


def test_where_an_error_may_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relive says that it is to blame only if no code of the user's took part."""
    for words, blame in (
        (["relive", "compare", "--method", "si", "--method=here/mine.py:Mine"], "in here/mine.py:Mine, or in relive;"),
        (["relive", "run", "--dataset", "package.module:load"], "in package.module:load, or in relive;"),
        (["relive", "paper", "--scheduler", "tcp://127.0.0.1:8786"], "This is a bug in relive;"),
        (["relive", "run", "--method", "relive.methods.ewc:EWC"], "This is a bug in relive;"),
    ):
        monkeypatch.setattr(sys, "argv", words)
        assert blame in ending.message(KeyError("x"))
    monkeypatch.setattr(sys, "argv", ["relive", "run", "--dataset", "mine.py:load"])
    kept = "No space left: runs; whatever was stored before is kept"
    assert ending.message(OSError(28, "No space left", "runs")) == kept


def test_an_installed_package_is_the_user_s_own_if_the_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed.py").write_text("def load():\n    raise OSError('no such disk')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(OSError, match="no such disk") as caught:
        importlib.import_module("installed").load()
    for words, named in ((["installed:load"], True), (["mnist"], False)):
        monkeypatch.setattr(sys, "argv", ["relive", "run", "--dataset", *words])
        said = ending.message(caught.value)
        assert said.startswith("installed.py, line 2: OSError: no such disk") == named, said
