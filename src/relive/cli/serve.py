"""``relive serve``: a model over HTTP."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Annotated

import typer

from relive._util.errors import InputError, ReliveError
from relive.cli import models
from relive.cli.console import err, out

HOST = Annotated[str, typer.Option(help="Where to listen; anything but this machine itself needs --token.")]
PORT = Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")]
TOKEN = Annotated[
    str | None,
    typer.Option(
        envvar="RELIVE_TOKEN", help="What requests must have: Authorization: Bearer TOKEN.", show_default="none"
    ),
]
MAX_SAMPLES = Annotated[int, typer.Option(min=1, help="Samples that one request may ask about.")]
MAX_BODY = Annotated[int, typer.Option(min=1, help="Bytes that one request may send.")]

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
    """Answer POST /predict, GET /model and GET /healthz; GET /docs describes them. Ctrl-C ends it.

    When MODEL is replaced (relive fit does so), the next request is answered by the new one; a damaged one is refused
    with a message, and the one before goes on.
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
        raise InputError("the token is empty: give one that nobody can guess, such as `openssl rand -hex 16` prints")
    if not is_loopback(host) and token is None:
        raise InputError(
            f"--host {host} can be reached from other machines: give a token that requests must have, with --token or "
            "in RELIVE_TOKEN, or leave --host out"
        )
    watched = Watched(models.real(model), allow_code, lambda message: err.print(message))
    hosts = frozenset({"localhost", "127.0.0.1", "::1", host.lower()}) if is_loopback(host) else None
    app = make_app(watched, Limits(max_body, max_samples), hosts, token)
    listening = listening_on(host, port)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=5)
    name = f"[{host}]" if ":" in host else host
    out.print(f"serving   {model} on http://{name}:{listening.getsockname()[1]} (Ctrl-C ends it)")
    with suppress(KeyboardInterrupt), listening:
        uvicorn.Server(config).run(sockets=[listening])
    out.print("stopped.")


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens; it says why if it cannot."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ReliveError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
