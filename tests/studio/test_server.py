"""The studio's server: who may send requests, what is refused, and what it knows about runs."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import stat
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from relive.cli import app as command_line
from relive.experiments.journal import Journal
from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.store import Store
from relive.studio.commands import as_python, compare_words, run_words
from relive.studio.runs import Runs
from tests.report.fake import result_of, spec_of
from tests.studio.served import TOKEN, Served, serving, until

pytestmark = pytest.mark.slow
EVIL = ["../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "/etc/passwd", "..", ".", "x%00y", "%2e%2e"]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("studio")
    Store(folder / "runs").save(result_of(spec_of("split", "class", "rtf", 1)), [])
    with serving(folder) as served:
        until(lambda: served.first_event()["rows"])
        yield served


# ---- access


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.nip.io", "evil.example:80", ""])
def test_another_host_is_refused_for_the_page_too(studio: Served, host: str) -> None:
    for path in ("/", "/static/app.js", "/api/catalogue"):
        assert studio.ask(path, headers={"Host": host})[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_site_is_refused(studio: Served, origin: str) -> None:
    assert studio.ask("/api/first", {}, {"Origin": origin})[0] == 403
    assert studio.ask("/api/catalogue", headers={"Origin": origin})[0] == 403


def test_its_own_page_may_ask(studio: Served) -> None:
    assert studio.ask("/api/catalogue", headers={"Origin": f"http://127.0.0.1:{studio.port}"})[0] == 200


@pytest.mark.parametrize("given", ["", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN])
def test_nothing_is_told_or_changed_without_the_token(studio: Served, given: str) -> None:
    for path in ("/api/events", "/api/catalogue", "/api/models", "/api/compare"):
        assert studio.ask(path, headers={"Authorization": given})[0] == 401
    for path in (
        "/api/runs",
        "/api/first",
        "/api/draw",
        "/api/programs",
        "/api/chosen",
        "/api/report",
        "/api/jobs/1/stop",
    ):
        assert studio.ask(path, {}, {"Authorization": given})[0] == 401
    for path in ("/api/models/x/fit", "/api/models/x/forget"):
        assert studio.ask(path, {}, {"Authorization": given})[0] == 401
    assert not studio.first_event()["jobs"]


def test_the_page_runs_no_inline_script_and_asks_nobody_else(studio: Served) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", studio.port)) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in text
    assert "://" not in text.replace("http://www.w3.org/", "")


# ---- what is refused


def test_no_name_in_a_request_leads_out_of_the_runs(studio: Served) -> None:
    for evil in EVIL:
        for path in ("/api/runs/{}", "/api/runs/{}/wrong?after=0&task=0", "/api/runs/{}/dreams?after=0", "/static/{}"):
            assert studio.ask(path.format(evil))[0] in (404, 405)
        assert studio.ask(f"/api/runs/{evil}/go-on", {})[0] in (404, 405)
        pixels = {"pixels": "AAAA" * 1365 + "AA==", "runs": [evil]}
        assert studio.ask("/api/draw", pixels)[0] in (400, 404)


def test_models_are_taught_by_methods_that_need_no_further_consent(studio: Served) -> None:
    offered = {method["name"] for method in studio.ask("/api/models")[1]["methods"]}
    assert {"rtf", "discriminant"} <= offered
    assert offered.isdisjoint({"er", "agem", "icarl", "offline"})


def test_runs_that_are_chosen_are_those_that_are_known(studio: Served) -> None:
    known = spec_of("split", "class", "rtf", 1).name
    outside = Store(studio.places.store.root.parent / "outside")
    outside.save(result_of(spec_of("split", "class", "none", 1)), [])  # a result, but not one of this store
    evil = [*EVIL, f"../outside/{spec_of('split', 'class', 'none', 1).name}", str(outside.root)]
    status, said = studio.ask("/api/chosen", {"runs": [known, *evil]})
    assert (status, said["missing"]) == (200, evil)
    assert [entry["title"] for entry in said["groups"][0]["entries"]] == ["RtF"]
    status, said = studio.ask("/api/programs", {"runs": [known, *EVIL]})
    assert said["command"] == "relive run --dataset mnist --scenario class --method rtf --seed 1"
    assert studio.ask("/api/programs", {"runs": EVIL})[0] == 404
    status, said = studio.ask("/api/report", {"runs": [known, *evil]})
    assert (status, "1 run in" in said["page"], "outside" in said["page"]) == (200, True, False)
    studio.places.store.save(result_of(spec_of("split", "class", "rtf", 2)), [])
    assert "1 run in" in studio.ask("/api/report", {"runs": [known]})[1]["page"]
    everything = studio.ask("/api/report", {})[1]["page"]
    assert f"{len(studio.places.store.scan()[0])} run" in everything
    for wrong in ([], [1], "x", None, [["x"]], ["x"] * 201):
        assert studio.ask("/api/chosen", {"runs": wrong})[0] == 400
        assert studio.ask("/api/report", {"runs": wrong})[0] == 400
    assert studio.ask("/api/programs", {"methods": ["/tmp/mine.py:Mine"]})[0] == 400


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ([], "must be an object"),
        ({"methods": []}, "at least one method"),
        ({"methods": ["/tmp/mine.py:Mine"]}, "unknown method"),
        ({"methods": ["none"], "dataset": "/etc/passwd"}, "unknown data set"),
        ({"methods": ["none"], "dataset": "../x.npz"}, "unknown data set"),
        ({"methods": ["none"], "protocol": "mine.py:PROTOCOL"}, "unknown protocol"),
        ({"methods": ["none"], "encoder": "mine.py:make"}, "unknown encoder"),
        ({"methods": ["none"], "optimizer": "mine.py:Mine"}, "unknown optimizer"),
        ({"methods": ["none"], "fidelity": "--help"}, "unknown fidelity"),
        ({"methods": ["none"], "iters": "1; rm"}, "whole number"),
        ({"methods": ["none"], "seed": "--again"}, "whole number"),
        ({"methods": ["none"], "seeds": 10**9}, "whole number from 1 to 200"),
        ({"methods": ["none"] * 150, "seeds": 2}, "too many at once"),
        ({"methods": ["xdg"], "scenario": "class"}, "does not work in scenario"),
        ({"methods": ["si"], "settings": {"c": 1e99}}, "out of range"),
        ({"methods": ["none"], "data_dir": "/"}, "unknown field"),
    ],
)
def test_a_form_takes_names_and_numbers_alone(studio: Served, form: Any, why: str) -> None:
    status, said = studio.ask("/api/runs", form)
    assert status == 400
    assert why in said["error"]
    assert not studio.first_event()["jobs"]


def test_a_body_of_a_gigabyte_is_refused_when_it_has_begun(studio: Served) -> None:
    head = f"POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {2**30}\r\n\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", studio.port), timeout=30) as connection:
        connection.sendall(head.encode())
        try:
            while sent < 2**30 and not _readable(connection):
                sent += connection.send(b"x" * 65536)
            answer = connection.recv(64)
        except (ConnectionResetError, BrokenPipeError):
            answer = b"HTTP/1.1 413"
    assert answer.startswith(b"HTTP/1.1 413")
    assert sent < 20_000_000
    assert studio.ask("/api/catalogue")[0] == 200


def _readable(connection: socket.socket) -> bool:
    import select

    return bool(select.select([connection], [], [], 0)[0])


def test_a_thousand_idle_connections_keep_nobody_out(studio: Served) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    idle = [socket.create_connection(("127.0.0.1", studio.port), timeout=30) for _ in range(1000)]
    try:
        start = time.monotonic()
        assert studio.ask("/")[0] == 200
        assert studio.ask("/api/catalogue")[0] == 200
        assert time.monotonic() - start < 5
    finally:
        for connection in idle:
            connection.close()


def zipped(**files: bytes) -> bytes:
    """Return an archive; __ in a name stands for /."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return made.getvalue()


