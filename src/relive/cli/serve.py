"""``relive serve``: a model over HTTP."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import Annotated

import typer

from relive._util.errors import InputError, ReliveError
from relive.cli import models
from relive.cli.console import err, out

HOST = Annotated[str, typer.Option(help="The address to listen on; any address but this machine's own needs --token.")]
PORT = Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")]
TOKEN = Annotated[
    str | None,
    typer.Option(
        envvar="RELIVE_TOKEN", help="Requests must then send Authorization: Bearer TOKEN.", show_default="none"
    ),
]
MAX_SAMPLES = Annotated[int, typer.Option(min=1, help="Samples allowed in one request.")]
MAX_BODY = Annotated[int, typer.Option(min=1, help="Bytes allowed in one request.")]

EXAMPLES = """Examples:

relive serve flowers.safetensors

curl -H 'Content-Type: application/json' -d '{"samples": [[5.1, 3.5, 1.4, 0.2]], "proba": true}' localhost:8000/predict

curl -H 'Content-Type: text/csv' --data-binary @new.csv 'localhost:8000/predict?proba=1'

RELIVE_TOKEN=$(openssl rand -hex 16) relive serve flowers.safetensors --host 0.0.0.0
"""


def command(
    model: models.MODEL,
    host: HOST = "127.0.0.1",
    port: PORT = 8000,
    token: TOKEN = None,
    max_samples: MAX_SAMPLES = 10_000,
    max_body: MAX_BODY = 16_000_000,
    allow_code: models.ALLOW_CODE = False,
) -> None:
    """Serve POST /predict, GET /model and GET /healthz; GET /docs describes them. Stop with Ctrl-C.

    When MODEL is replaced (as relive fit does), the next request is answered by the new version; a damaged file is
    refused with a message, and the previous version stays in service.
    """
    try:
        import uvicorn

        from relive.serving.app import Limits, make_app
        from relive.serving.guard import is_loopback
    except ImportError as error:
        raise ReliveError(
            f"relive serve needs {error.name}, which is not installed: pip install 'relive[serve]'"
        ) from error

    from relive.serving.watched import Watched

    if token is not None and not token.strip():
        raise InputError(
            "the token is empty: choose one that cannot be guessed, for example with `openssl rand -hex 16`"
        )
    if not is_loopback(host) and token is None:
        raise InputError(
            f"--host {host} can be reached from other machines: set a token that requests must send, with "
            "--token or RELIVE_TOKEN, or leave --host out"
        )
    watched = Watched(models.real(model), allow_code, lambda message: err.print(message))
    hosts = frozenset({"localhost", "127.0.0.1", "::1", host.lower()}) if is_loopback(host) else None
    app = make_app(watched, Limits(max_body, max_samples), hosts, token)
    listening = listening_on(host, port)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=5)
    name = f"[{host}]" if ":" in host else host
    out.print(f"serving   {model} on http://{name}:{listening.getsockname()[1]} (stop with Ctrl-C)")
    with suppress(KeyboardInterrupt), listening:
        uvicorn.Server(config).run(sockets=[listening])
    out.print("stopped.")


def listening_on(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises an error that says why if it cannot."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        why = (
            os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
        )  # not Python's words
        other = "; choose another --port, or leave it out" if error.errno == errno.EADDRINUSE else ""
        raise ReliveError(f"cannot listen on {host}, port {port}: {why}{other}") from error
