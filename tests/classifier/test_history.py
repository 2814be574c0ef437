"""Earlier versions of a file: in order, and safe against a kill at any moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from relive._util.errors import InputError, ReliveError
from relive._util.files import write_atomic
from relive.classifier.history import keeping, kept, locked, roll_back, tidy
from tests.forks import dying_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def store(path: Path, text: str, n: int) -> None:
    with keeping(path, n):
        write_atomic(path, text.encode())


def texts(path: Path) -> list[str]:
    """What the file holds, and its versions, the newest first."""
    return [file.read_text() for file in (path, *kept(path))]


def test_the_newest_are_kept(path: Path) -> None:
    for text in "abcde":
        store(path, text, 3)
    assert texts(path) == ["e", "d", "c", "b"]
    assert [file.name for file in kept(path)] == ["file.kept-1", "file.kept-2", "file.kept-3"]
    store(path, "f", 1)
    assert texts(path) == ["f", "e"]
    store(path, "g", 0)
    assert texts(path) == ["g"]


def test_other_files_are_none_of_its_versions(path: Path) -> None:
    for ending in ("kept-x", "kept-01", "kept-0", "kept-1.2", "kept-²", "1", "20240101"):
        path.with_name(f"file.{ending}").write_text("mine")
    path.with_name("other.kept-1").write_text("mine")
    path.with_name("file.kept-7").mkdir()
    store(path, "a", 1)
    store(path, "b", 1)
    store(path, "c", 1)
    assert texts(path) == ["c", "b"]
    assert len(list(path.parent.iterdir())) == 11


def test_a_copy_where_there_are_no_second_names_is_on_the_disk_and_no_more_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*names: object) -> None:
        raise OSError(1, "Operation not permitted")

    synced: list[tuple[int, int]] = []
    sync = os.fsync

    def watched(handle: int) -> None:
        about = os.fstat(handle)
        synced.append((about.st_ino, about.st_mode & 0o777))
        sync(handle)

    monkeypatch.setattr("os.link", no_link)
    monkeypatch.setattr("os.fsync", watched)
    store(path, "a", 2)
    path.chmod(0o600)
    store(path, "b", 2)
    (version,) = kept(path)
    assert (version.stat().st_ino, 0o600) in synced
    assert texts(path) == ["b", "a"]


def test_rolling_back_loses_nothing(path: Path) -> None:
    for text in "abc":
        store(path, text, 5)
    undone = [roll_back(path, check=Path.read_bytes), roll_back(path, check=Path.read_bytes)]
    assert texts(path) == ["a"]
    assert [file and (file.name, file.read_text()) for file in undone] == [("file.undone", "c"), ("file.undone-2", "b")]
    with pytest.raises(InputError, match=r"there is no earlier version of .*: relive fit keeps them with --keep N"):
        roll_back(path, check=Path.read_bytes)
    assert texts(path) == ["a"]


def test_a_file_that_is_gone_comes_back(path: Path) -> None:
    store(path, "a", 1)
    store(path, "b", 1)
    path.unlink()
    assert roll_back(path, check=Path.read_bytes) is None
    assert texts(path) == ["a"]


def test_failing_to_replace_changes_nothing(path: Path) -> None:
    for text in "abc":
        store(path, text, 2)
    for error in (KeyboardInterrupt, ReliveError):
        with pytest.raises(error), keeping(path, 2):
            raise error
        assert texts(path) == ["c", "b", "a"]


def test_where_a_file_cannot_have_two_names(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", no_link)
    test_failing_to_replace_changes_nothing(path)
    roll_back(path, check=Path.read_bytes)
    assert texts(path) == ["b", "a"]


def test_killed_at_every_moment_of_storing(path: Path) -> None:
    for text in "abc":
        store(path, text, 2)
    for k in range(100):
        died = dying_at(k, lambda: store(path, "d", 2))
        assert path.read_text() in "cd"
        assert {"a", "b", "c"} <= set(texts(path)) or path.read_text() == "d"
        if path.read_text() == "d":
            break
        tidy(path)
        assert died
        store(path, "x", 3)  # whatever state it was left in, the next change repairs it
        assert texts(path) == ["x", "c", "b", "a"]
        roll_back(path, check=Path.read_bytes)
        path.with_name("file.undone").unlink()
        assert texts(path) == ["c", "b", "a"]
    assert k > 5
    store(path, "e", 2)
    assert texts(path) == ["e", "d", "c"]
    tidy(path)
    assert sorted(file.name for file in path.parent.iterdir()) == ["file", "file.kept-1", "file.kept-2"]


def test_killed_at_every_moment_of_rolling_back(path: Path) -> None:
    for k in range(100):
        for text in "abc":
            store(path, text, 2)
        died = dying_at(k, lambda: roll_back(path, check=Path.read_bytes))
        assert path.read_text() in "bc"
        everything = {file.read_text() for file in path.parent.iterdir()}
        assert {"a", "b", "c"} <= everything
        now = path.read_text()
        store(path, "x", 3)
        assert texts(path) == (["x", "c", "b", "a"] if now == "c" else ["x", "b", "a"])
        if not died:
            break
        for file in path.parent.iterdir():
            file.unlink()
    assert k > 5


def test_one_at_a_time(path: Path) -> None:
    with locked(path), pytest.raises(InputError, match="is being changed by another process"), locked(path):
        pass
    assert list(path.parent.iterdir()) == []
    with pytest.raises(ReliveError, match=r"cannot write .*: "), locked(path / "nowhere"):
        pass
