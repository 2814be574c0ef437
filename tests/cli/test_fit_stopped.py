"""``relive fit`` that is interrupted, killed or run twice at once, and ``relive rollback``."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from relive import ContinualClassifier, load
from relive.classifier.history import locked
from relive.cli import main
from relive.core.optimizers import Adam
from tests.classifier.digits import assert_same
from tests.cli.conftest import Command
from tests.cli.teaching import PARAMETERS, TASKS, M, all_bytes, digits, process
from tests.experiments.small import until
from tests.forks import dying_at


def test_two_at_a_time(relive: Command, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    before = Path(M).read_bytes()
    Path("link.safetensors").symlink_to(M)
    with locked(Path(M)):
        for arguments in (["fit", M, files / "b.csv"], ["fit", "link.safetensors", files / "b.csv"], ["rollback", M]):
            code, out, err = relive(*arguments)
            assert (code, out) == (2, "")
            assert "is being changed by another process: wait for it, or stop it" in err
    assert Path(M).read_bytes() == before
    assert relive("fit", "link.safetensors", files / "b.csv")[0] == 0
    assert Path("link.safetensors").is_symlink()
    assert load(M).n_tasks_ == 2


@pytest.mark.parametrize("there", [True, False])
def test_an_interrupt_leaves_the_file_as_it_was_and_says_so(home: Path, files: Path, there: bool) -> None:
    if there:
        ContinualClassifier(**PARAMETERS).partial_fit(*digits(0, 1)).set_params(iterations=10**6).save(M)
    before = all_bytes(home)
    child = process(
        "fit", M, files / "b.npz", *([] if there else ["--method", "rtf", "--iterations", "1000000"]), cwd=home
    )
    until((home / f".{M}.lock").exists, seconds=90)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert err == (f"stopped. {M} is unchanged.\n" if there else "stopped. Nothing was stored.\n")
    assert all_bytes(home) == before


def test_killed_at_any_moment_the_model_is_whole(home: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each change to the disk in turn, and during training."""
    ContinualClassifier(**PARAMETERS).partial_fit(*digits(*TASKS["a"])).save(M)
    shutil.copy(M, "first")
    monkeypatch.setattr(sys, "argv", ["relive", "fit", M, str(files / "b.npz"), "--keep", "2", "--quiet"])
    before = load(M)
    after = load(M).partial_fit(*digits(*TASKS["b"]))

    learned = 0
    for k in range(60):
        died = dying_at(k, main, *([(Adam, "step")] if k % 3 == 0 else []))
        model = load(M)
        assert model.n_tasks_ in (1, 2)
        assert_same(model, before if model.n_tasks_ == 1 else after)
        if model.n_tasks_ == 2:
            learned += 1
            shutil.copy("first", M)
            Path(f"{M}.kept-1").unlink(missing_ok=True)
        if not died:
            break
    assert k > 8
    assert learned > 1


def test_earlier_versions_and_rolling_back(relive: Command, home: Path, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    versions = [Path(M).read_bytes()]
    for name, options in (("b", ["--keep", "2"]), ("c", []), ("a", ["--again"])):  # --keep is remembered
        assert relive("fit", M, files / f"{name}.csv", "--task", name, *options)[0] == 0
        versions.append(Path(M).read_bytes())
    assert all_bytes(home) == {M: versions[3], f"{M}.kept-1": versions[2], f"{M}.kept-2": versions[1]}
    code, out, _ = relive("rollback", M)
    assert code == 0
    assert re.search(rf"model     {M}: 3 tasks, \d+ classes \(tasks: 0, b, c\)\n", out)
    assert f"undone    {M}.undone" in out
    assert all_bytes(home) == {M: versions[2], f"{M}.kept-1": versions[1], f"{M}.undone": versions[3]}
    code, _, err = relive("rollback", M)
    assert (code, err) == (0, "")
    assert all_bytes(home) == {M: versions[1], f"{M}.undone": versions[3], f"{M}.undone-2": versions[2]}
    code, _, err = relive("rollback", M)
    assert code == 2
    assert f"there is no earlier version of {M}" in err
    (home / f"{M}.kept-1").write_bytes(b"damaged")
    before = all_bytes(home)
    code, _, err = relive("rollback", M)
    assert code == 1
    assert f"{M}.kept-1 is not a relive model" in err
    assert all_bytes(home) == before


def test_a_version_of_before_keep_says_so(relive: Command, files: Path, made: Path) -> None:
    shutil.copy(made, M)
    assert relive("fit", M, files / "b.csv", "--keep", "2")[0] == 0
    code, _, err = relive("rollback", M)
    assert code == 0
    assert "this version predates --keep" in err
    code, _, err = relive("rollback", "nothing.safetensors")
    assert code == 2
    assert "there is no model nothing.safetensors" in err


def test_a_damaged_version_takes_no_place_even_after_a_kill(relive: Command, home: Path, made: Path) -> None:
    """A kill while a version is being kept leaves a copy of the model itself; rollback restores the one before it."""
    for name in (M, f"{M}.kept-1"):
        shutil.copy(made, name)
    Path(f"{M}.kept-2").write_bytes(made.read_bytes()[:3000])
    code, _, err = relive("rollback", M)
    assert code == 1
    assert "is cut short" in err
    assert Path(M).read_bytes() == made.read_bytes()
    assert not list(home.glob("*.undone"))