def lying_archive(name: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, b"x")
    return made.getvalue()


def linked_archive() -> bytes:
    made, link = io.BytesIO(), zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(link, b"/etc/passwd")
    return made.getvalue()


@pytest.mark.parametrize("file", ["bomb.npz", "bomb.zip"])
def test_a_bomb_is_refused_before_it_goes_off(studio: Served, file: str) -> None:
    bomb = zipped(**{f"X{i}.npy": bytes(60_000_000) for i in range(9)})
    assert len(bomb) < 1_000_000
    status, said = studio.ask(f"/api/models/new/fit?file={file}", bomb)
    assert status == 400
    assert "would unpack to 540,000,000 bytes" in said["error"]
    assert not list(studio.places.models.glob("*.safetensors"))


@pytest.mark.parametrize("content", [lying_archive("../evil.png"), lying_archive("/evil.png"), linked_archive()])
def test_an_archive_that_leads_out_of_its_folder_is_refused(studio: Served, content: bytes) -> None:
    status, said = studio.ask("/api/models/new/fit?file=a.zip", content)
    assert status == 400
    assert "leads out of its folder" in said["error"]


def test_names_of_models_and_files_lead_nowhere_else(studio: Served, tmp_path: Path) -> None:
    studio.places.models.mkdir(parents=True, exist_ok=True)
    (tmp_path / "other.safetensors").write_bytes(b"not yours")
    link = studio.places.models / "link.safetensors"
    link.symlink_to(tmp_path / "other.safetensors")
    for evil in [*EVIL, "-h", "--help", ".hidden", "a" * 99, "link"]:
        for what in ("fit?file=a.csv", "forget?class=a", "rollback"):
            assert studio.ask(f"/api/models/{evil}/{what}", b"a,label\n1,x\n")[0] in (400, 404, 405)
        assert studio.ask(f"/api/models/{evil}")[0] in (400, 404, 405)
    link.unlink()
    for file in ("../../x.txt", "/etc/passwd", "x", ""):
        assert studio.ask(f"/api/models/new/fit?file={file}", b"x")[0] == 400
    assert (tmp_path / "other.safetensors").read_bytes() == b"not yours"


