"""Loading: in which order sources are tried, what happens to bad files, and the message when all fail."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

from relive._util.errors import DataError, InputError
from relive.data.catalogue import DATASETS
from relive.data.datasets.fetchers import Folder, Mirror
from relive.data.datasets.files import File
from relive.data.datasets.sources import load_data, survey
from tests.data.mirror import Server
from tests.data.tiny import IMAGES, LABELS, RAW, TEST_LABELS, put, recipe, sha256

pytestmark = pytest.mark.usefixtures("own_cache")


@dataclass(frozen=True)
class Shelf:
    """A source that has everything and records what was requested."""

    label: str = "shelf"
    asked: list[str] = field(default_factory=list)

    def fetch(self, files: Sequence[File], progress: Progress) -> dict[str, bytes]:
        self.asked.extend(file.name for file in files)
        return {file.name: RAW[file.name] for file in files}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("below", ["", "tiny"])
def test_a_data_folder_is_used_as_it_is(tmp_path: Path, packed: bool, below: str) -> None:
    put(tmp_path / "data" / below, packed=packed)
    before = sorted((tmp_path / "data").rglob("*"))
    data = recipe().load(tmp_path / "data")
    assert (data.name, data.top, data.n_classes) == ("tiny", 255, 10)
    assert (data.train_inputs.shape, data.test_inputs.shape) == ((20, 4, 4), (10, 4, 4))
    assert data.train_inputs.tobytes() == RAW[IMAGES][16:]
    assert data.test_labels.tolist() == list(range(10))
    assert sorted((tmp_path / "data").rglob("*")) == before


def test_the_environment_names_a_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RELIVE_DATA", "~/data")
    assert recipe().load().train_inputs.shape == (20, 4, 4)


def test_an_argument_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIVE_DATA", str(tmp_path / "elsewhere"))
    recipe().load(put(tmp_path / "data"))
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_fetched_is_kept_in_the_cache(own_cache: Path) -> None:
    shelf = Shelf()
    for _ in range(2):
        recipe(shelf).load()
    assert shelf.asked == list(RAW)
    assert {path.name: path.read_bytes() for path in (own_cache / "tiny").iterdir()} == RAW


def test_only_what_is_missing_is_fetched_and_stored_in_the_data_folder(own_cache: Path, tmp_path: Path) -> None:
    home, shelf = put(tmp_path / "data", packed=True), Shelf()
    (home / f"{LABELS}.gz").unlink()
    recipe(shelf).load(home)
    assert shelf.asked == [LABELS]
    assert (home / "tiny" / LABELS).read_bytes() == RAW[LABELS]
    assert not own_cache.exists()


def test_the_cache_is_asked_before_any_other_source(own_cache: Path, tmp_path: Path) -> None:
    put(own_cache / "tiny")
    shelf = Shelf()
    recipe(shelf).load(tmp_path / "data")
    assert shelf.asked == []
    assert sorted(os.listdir(tmp_path / "data" / "tiny")) == sorted(RAW)


def test_a_bad_file_in_a_chosen_folder_is_an_error_and_stays(tmp_path: Path) -> None:
    home, shelf = put(tmp_path), Shelf()
    (home / LABELS).write_bytes(RAW[LABELS][:-1])
    with pytest.raises(DataError) as caught:
        recipe(shelf).load(home)
    message = str(caught.value)
    assert message.startswith(f"{home / LABELS} is damaged or not the right file")
    assert sha256(RAW[LABELS]) in message
    assert sha256(RAW[LABELS][:-1]) in message
    assert f"Put the right file into {home / 'tiny'}" in message
    assert shelf.asked == []
    assert (home / LABELS).read_bytes() == RAW[LABELS][:-1]


def test_the_files_of_another_data_set_are_not_taken(tmp_path: Path) -> None:
    home = put(tmp_path)
    with pytest.raises(
        DataError, match=f"(?s){IMAGES} is damaged or not .*{DATASETS['mnist'].sha256[0]}.*{sha256(RAW[IMAGES])}"
    ):
        load_data("mnist", home)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_bad_file_in_the_cache_is_named_and_fetched_anew(
    own_cache: Path, capfd: pytest.CaptureFixture[str], quiet: bool
) -> None:
    put(own_cache / "tiny")
    (own_cache / "tiny" / LABELS).write_bytes(b"bad")
    shelf = Shelf()
    data = recipe(shelf).load(quiet=quiet)
    out, err = capfd.readouterr()
    assert data.train_labels.tobytes() == RAW[LABELS][8:]
    assert shelf.asked == [LABELS]
    assert (own_cache / "tiny" / LABELS).read_bytes() == RAW[LABELS]
    assert err.startswith(f"warning: {own_cache / 'tiny' / LABELS} is damaged or not the right file")
    assert f"expected SHA-256 {sha256(RAW[LABELS])}" in err
    assert f"found {sha256(b'bad')}" in err
    assert ("trying shelf" in err) is not quiet
    assert out == ""


def test_nothing_is_said_when_all_is_in_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe().load(put(tmp_path))
    assert capfd.readouterr() == ("", "")


def test_with_no_source_left_each_answer_is_told_and_two_ways_on(server: Server, tmp_path: Path) -> None:
    server.pages.clear()
    home = tmp_path / "data"
    sources = Folder(tmp_path / "debian"), Mirror(server.url)
    with pytest.raises(DataError) as caught:
        recipe(*sources).load(home)
    lines = str(caught.value).splitlines()
    assert lines[0] == "tiny is not on this machine and cannot be fetched. What was tried, and what came back:"
    nothing = f"no {IMAGES} or {IMAGES}.gz there"
    assert lines[1] == f"  - {home}: {nothing}"
    assert lines[2].endswith(f"relive/tiny: {nothing}")
    assert lines[3] == f"  - {tmp_path / 'debian'}: {nothing}"
    assert lines[4] == f"  - {server.url}: HTTP status 404 Not Found"
    assert "--data-dir DIR" in lines[5]
    assert "--dataset digits" in lines[5]
    assert len(lines) == 6


def test_a_damaged_mirror_is_passed_over_for_the_next(server: Server, own_cache: Path) -> None:
    server.pages[f"/{TEST_LABELS}.gz"] = b"damaged"
    recipe(Mirror(server.url), Shelf()).load()
    assert (own_cache / "tiny" / TEST_LABELS).read_bytes() == RAW[TEST_LABELS]


def test_a_folder_that_cannot_hold_data_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shelf = Shelf()
    with pytest.raises(DataError, match=r"cannot store data in .*/file/sub/tiny: Not a directory"):
        recipe(shelf).load(tmp_path / "file" / "sub")
    assert shelf.asked == []


def test_two_processes_may_fetch_at_the_same_time(server: Server, tmp_path: Path) -> None:
    """The server responds to the first download only when both processes have requested it."""
    both = threading.Barrier(2, timeout=20)
    server.on_get = both.wait
    code = (
        "import sys\n"
        "from relive.data.datasets.fetchers import Mirror\n"
        "from tests.data.tiny import recipe\n"
        "print(recipe(Mirror(sys.argv[2], 20.0)).load(sys.argv[1]).train_inputs.sum())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "data"), server.url]
    root = Path(__file__).parents[2]
    loaders = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    sums = [loader.communicate(timeout=30)[0] for loader in loaders]
    expected = np.frombuffer(RAW[IMAGES][16:], np.uint8).sum()
    assert sums == [f"{expected}\n"] * 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "data" / "tiny").iterdir()} == RAW


def test_digits_come_with_scikit_learn_and_every_fifth_is_a_test() -> None:
    from sklearn.datasets import load_digits

    digits, rows = load_data("digits"), load_digits()
    assert (digits.top, digits.n_classes) == (16, 10)
    assert digits.train_inputs.max() == 16
    np.testing.assert_array_equal(digits.test_inputs, rows.images[4::5])
    np.testing.assert_array_equal(digits.test_labels, rows.target[4::5])
    np.testing.assert_array_equal(digits.train_labels[:5], rows.target[[0, 1, 2, 3, 5]])
    assert survey("digits") == []


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown data set 'mnits': did you mean 'mnist'"):
        load_data("mnits")


def test_mnist_is_loaded_whole(mnist_home: Path) -> None:
    mnist = load_data("mnist", mnist_home)
    assert (mnist.train_inputs.shape, mnist.test_inputs.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert mnist.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(mnist.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_importing_the_package_needs_nothing_heavy() -> None:
    code = "import sys, relive.data; print(*{'torch', 'sklearn', 'pooch', 'requests', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert list(DATASETS) == ["mnist", "fashion-mnist", "digits"]
