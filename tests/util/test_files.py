"""Atomic writes: a file is complete or absent."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import IO

import pytest

from relive._util.files import write_atomic


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["elsewhere", "link", "target"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, lambda file: file.write(b"text"))
    reader.join()
    assert read == [b"text"]
    assert pipe.is_fifo()


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def failing(file: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, failing)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "old")]


def test_a_full_disk_is_reported_with_the_file_that_was_written(tmp_path: Path) -> None:
    def full(file: IO[bytes]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: .*a\.bin") as raised:
        write_atomic(tmp_path / "a.bin", full)
    assert raised.value.filename == str(tmp_path / "a.bin")
    assert list(tmp_path.iterdir()) == []
