"""Data sets and protocols of one's own on the command line: run, compared, listed, or refused before all else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relive.cli import main

PROTOCOL = """
from relive import Protocol
from relive.data.protocols import transformed

def make(data, n_tasks, seed, fidelity):
    return transformed(data, [lambda x, k=k: x.roll(k, 1) for k in range(n_tasks)], [str(k) for k in range(n_tasks)])

ROLLED = Protocol("rolled", make, title="Rolled", preset={"tasks": 2, "iters": 3})
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set of colour pictures, one of features, and a protocol."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(4), 10)
    np.savez("colour.npz", X=rng.integers(0, 256, (40, 4, 6, 3), dtype=np.uint8), y=y)
    np.savez("features.npz", X=rng.normal(size=(40, 5)), y=y)
    Path("mine.py").write_text(PROTOCOL)
    return tmp_path


def relive(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    monkeypatch.setattr("sys.argv", ["relive", *words])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_a_run_on_a_file(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], here: Path) -> None:
    run = ("run", "--dataset", "colour.npz", "--tasks", "2", "--iters", "3")
    assert not relive(monkeypatch, *run)
    out, err = capfd.readouterr()
    assert "average accuracy" in out
    assert "every fifth sample of each class is held out" in err
    (directory,) = (here / "runs").iterdir()
    assert directory.name.startswith("split-class-rtf-colour.npz-seed0-")
    assert (directory / "replay.png").exists()
    sources = json.loads((directory / "spec.json").read_text())["sources"]
    assert list(sources) == ["colour.npz"]
    assert not relive(monkeypatch, *run)
    assert "this run was done before" in capfd.readouterr().err


def test_features_have_no_pictures_of_what_is_replayed(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    assert not relive(monkeypatch, "run", "--dataset", "features.npz", "--tasks", "2", "--iters", "3", "-q")
    (directory,) = (here / "runs").iterdir()
    assert [path.name for path in directory.glob("*.png")] == ["accuracy.png"]


@pytest.mark.parametrize("command", [["run"], ["compare", "--method", "none", "--workers", "1"]])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "features.npz", "--tasks", "3"], "features.npz has 4 classes, and a split needs tasks of equal"),
        (["--dataset", "features.npz", "--protocol", "rotated"], "which are no pictures to rotate"),
        (["--dataset", "none.npz"], "there is no file or folder none.npz"),
        (["--dataset", "mine.py"], "name the function in it"),
        (["--dataset", "digits", "--protocol", "mine.py:make"], "a protocol is a relive.Protocol"),
        (["--dataset", "digits", "--protocol", "mine.py:OTHER"], "has no 'OTHER'"),
        (["--dataset", "digits", "--protocol", "rotatet"], "did you mean 'rotated'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    here: Path,
    command: list[str],
    options: list[str],
    message: str,
) -> None:
    assert relive(monkeypatch, *command, *options) == 2
    assert message in capfd.readouterr().err
    assert not (here / "runs").exists()


def test_a_comparison_on_a_protocol_of_one_s_own_and_what_shows_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], here: Path
) -> None:
    words = ["--dataset", "colour.npz", "--protocol", "mine.py:ROLLED", "--method", "none", "--method", "si"]
    assert not relive(monkeypatch, "compare", *words, "--seeds", "2", "--workers", "1", "-q")
    assert "colour.npz, Rolled, 2 tasks of 3 iterations" in capfd.readouterr().out
    for name in ("Rolled", "mine.py:ROLLED"):
        assert not relive(monkeypatch, "table", "--protocol", name)
        assert "colour.npz, Rolled, 2 tasks of 3 iterations" in capfd.readouterr().out
    assert not relive(monkeypatch, "table")
    capfd.readouterr()
    assert not relive(monkeypatch, "report")
    page = (here / "report.html").read_text()
    assert "Rolled" in page
    assert "colour.npz" in page


def test_tables_of_a_protocol_that_the_paper_does_not_have(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--dataset", "digits", "--protocol", "rotated", "--tasks", "2", "--iters", "3", "--method", "none"]
    assert not relive(monkeypatch, "run", *options, "-q")
    capfd.readouterr()
    assert not relive(monkeypatch, "table", "--protocol", "rotated", "--format", "markdown")
    assert capfd.readouterr().out.startswith("**digits, rotated, 2 tasks of 3 iterations**")
    for words, message in (
        (["--protocol", "rotated", "--format", "latex"], "the paper has no table of rotated"),
        (["--protocol", "rotated", "--tuned"], "the paper has no table of rotated"),
        (["--protocol", "rottated"], "did you mean 'rotated'"),
    ):
        assert relive(monkeypatch, "table", *words) == 2
        assert message in capfd.readouterr().err
    for command in (["paper"], ["grid", "--scenario", "class", "--method", "si"]):
        assert relive(monkeypatch, *command, "--protocol", "rotated") == 2
        assert "unknown protocol of the paper 'rotated'" in capfd.readouterr().err


def test_help_lists_what_is_registered(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert not relive(monkeypatch, "run", "--help")
    out = " ".join(capfd.readouterr().out.replace("│", " ").split())
    for words in (
        "split, permuted, rotated, blurred, or your own",
        "mnist, fashion-mnist, digits; or your own",
        "my.npz",
    ):
        assert words in out