def test_an_option_is_never_another_option(studio: Served) -> None:
    status, said = studio.ask("/api/models/new/fit?file=a.csv&label=--help", b"a,b\n1,x\n")
    assert status == 400
    assert "'--help'" in said["error"]
    for option in ("label", "task", "x", "y"):
        assert studio.ask(f"/api/models/new/fit?file=a.csv&{option}={'x' * 999}", b"a,b\n1,x\n")[0] == 400


def test_an_upload_of_a_gigabyte_is_refused_by_its_length(studio: Served) -> None:
    with socket.create_connection(("127.0.0.1", studio.port), timeout=30) as connection:
        head = f"POST /api/models/new/fit?file=a.csv HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        connection.sendall(f"{head}Content-Length: {2**30}\r\n\r\nx".encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 413")


def test_pictures_in_an_archive_teach_a_model(studio: Served) -> None:
    def png(brightness: int) -> bytes:
        made = io.BytesIO()
        Image.fromarray(np.full((8, 8), brightness, np.uint8)).save(made, "png")
        return made.getvalue()

    files = {
        f"photos__{name}__{i}.png": png(shade + i) for name, shade in (("dark", 0), ("light", 200)) for i in range(9)
    }
    status, said = studio.ask("/api/models/pictures/fit?file=photos.zip&method=ncm", zipped(**files))
    assert (status, said.get("error")) == (200, None)
    assert "dark (9), light (9)" in said["said"]
    assert said["command"] == "relive fit pictures.safetensors photos/photos --method=ncm --keep=5 --quiet"
    assert studio.ask("/api/models/pictures")[1]["result"]["image"] == [28, 28]


# ---- runs


def test_a_run_of_any_name_is_told_as_text(studio: Served) -> None:
    spec = replace(spec_of("split", "class", "rtf", 1), method="mine.py:<script>alert(1)</script>")
    result = replace(result_of(spec), shown={"title": "<script>alert(1)</script>"})
    studio.places.store.save(result, [])
    until(lambda: any(row["title"].startswith("<script>") for row in studio.first_event()["rows"]))


def test_what_is_known_of_a_run_is_its_result_and_how_to_do_it_again(studio: Served) -> None:
    spec = spec_of("split", "class", "rtf", 1)
    status, said = studio.ask(f"/api/runs/{spec.name}")
    assert status == 200
    assert said["accuracy_matrix"] == result_of(spec).accuracy_matrix
    assert said["command"] == "relive run --dataset mnist --scenario class --method rtf --seed 1"
    assert "make_spec('split', 'class', 'rtf', dataset='mnist', seed=1)" in said["python"]


