"""A studio that runs in a thread of the tests, and requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relive.cli.serve import listening_on
from relive.experiments.store import Store
from relive.studio.app import Places, make_app
from relive.studio.server import make_server

TOKEN = "sesame-open"
HERE = frozenset({"localhost", "127.0.0.1"})


@dataclass(frozen=True)
class Served:
    """A studio: its port, and where its runs and models are."""

    port: int
    places: Places

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={TOKEN}"

    def ask(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None, method: str | None = None
    ) -> tuple[int, Any]:
        """Send one request with the token, POST if it has a body, and return the status and the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"Authorization": f"Bearer {TOKEN}"} | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body, given = json.dumps(body).encode(), {"Content-Type": "application/json"} | given
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, given)
            answer = connection.getresponse()
            content = answer.read()
        return answer.status, json.loads(content) if content.startswith((b"{", b"[")) else content.decode()

    def first_event(self) -> dict[str, Any]:
        """Return the first event of the stream: the whole state."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {TOKEN}"})
            found: dict[str, Any] = json.loads(connection.getresponse().readline().removeprefix(b"data: "))
        return found


@contextlib.contextmanager
def serving(folder: Path, *also: Path) -> Iterator[Served]:
    """Run a studio whose runs and models are in a folder."""
    places = Places(Store(folder / "runs", also), folder / "models")
    listening = listening_on("127.0.0.1", 0)
    server = make_server(make_app(places, HERE, TOKEN))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield Served(listening.getsockname()[1], places)
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


def until(true: Callable[[], object], seconds: float = 60, every: float = 0.02) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(every)
