"""A local web server that acts as a mirror, working or broken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.data.tiny import PACKED


class Server:
    """A mirror on this machine. ``pages`` is what it serves; ``cut`` and ``hang`` are how it fails."""

    def __init__(self) -> None:
        self.pages = dict(PACKED)
        self.cut: set[str] = set()
        self.hang: set[str] = set()
        self.asked: list[str] = []
        self.on_get: Callable[[], object] = lambda: None
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(f"{request.command} {request.path}")
        if f"{request.command} {request.path}" in self.hang:
            self.closing.wait()
            return
        page = self.pages.get(request.path)
        request.send_response(404 if page is None else 200)
        request.send_header("Content-Length", str(len(page or b"")))
        request.end_headers()
        if request.command == "GET" and page is not None:
            self.on_get()
            request.wfile.write(page[: len(page) // 2] if request.path in self.cut else page)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def do_HEAD(self) -> None:
                server.answer(self)

            def log_message(self, *_: object, **__: object) -> None:
                pass

        return Handler