SPECS = [
    make_spec("split", "task", "si", dataset="digits", iters=30, settings={"c": 0.25}, seed=7),
    make_spec("rotated", "domain", "ewc", dataset="digits", tasks=3, settings={"lam": 1e13}, fidelity="as_written"),
    make_spec("split", "class", "bir", dataset="mnist", encoder="conv", optimizer="sgd", learning_rate=1e-4, hidden=50),
]


@pytest.mark.parametrize("spec", SPECS, ids=[spec.method for spec in SPECS])
def test_the_command_and_the_program_mean_the_same_run(spec: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[RunSpec] = []

    def instead(asked: RunSpec, *_: object) -> object:
        done.append(asked)
        return result_of(asked)

    monkeypatch.setattr("relive.cli.run._run", instead)
    monkeypatch.setattr("relive.cli.run._show", lambda *_: None)
    CliRunner().invoke(
        command_line, [*run_words(spec), "--runs-dir", "/nonexistent", "--quiet"], catch_exceptions=False
    )
    names: dict[str, Any] = {}
    exec(as_python(spec).replace("print(run(spec).result.average_accuracy)", ""), names)
    assert [done[0].name, names["spec"].name] == [spec.name, spec.name]


def test_the_command_of_a_comparison_means_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [
        make_spec("split", "class", method, dataset="digits", seed=seed, iters=9)
        for method in ("none", "rtf")
        for seed in (1, 2)
    ]
    asked: list[RunSpec] = []
    monkeypatch.setattr("relive.cli.sweeping.sweep", lambda specs, *_, **__: asked.extend(specs))
    CliRunner().invoke(command_line, [*compare_words(specs), "--runs-dir", "/nonexistent"])
    assert {spec.name for spec in asked} == {spec.name for spec in specs}


def test_a_comparison_that_is_started_here_is_done_and_what_cannot_be_says_why(tmp_path: Path) -> None:
    small = {"dataset": "digits", "tasks": 2, "iters": 5, "hidden": 8}
    with serving(tmp_path) as served:
        _, said = served.ask("/api/runs", {"methods": ["ncm"], "seeds": 2} | small)
        assert said["jobs"][0]["title"].startswith("relive compare --dataset digits --scenario class --method ncm")
        until(lambda: [row["state"] for row in served.first_event()["rows"]] == ["done"] * 2, every=0.2)
        assert all(row["snapshots"] == [0, 1] for row in served.first_event()["rows"])
        until(lambda: [job["state"] for job in served.first_event()["jobs"]] == ["done"])
        served.ask("/api/runs", small | {"methods": ["none"], "tasks": 11})
        until(lambda: len(served.first_event()["jobs"]) == 2 and served.first_event()["jobs"][1]["state"] == "failed")
        assert served.first_event()["jobs"][1]["said"].startswith("error: ")


def test_a_run_that_another_process_does_is_seen_live_and_when_it_stops(tmp_path: Path) -> None:
    store, spec = Store(tmp_path), make_spec("split", "class", "none", dataset="digits", tasks=2, iters=10)
    runs = Runs(store)
    assert runs.look().rows == {}
    journal = Journal(store.prepare(spec), Observer())
    with journal:
        journal.task_started(0)
        journal.stepped(0, 1, 2.5)
        journal.probed(0, [0.75])
        journal.task_finished(0, [0.8, 0.1])
        news = runs.look()
        assert news.rows[spec.name]["state"] == "running"
        assert news.live[spec.name]["matrix"] == [[0.8, 0.1]]
        assert news.live[spec.name]["curve"] == [(0, 1, [0.75])]
        assert runs.look().rows == {}
    progress = json.loads((store.directory(spec) / "progress.json").read_bytes())
    dead = next(pid for pid in range(2**22 - 1, 0, -1) if not os.path.exists(f"/proc/{pid}"))
    (store.directory(spec) / "progress.json").write_text(json.dumps(progress | {"pid": dead}))
    assert runs.look().rows[spec.name]["state"] == "stopped"
    going_on = Journal(store.directory(spec), Observer())
    going_on.resumed(1)
    assert (going_on.progress.matrix, going_on.progress.curve) == ([[0.8, 0.1]], [(0, 1, [0.75])])
    store.save(result_of(spec), [])
    assert runs.look().rows[spec.name]["state"] == "done"
    for path in store.directory(spec).iterdir():
        path.unlink()
    store.directory(spec).rmdir()
    assert runs.look().gone == [spec.name]
