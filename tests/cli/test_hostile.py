"""Careless and hostile use: a message, the right exit code, and intact files."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from relive._util.tensorfile import read_tensors, write_tensors
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.classifier.modelheader import KIND, VERSION
from relive.cli import ending
from relive.cli.sweeping import make_engine
from relive.experiments.resultfile import signed, to_bytes
from relive.experiments.spec import make_spec
from relive.experiments.store import RESULT, Store
from tests.cli.conftest import Command
from tests.report.fake import result_of

M = "m.safetensors"
NETWORK = ("--method", "none", "--hidden", "5", "--iterations", "3")


def table(path: Path, labels: list[str], n: int = 8) -> Path:
    """Write a CSV file with n samples of each label."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "label"])
        for k, label in enumerate(labels * n):
            writer.writerow([*(rng.random(3) + k % len(labels)).round(3), label])
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return table(tmp_path / "t.csv", ["x", "y"])


class TestNumbers:
    def test_a_seed_with_which_no_model_could_be_read_is_refused(self, relive: Command, data: Path) -> None:
        said = relive("fit", M, data, "--seed", "-1")
        assert (said.code, Path(M).exists()) == (2, False)
        assert "(--seed) = -1: it must be a whole number of at least 0" in said.err

    @pytest.mark.parametrize(
        "options",
        [
            ["--hidden", "1000000000"],
            ["--hidden", "9000000"],
            ["--latent", "1000000000", "--method", "rtf"],
            ["--batch-size", "1000000000000"],
            ["--hidden", "9" * 400],
            ["--learning-rate", "9" * 400],
            ["--seed", "9" * 400],
            ["--set", "lam=" + "9" * 400, "--method", "ewc"],
        ],
    )
    def test_memory_that_cannot_be_had_is_one_line(self, relive: Command, data: Path, options: list[str]) -> None:
        said = relive("fit", M, data, *NETWORK, *options)
        assert (said.code in (1, 2), Path(M).exists()) == (True, False)
        assert re.fullmatch(r"error: [^\n]+\n", said.err) or "Invalid value" in said.err

    def test_so_it_is_with_an_existing_model(self, relive: Command, data: Path) -> None:
        assert relive("fit", M, data, *NETWORK).code == 0
        before = Path(M).read_bytes()
        said = relive("fit", M, data, "--again", "--batch-size", "1000000000000")
        assert (said.code, Path(M).read_bytes() == before) == (2, True)
        assert "batch_size = 1000000000000: it must be a whole number of at most 10000000" in said.err

    def test_a_run_too(self, relive: Command) -> None:
        said = relive("run", "--dataset", "digits", "--method", "none", "--hidden", "1000000", "--quiet")
        assert said.code == 1
        assert said.err == (
            "error: there is not enough memory: use less, for example a smaller --hidden or --batch-size\n"
        )


