"""``relive data`` as a user sees it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from relive._util.errors import DataError, InputError
from relive.cli.data import app
from relive.data.catalogue import DATASETS

LABELS = "t10k-labels-idx1-ubyte"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


def squeezed(text: str) -> str:
    """Return a text without spaces and table lines, whose cells may be folded."""
    return re.sub(r"[\s│┃]", "", text)


@pytest.fixture
def home(mnist_home: Path, tmp_path: Path, own_cache: Path) -> Path:
    """A data folder with MNIST that may be damaged."""
    (tmp_path / "data").mkdir()
    shutil.copytree(mnist_home / "mnist", tmp_path / "data" / "mnist")
    return tmp_path / "data"


def test_without_a_command_the_data_sets_are_listed(own_cache: Path) -> None:
    assert run().exit_code == 0
    assert run().stdout == run("list").stdout
    assert "fashion-mnist │ 60,000" in run().stdout
    assert run().stdout.count("not downloaded yet") == 2
    assert "comes with scikit-learn" in run().stdout


def test_the_list_tells_where_a_data_set_lies(home: Path) -> None:
    assert squeezed(f"in {home / 'mnist'}") in squeezed(run("list", "--data-dir", home).stdout)


def test_a_long_path_is_folded_and_not_cut(own_cache: Path, home: Path) -> None:
    narrow = CliRunner().invoke(app, ["list", "--data-dir", str(home)], env={"COLUMNS": "60"})
    assert "…" not in narrow.stdout


def test_fetching_copies_from_the_cache_and_tells_where_to(home: Path, own_cache: Path, tmp_path: Path) -> None:
    own_cache.parent.mkdir()
    home.rename(own_cache)
    result = run("fetch", "mnist", "digits", "--data-dir", tmp_path / "new")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"mnist: in {tmp_path / 'new' / 'mnist'}\ndigits: comes with scikit-learn\n"
    assert "trying" in result.stderr
    assert run("verify", "mnist", "--data-dir", tmp_path / "new").exit_code == 0


def test_quiet_fetching_shows_no_progress(home: Path, own_cache: Path, tmp_path: Path) -> None:
    own_cache.parent.mkdir()
    home.rename(own_cache)
    assert run("fetch", "mnist", "-q", "--data-dir", tmp_path / "new").stderr == ""


def test_fetching_goes_on_after_a_failure_and_tells_it(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "file").touch()
    result = run("fetch", "mnist", "digits", "--data-dir", tmp_path / "file")
    assert isinstance(result.exception, DataError)
    assert "cannot store data in" in str(result.exception)
    assert "digits: comes with scikit-learn" in result.stdout


def test_sound_files_are_verified(home: Path) -> None:
    result = run("verify", "--data-dir", home)
    assert result.exit_code == 0
    assert result.stdout.count("ok    mnist: ") == 4
    assert DATASETS["mnist"].sha256[0] in result.stdout
    assert "fashion-mnist: not downloaded yet" in result.stdout


def test_a_damaged_file_is_named_with_both_digests_and_exit_code_1(home: Path) -> None:
    (home / "mnist" / LABELS).write_bytes(b"")
    result = run("verify", "--data-dir", home)
    assert result.exit_code == 1
    assert f"WRONG mnist: {home / 'mnist' / LABELS} is damaged or not the right file" in result.stdout
    assert DATASETS["mnist"].sha256[3] in result.stdout
    assert "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" in result.stdout
    assert squeezed("see relive data verify mnist") in squeezed(run("list", "--data-dir", home).stdout)


def test_a_missing_file_is_named_with_exit_code_1(home: Path) -> None:
    (home / "mnist" / LABELS).unlink()
    result = run("verify", "--data-dir", home)
    assert result.exit_code == 1
    assert f"WRONG mnist: {home}: no {LABELS} or {LABELS}.gz there" in result.stdout


def test_a_named_data_set_that_is_not_there_is_wrong(own_cache: Path) -> None:
    assert run("verify").exit_code == 0
    assert run("verify", "fashion-mnist").exit_code == 1


@pytest.mark.parametrize("command", ["fetch", "verify"])
def test_an_unknown_name_is_told_before_anything_is_done(command: str, own_cache: Path) -> None:
    result = run(command, "digits", "fashion")
    assert isinstance(result.exception, InputError)
    assert "unknown data set 'fashion': did you mean 'fashion-mnist'?" in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["list", "fetch", "verify"])
def test_each_command_has_help_with_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"relive data {command}" in result.stdout
    assert "RELIVE_DATA" in result.stdout


def test_an_unknown_option_is_a_usage_error() -> None:
    assert run("verify", "--nope").exit_code == 2
