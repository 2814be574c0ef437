"""Files in folders: damage is reported with both digests, and writes are atomic."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relive._util.errors import DataError
from relive.data.datasets import files as store
from tests.data.tiny import FILES, IMAGES, PACKED, RAW, sha256

FILE, GOOD = FILES[0], RAW[IMAGES]
FLIPPED = GOOD[:-1] + bytes([GOOD[-1] ^ 1])


@pytest.mark.parametrize("content", [GOOD, gzip.compress(GOOD), gzip.compress(GOOD[:99]) + gzip.compress(GOOD[99:])])
def test_raw_and_packed_files_are_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert store.read(path, FILE) == GOOD


@pytest.mark.parametrize("wrong", [FLIPPED, GOOD[:-1], GOOD + b"x", GOOD + bytes(3 << 20), b"", b"<html>"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wrong_bytes_are_named_with_both_digests(tmp_path: Path, wrong: bytes, pack: type[bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(pack(wrong))
    with pytest.raises(DataError) as caught:
        store.read(path, FILE)
    message = str(caught.value)
    assert message.startswith(f"{path} is damaged or not the right file")
    assert f"expected SHA-256 {FILE.sha256} ({len(GOOD)} bytes)" in message
    assert f"found {sha256(wrong)} ({len(wrong):,} bytes)" in message


def test_damaged_packing_is_named_with_both_digests(tmp_path: Path) -> None:
    packed = PACKED[f"/{IMAGES}.gz"]
    path = tmp_path / "file.gz"
    for wrong in (
        packed[:-20],
        packed[:30] + b"####" + packed[34:],
        packed[:-6] + b"##" + packed[-4:],
        packed + b"x",
    ):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=f"(?s)file.gz is damaged.*{FILE.sha256}.*{sha256(wrong)}"):
            store.read(path, FILE)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone cannot be read: No such file or directory"):
        store.read(tmp_path / "gone", FILE)


def test_raw_is_found_before_packed_and_the_first_folder_before_the_second(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for path in (second / IMAGES, second / f"{IMAGES}.gz", first / f"{IMAGES}.gz", first / IMAGES):
        assert store.find(FILE, (first, second)) != path
        path.parent.mkdir(exist_ok=True)
        path.touch()
        if path != second / f"{IMAGES}.gz":
            assert store.find(FILE, (first, second)) == path


@pytest.mark.parametrize(
    ("folder", "why"),
    [("file/tiny", "Not a directory"), ("file", "file is in the way"), ("/proc/relive/tiny", "No such file")],
)
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=rf"(?s)cannot store data in .*{folder}: .*{why}.*--data-dir"):
        store.prepare(tmp_path / folder)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(DataError, match=f"{tmp_path}: {tmp_path / 'name'} is in the way"):
        store.write(tmp_path, "name", b"new")
    assert os.listdir(tmp_path) == ["name"]


def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"old")
    code = (
        "import resource, sys, pathlib; from relive.data.datasets import files as store\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: store.write(pathlib.Path(sys.argv[1]), 'name', bytes(5000))\n"
        "except store.DataError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert f"cannot store data in {tmp_path}: File too large" in done.stdout
    assert (tmp_path / "name").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["name"]


def test_a_writer_killed_in_the_middle_leaves_a_whole_file(tmp_path: Path) -> None:
    size = 32 << 20
    store.write(tmp_path, "name", b"a" * size)
    code = (
        "import sys, pathlib; from relive.data.datasets import files as store\n"
        "while True:\n"
        f"    for letter in (b'b', b'a'): store.write(pathlib.Path(sys.argv[1]), 'name', letter * {size})"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, tmp_path])
    try:
        _wait_for_half_a_file(tmp_path, size)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    content = (tmp_path / "name").read_bytes()
    assert content in (b"a" * size, b"b" * size)


def _wait_for_half_a_file(folder: Path, size: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for path in folder.glob(".*.tmp"):
            try:
                if 0 < path.stat().st_size < size:
                    return
            except FileNotFoundError:
                continue
    raise AssertionError("the writer was never seen in the middle of a file")


def test_old_leftovers_are_cleared_away_and_nothing_else(tmp_path: Path) -> None:
    old, new, other = tmp_path / f".{IMAGES}.1.tmp", tmp_path / f".{IMAGES}.2.tmp", tmp_path / ".my.tmp"
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    store.prepare(tmp_path)
    assert set(tmp_path.iterdir()) == {new, other}


def test_stored_files_can_be_read_by_all_who_share_the_folder(tmp_path: Path) -> None:
    store.write(tmp_path, "stored", b"")
    assert (tmp_path / "stored").stat().st_mode & 0o444 == 0o444