class TestEndings:
    def test_what_was_not_foreseen_is_one_line_and_a_traceback_only_on_request(
        self, relive: Command, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*args: Any, **more: Any) -> None:
            raise ZeroDivisionError("by [red]zero[/] and \x1b[2J")

        monkeypatch.setattr("relive.data.readers.formats.read_any", broken)
        said = relive("fit", M, data)  # an error in a file that is not relive's
        assert said.code == 1
        assert re.match(r"error: test_hostile\.py, line \d+: ZeroDivisionError: by ", said.err)
        inside: dict[str, Any] = {}
        code = "def broken(*a, **b):\n    raise ZeroDivisionError('by [red]zero[/] and \\x1b[2J')\n"
        exec(compile(code, str(Path(ending.__file__).with_name("made_up.py")), "exec"), inside)
        monkeypatch.setattr("relive.data.readers.formats.read_any", inside["broken"])
        said = relive("fit", M, data)
        assert said.code == 1
        assert re.fullmatch(
            r"error: ZeroDivisionError: by \[red\]zero\[/\] and \\x1b\[2J\. This is a bug .*--debug.*\n", said.err
        )
        said = relive("--debug", "fit", M, data, traceback=True)
        assert said.code == 1
        assert "made_up.py" in said.err

    def test_a_full_disk_divergence_and_damage_are_failures_not_misuse(
        self, relive: Command, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert relive("fit", M, data, *NETWORK).code == 0
        before = Path(M).read_bytes()
        said = relive("fit", "other.safetensors", data, *NETWORK, "--learning-rate", "1e30")
        assert (said.code, "diverged" in said.err) == (1, True)
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            said = relive("fit", M, data, "--again")
            assert (said.code, "No space left on device" in said.err) == (1, True)
        assert Path(M).read_bytes() == before
        Path(M).write_bytes(before[:-1])
        said = relive("inspect", M)
        assert (said.code, "cut short" in said.err) == (1, True)
        assert relive("inspect", "nothing.safetensors").code == 2


class TestText:
    def test_brackets_in_a_path_are_brackets(self, relive: Command) -> None:
        options = ("--dataset", "digits", "--method", "none", "--iters", "2", "--hidden", "5", "--quiet")
        said = relive("run", *options, "--runs-dir", "a[/]b")
        assert (said.code, "a[/]b" in said.out) == (0, True)
        Path("x[").mkdir()
        said = relive("report", "--runs-dir", "a[/]b", "--output", "x[/]y.html")
        assert (said.code, "x[/]y.html" in said.out) == (0, True)

    def test_control_characters_are_shown_not_sent(self, relive: Command, tmp_path: Path) -> None:
        label = "a\x1b[2J\x9b5m\u202e[bold]b"
        data = table(tmp_path / "t.csv", [label, "y"])
        for words in (
            ("fit", M, data, "--task", "t\x1b]0;x\x07"),
            ("inspect", M),
            ("inspect", M, "--json"),
            ("evaluate", M, data),
            ("evaluate", M, data, "--format", "json"),
            ("predict", M, data, "--format", "json"),
            ("rename", M, label, "c\x1b[1m"),
            ("inspect", M),
            ("inspect", tmp_path / "no\x1b[2Jwhere"),
        ):
            said = relive(*words)
            assert said.code == (2 if "no\x1b" in str(words[1]) else 0), said.err
            sent = set(said.out + said.err) & {"\x1b", "\x07", "\x9b", "\u202e"}
            assert not sent, (words, sent)
        said = relive("inspect", M)
        assert r"c\x1b[1m" in said.out
        assert r"t\x1b]0;x\x07" in said.out

    def test_a_label_with_a_nul_character_is_refused(self, relive: Command, tmp_path: Path) -> None:
        said = relive("fit", M, table(tmp_path / "t.csv", ["a\0", "a"]))
        assert (said.code, Path(M).exists()) == (2, False)
        assert "NUL character" in said.err
        with pytest.raises(ValueError, match="NUL character"):
            ContinualClassifier().fit(np.random.default_rng(0).random((4, 2)), ["a\0", "a", "a\0", "a"])

    def test_no_spreadsheet_runs_an_answer(self, relive: Command, tmp_path: Path) -> None:
        labels = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "-1", "rose"]
        data = table(tmp_path / "t.csv", labels)
        assert relive("fit", M, data).code == 0
        answers = {row[0] for row in csv.reader(relive("predict", M, data).out.splitlines()[1:])}
        assert not any(answer.startswith(("=", "+", "@")) or answer == "-2+3" for answer in answers)
        exact = {row["label"] for row in json.loads(relive("predict", M, data, "--format", "json").out)}
        assert {answer.removeprefix("'") for answer in answers} == exact <= set(labels)

    def test_a_folder_s_name_that_is_no_text_can_be_drawn(self, relive: Command, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        for name in (b"caf\xe9", b"$\\frac{", b"esc\x1b[2J"):
            folder = os.path.join(os.fsencode(tmp_path / "photos"), name)
            os.makedirs(folder)
            for i in range(4):
                pixels = rng.integers(0, 255, (8, 8), dtype=np.uint8)
                Image.fromarray(pixels).save(os.fsdecode(os.path.join(folder, b"%d.png" % i)))
        options = ("--size", "8", "--method", "rtf", "--latent", "3")
        assert relive("fit", M, tmp_path / "photos", *options, "--hidden", "5", "--iterations", "3").code == 0
        said = relive("inspect", M, "--picture", "p.png")
        assert (said.code, said.err) == (0, "")
        with Image.open("p.png") as picture:
            assert picture.size[0] > 100


class TestFiles:
    @pytest.mark.parametrize("command", ["inspect", "predict", "fit"])
    def test_a_model_that_is_no_file_is_refused_at_once(self, relive: Command, data: Path, command: str) -> None:
        os.mkfifo("pipe.safetensors")
        with open("sparse.safetensors", "wb") as file:
            file.write((2**33).to_bytes(8, "little") + b"{")
            file.truncate(40 * 2**30)
        for model in ("pipe.safetensors", "sparse.safetensors", "/dev/zero"):
            said = relive(command, model, *([data] if command != "inspect" else []))
            assert said.code in (1, 2)
            assert re.fullmatch(r"error: [^\n]+\n", said.err)

    def test_a_file_that_is_larger_than_its_header_says_is_not_read(self, relive: Command, data: Path) -> None:
        assert relive("fit", M, data, *NETWORK).code == 0
        os.truncate(M, 40 * 2**30)
        said = relive("inspect", M)
        assert (said.code, "cut short or damaged: it has 42949672960 bytes" in said.err) == (1, True)

    def test_data_that_are_no_file_or_do_not_fit_are_refused(
        self, relive: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        os.mkfifo("pipe.csv")
        said = relive("fit", M, "pipe.csv")
        assert (said.code, "a pipe or a device" in said.err) == (2, True)
        said = relive("run", "--dataset", "pipe.csv")
        assert (said.code, "a pipe or a device" in said.err) == (2, True)
        (tmp_path / "photos" / "x").mkdir(parents=True)
        os.mkfifo(tmp_path / "photos" / "x" / "1.png")
        said = relive("fit", M, "photos")
        assert (said.code, "a pipe or a device" in said.err) == (1, True)
        for reader in ("tables", "npz"):
            monkeypatch.setattr(f"relive.data.readers.{reader}.memory", lambda: 2**22)
        with gzip.open("bomb.csv.gz", "wb") as file:
            for _ in range(64):
                file.write(b"0" * 2**20)
        assert Path("bomb.csv.gz").stat().st_size < 2**18
        said = relive("fit", M, "bomb.csv.gz")
        assert (said.code, "unpacks to more than" in said.err) == (1, True)
        np.savez_compressed("bomb.npz", X=np.zeros((2**21, 2)), y=np.zeros(2**21))
        said = relive("fit", M, "bomb.npz")
        assert (said.code, "which does not fit into memory" in said.err) == (2, True)

    def test_numbers_that_overflow_are_no_answer(self, relive: Command, data: Path) -> None:
        assert relive("fit", M, data, *NETWORK).code == 0
        header, tensors = read_tensors(Path(M), KIND, VERSION)
        name = "learner.net.encoder.layer2.weight"
        for size in (3e38, 1e17):
            large = {n: t.clone().fill_(size) if n == name else t for n, t in tensors.items()}
            large["learner.net.head.weight"] = tensors["learner.net.head.weight"].clone().fill_(size)
            write_tensors(Path(M), KIND, VERSION, header, large)
            said = relive("predict", M, data)
            assert (said.code, said.out if size > 1e18 else "") == (1 if size > 1e18 else said.code, "")
            assert "nan" not in said.out
            assert "or too large" in said.err or size < 1e18

    def test_four_versions_are_three_after_the_next_change(self, relive: Command, data: Path) -> None:
        """A kill between the save and the removal of the oldest version leaves one too many, until the next change."""
        for _ in range(5):
            assert relive("fit", M, data, *NETWORK, "--again", "--keep", "3").code == 0
        kept = sorted(Path().glob(f"{M}.kept-*"))
        assert len(kept) == 3
        Path(f"{M}.kept-4").write_bytes(kept[2].read_bytes()[:-1] + b"x")
        assert relive("rename", M, "x", "z").code == 0
        assert len(list(Path().glob(f"{M}.kept-*"))) == 3


def test_results_of_another_machine_that_are_none_are_left_out_of_the_report(relive: Command) -> None:
    store = Store(Path("runs"))
    paths = [store.save(result_of(make_spec("split", "class", "none", seed=seed), 0.5), []) for seed in range(4)]
    for path, wrong in zip(paths[1:], ("x", float("inf"), 10**400), strict=True):
        values = json.loads((path / RESULT).read_text()) | {"average_accuracy": wrong}
        del values["sha256"]
        (path / RESULT).write_bytes(to_bytes(signed(values)))
    said = relive("report")
    assert (said.code, "(1 runs," in said.out) == (0, True)
    assert said.err.count("left out:") == 3
    assert relive("table").code == 0
    assert relive("collect", "runs", "--into", "ledger").code == 1  # something was left out


def test_a_temporary_file_is_never_readable_by_more_than_the_file(tmp_path: Path) -> None:
    from relive._util.files import write_atomic

    path, modes = tmp_path / "file", []
    path.touch()
    for mode in (0o600, 0o640, 0o664):
        path.chmod(mode)
        write_atomic(path, lambda file: modes.append(os.fstat(file.fileno()).st_mode & 0o777))
        assert modes[-1] & ~mode == 0
        assert path.stat().st_mode & 0o777 == mode


def test_a_model_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = ContinualClassifier("none", hidden=5, iterations=2).fit(rng.random((8, 3)), [0, 1] * 4)
    model.save(tmp_path / M)
    before = (tmp_path / M).read_bytes()
    model.seed_ = -1
    with pytest.raises(Exception, match=r"cannot write .*m\.safetensors: it could not be read back: .*unchanged"):
        model.save(tmp_path / M)
    assert (tmp_path / M).read_bytes() == before
    assert os.listdir(tmp_path) == [M]
    assert load(tmp_path / M).seed_ == 0


def test_what_dask_says_of_a_lost_scheduler_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("relive.experiments.dask_engine.DaskEngine", lambda address: address)
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado")]
    for logger in loggers:
        monkeypatch.setattr(logger, "handlers", [logging.StreamHandler()])
        monkeypatch.setattr(logger, "propagate", False)
    make_engine("dask", None, "tcp://127.0.0.1:1")
    for name in ("distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).error("Traceback (most recent call last)")
    assert capfd.readouterr().err == ""


def test_the_documents_commands_leave_no_port_open_to_everybody() -> None:
    lines = (Path(__file__).parents[2] / "docs/sweeps.md").read_text().splitlines()
    commands = [line for line in lines if line.startswith(("dask scheduler", "dask worker"))]
    assert len(commands) == 2
    assert all("--host" in line and "--dashboard-address 127.0.0.1:0" in line for line in commands)
