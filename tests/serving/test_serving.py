"""A model over HTTP: correct predictions, clear errors, new versions picked up, and load from many processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.serving import replace_file, two_models, under_load
from sklearn.datasets import load_digits
from starlette.applications import Starlette

import relive
from relive._util.errors import ReliveError
from relive.classifier.estimator import ContinualClassifier
from relive.cli.serve import listening_on
from relive.serving.app import Limits, make_app
from relive.serving.watched import Watched
from tests.inference.models import PIXELS, learned, questions, saved

JSON = {"content-type": "application/json"}
CSV = {"content-type": "text/csv"}
HERE = frozenset({"localhost", "127.0.0.1"})


def ask(
    app: Starlette, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """Send one request, GET unless it has a body, and return the status and the JSON."""

    async def send_and_receive() -> list[Any]:
        got: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            got.append(message)

        address, _, query = path.partition("?")
        told = {"host": "127.0.0.1:8000"} | (headers or {})
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET" if body is None else "POST",
            "path": address,
            "raw_path": address.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in told.items()],
        }
        await app(scope, receive, send)
        return got

    start, *rest = asyncio.run(send_and_receive())
    content = b"".join(message.get("body", b"") for message in rest)
    return start["status"], json.loads(content) if content.startswith(b"{") else {"text": content.decode()}


def served(
    path: Path, log: list[str] | None = None, limits: Limits | None = None, token: str | None = None
) -> Starlette:
    said: list[str] = [] if log is None else log
    return make_app(Watched(path, False, said.append), limits or Limits(), HERE, token)


@pytest.mark.parametrize("scenario", ["class", "task"])
@pytest.mark.parametrize("method", ["slda", "rtf", "generative-classifier"])
def test_answers_are_those_of_the_model(method: str, scenario: str, tmp_path: Path) -> None:
    model = learned(method, scenario)
    app = served(saved(model, tmp_path / "model"))
    x, task = questions(model, 20)
    asked = {"samples": x.tolist(), "proba": True} | ({"task": task} if task else {})
    status, said = ask(app, "/predict", json.dumps(asked).encode(), JSON)
    assert status == 200
    assert said["labels"] == model.predict(x, task).tolist()
    assert said["classes"] == model.classes_.tolist()
    np.testing.assert_allclose(said["probabilities"], model.predict_proba(x, task), rtol=0, atol=1e-5)
    lines = [",".join([*(f"f{i}" for i in range(64)), "label", "which"])]
    lines += [",".join([*map(str, row), "digit 0", f"t{i % 3}"]) for i, row in enumerate(x)]
    if task:
        status, said = ask(app, "/predict?task_column=which", "\n".join(lines).encode(), CSV)
        assert (status, said["labels"]) == (200, model.predict(x, task).tolist())


def test_what_is_unusual_is_refused_on_request(tmp_path: Path) -> None:
    x, y = load_digits(return_X_y=True)
    model = ContinualClassifier("slda").fit(x[y < 5], y[y < 5])
    model.save(tmp_path / "model")
    app = served(tmp_path / "model")
    some = np.concatenate([x[y < 5][:40], x[y > 4][:40], x[:5] + 100])
    asked = {"samples": some.tolist(), "reject": 0.05}
    status, said = ask(app, "/predict", json.dumps(asked).encode(), JSON)
    expected = ["unknown" if c == -1 else c for c in model.predict(some, reject=0.05).tolist()]
    assert (status, said["labels"]) == (200, expected)
    assert said["labels"][-5:] == ["unknown"] * 5
    lines = [",".join(f"f{i}" for i in range(64)), *(",".join(map(str, row)) for row in some)]
    assert ask(app, "/predict?reject=0.05", "\n".join(lines).encode(), CSV)[1]["labels"] == expected
    for wrong in ("5%", 0, 2):
        status, said = ask(app, "/predict", json.dumps(asked | {"reject": wrong}).encode(), JSON)
        assert (status, "between 0 and 1" in said["error"]) == (400, True)
    assert ask(app, "/predict?reject=few", "\n".join(lines).encode(), CSV)[0] == 400


def test_csv_columns_are_matched_by_name(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(PIXELS[:60, 2:5], columns=["a", "b", "c"])
    model = ContinualClassifier("slda").partial_fit(frame, np.arange(60) % 2)
    app = served(saved(model, tmp_path / "model"))
    status, said = ask(app, "/predict?proba=1", frame.to_csv(index=False).encode(), CSV)
    assert (status, said["labels"]) == (200, model.predict(frame).tolist())
    status, said = ask(app, "/predict", frame[["b", "a", "c"]].to_csv(index=False).encode(), CSV)
    assert (status, said["labels"]) == (200, model.predict(frame).tolist())
    for changed, why in (
        (frame.drop(columns="b"), "the body has no column 'b', which this model was trained on"),
        (frame[["b", "a", "b", "c"]], "the body must be a line of column names"),  # two of one name
        (frame.assign(d=1), "the body has a column 'd' that this model was not trained on: leave it out"),
    ):
        status, said = ask(app, "/predict", changed.to_csv(index=False).encode(), CSV)
        assert (status, why in said["error"]) == (400, True)
    assert ask(app, "/predicted") == (404, {"error": "/predicted: not found; see /docs for what is served"})
    assert ask(app, "/predict") == (405, {"error": "/predict: method not allowed; use POST, not GET"})


ROW = json.dumps([0.0] * 64)


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"{", JSON, 400, "the body is not JSON"),
        (b"[1]", JSON, 400, 'must be an object with "samples"'),
        (b'{"samples": []}', JSON, 400, "there are 0 samples: send at least 1 and at most 5 at a time"),
        (f'{{"samples": [{",".join([ROW] * 6)}]}}'.encode(), JSON, 400, "there are 6 samples"),
        (b'{"samples": [[1, 2]]}', JSON, 400, "have 2 features, but this model was trained on 64"),
        (b'{"samples": [[]]}', JSON, 400, "have 0 features"),
        (b'{"samples": [[1, 2], [1]]}', JSON, 400, "rows of different lengths"),
        (b'{"samples": [["a"]]}', JSON, 400, "must be rows of numbers"),
        (b'{"samples": [[null]]}', JSON, 400, "must be rows of numbers"),
        (b'{"samples": [[true]]}', JSON, 400, "must be rows of numbers"),
        (b'{"samples": [3]}', JSON, 400, "must be rows of numbers"),
        (b'{"samples": [[1e400]]}', JSON, 400, "JSON|numbers"),
        (f'{{"samples": [{ROW}], "proba": 1}}'.encode(), JSON, 400, "must be true or false"),
        (f'{{"samples": [{ROW}], "task": {{}}}}'.encode(), JSON, 400, "must be a task's name"),
        (f'{{"samples": [{ROW}], "task": [[]]}}'.encode(), JSON, 400, "must be a task's name"),
        (f'{{"samples": [{ROW}], "task": "t0"}}'.encode(), JSON, 400, "the task is not given; leave it out"),
        (f'{{"samples": [{ROW}], "more": 1}}'.encode(), JSON, 400, "unknown field 'more'"),
        (f'{{"samples": [{ROW.replace("0.0", "7.0")}]}}'.encode(), JSON, 400, "values from 7 to 7"),
        (b"x" * 70_000, JSON, 413, "more than 60,000 bytes"),
        (b"", CSV, 400, "the body is empty"),
        (b"\xff\xfe", CSV, 400, "not CSV in UTF-8"),
        (b"a,b\n1,x\n", CSV, 400, "rows with as many numbers"),
        (b"a,b\n1,2\n", CSV, 400, "have 2 features"),
        (b"a,b\n", CSV, 400, "there are 0 samples"),
        (b"a", {"content-type": "text/plain"}, 415, "send application/json or text/csv"),
        (b"a", {}, 415, "send application/json or text/csv"),
    ],
)
def test_what_cannot_be_answered_is_said(
    body: bytes, headers: dict[str, str], status: int, why: str, tmp_path: Path
) -> None:
    app = served(saved(learned("none", "class"), tmp_path / "model"), limits=Limits(60_000, 5))
    found, said = ask(app, "/predict", body, headers)
    assert found == status
    assert any(part in said["error"] for part in why.split("|"))


def test_a_new_file_is_taken_up_and_a_damaged_one_refused(tmp_path: Path) -> None:
    one, two = saved(learned("slda", "class"), tmp_path / "one"), saved(learned("rtf", "class"), tmp_path / "two")
    path, log = tmp_path / "model", list[str]()
    replace_file(path, one)
    app = served(path, log)
    body = json.dumps({"samples": (PIXELS[:9] / 16).tolist(), "proba": True}).encode()
    answers = [relive.load(file).predict_proba(PIXELS[:9] / 16) for file in (one, two)]

    def assert_answers(expected: Any) -> None:
        np.testing.assert_allclose(ask(app, "/predict", body, JSON)[1]["probabilities"], expected, rtol=0, atol=1e-5)

    assert_answers(answers[0])
    replace_file(path, two)
    assert_answers(answers[1])
    assert ask(app, "/model")[1]["choice"]["method"] == "rtf"
    for damaged in (b"hello", two.read_bytes()[:-5], b""):
        path.write_bytes(damaged)
        assert_answers(answers[1])
        assert ask(app, "/healthz") == (200, {"status": "ok", "version": 2})
    path.unlink()
    assert_answers(answers[1])
    replace_file(path, one)
    assert_answers(answers[0])
    assert [line.split()[0] for line in log] == ["loaded", *["refused"] * 4, "loaded"]


def test_only_this_machine_and_only_by_its_own_name(tmp_path: Path) -> None:
    app = served(saved(learned("slda", "class"), tmp_path / "model"))
    for host, status in (("localhost", 200), ("127.0.0.1:99", 200), ("evil.example", 421), ("127.0.0.1.nip.io", 421)):
        assert ask(app, "/healthz", headers={"host": host})[0] == status


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    app = served(saved(learned("slda", "class"), tmp_path / "model"), token="sesame")
    for given, status in (("Bearer sesame", 200), ("Bearer sesam", 401), ("sesame", 401), ("Basic sesame", 401)):
        assert ask(app, "/model", headers={"authorization": given})[0] == status
    assert ask(app, "/model")[0] == 401
    assert ask(app, "/healthz")[0] == 200
    assert ask(app, "/openapi.json", headers={"authorization": "Bearer sesame"})[1]["security"] == [{"token": []}]


def test_the_page_needs_no_network_and_describes_all_addresses(tmp_path: Path) -> None:
    app = served(saved(learned("slda", "class"), tmp_path / "model"))
    paths = ask(app, "/openapi.json")[1]["paths"]
    assert set(paths) == {route.path for route in app.routes}  # type: ignore[attr-defined]
    text = ask(app, "/docs")[1]["text"]
    assert all(path in text for path in paths)
    assert "<script" not in text
    assert "http://" not in text.replace("http://127.0.0.1:8000", "")


@pytest.mark.slow
class TestProcesses:
    def test_ctrl_c_ends_it_cleanly(self, tmp_path: Path) -> None:
        path = saved(learned("slda", "class"), tmp_path / "model")
        words = [sys.executable, "-m", "relive", "serve", str(path), "--port", "0"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert server.stdout is not None
        port = server.stdout.readline().rpartition(":")[2].split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
            assert json.load(answer)["status"] == "ok"
        os.kill(server.pid, signal.SIGINT)
        out, err = server.communicate(timeout=30)
        assert (server.returncode, out, err) == (0, "stopped.\n", "")

    def test_what_cannot_be_served_is_said_in_one_line(self, tmp_path: Path) -> None:
        path = saved(learned("slda", "class"), tmp_path / "model")
        for words, why in (
            ([str(path), "--host", "0.0.0.0"], "can be reached from other machines: set a token"),
            ([str(tmp_path / "nothing")], "there is no model"),
            ([str(path), "--token", " "], "the token is empty"),
            ([str(path), "--host", "192.0.2.1", "--token", "t"], "cannot listen on 192.0.2.1"),
        ):
            done = subprocess.run([sys.executable, "-m", "relive", "serve", *words], capture_output=True, text=True)
            assert done.returncode == (1 if "listen" in why else 2)
            assert why in done.stderr
            assert "Traceback" not in done.stderr

    def test_a_port_in_use_is_said_with_the_way_out(self) -> None:
        with listening_on("127.0.0.1", 0) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ReliveError, match=f"port {port}: Address already in use; choose another --port"):
                listening_on("127.0.0.1", port)

    def test_without_the_extra_it_is_named(self, tmp_path: Path) -> None:
        code = "import sys, relive.cli; sys.modules['uvicorn'] = None; sys.argv[1:] = ['serve', 'x']; relive.cli.main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1
        assert "relive serve needs uvicorn, which is not installed: pip install 'relive[serve]'" in done.stderr

    def test_fifty_clients_while_the_file_is_replaced_a_hundred_times(self, tmp_path: Path) -> None:
        versions, question = two_models(tmp_path)
        load = under_load(tmp_path / "model", versions, question, clients=50, requests=30, replacements=100)
        assert (load.wrong, load.failed) == (0, 0)
        assert sum(load.seen) == len(load.seconds) == 50 * 30
        assert min(load.seen) > 0
