"""The studio's server: idle connections are closed, and Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import resource
import socket
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

SILENT = 10.0  # seconds that a connection may take to send a request
OPEN_FILES = 8192  # each connection is an open file: the limit is raised as far as the system allows, up to this


class Impatient(H11Protocol):
    """Closes a connection that has sent no complete request after SILENT seconds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)

        def close_if_silent() -> None:
            if self.cycle is None and not transport.is_closing():
                transport.close()

        asyncio.get_running_loop().call_later(SILENT, close_if_silent)


def make_server(app: Starlette, **options: Any) -> uvicorn.Server:
    """Return a server for the studio."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    config = uvicorn.Config(
        app, http=Impatient, log_level="warning", access_log=False, timeout_graceful_shutdown=1, **options
    )
    return uvicorn.Server(config)


def address(host: str, listening: socket.socket, token: str) -> str:
    """Return the address to open in a browser; browsers send nothing after the # to a server."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/#token={token}"
