"""Access control: on this machine, requests under its own name; from elsewhere, requests with the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OPEN = ("/healthz",)  # answered without a token


class Guard:
    """Answers 421 to requests for another host, 403 to those of another site, and 401 to those without the token.

    A web page can make its own name point to 127.0.0.1 (DNS rebinding), and a browser would then let it read
    what is served here; but it sends that name in ``Host``. A page that uses this machine's own name sends its origin
    in ``Origin``.

    Parameters
    ----------
    app
        The guarded application.
    hosts
        Names of this machine that a request may be for; None for any.
    token
        What ``Authorization: Bearer …`` must contain; None if it is not required.
    is_open
        Whether a path is answered without the token.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str] | None,
        token: str | None,
        is_open: Callable[[str], bool] = OPEN.__contains__,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.token = token
        self.is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if self.hosts is not None and host_in(headers.get("host", "")) not in self.hosts:
            return JSONResponse({"error": "this host is not served here: use localhost or 127.0.0.1"}, 421)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host", ""):
            return JSONResponse({"error": "requests from another site's page are refused"}, 403)
        if self.token is None or self.is_open(scope["path"]):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode()):
            return None
        said = {"error": "send the token: Authorization: Bearer TOKEN"}
        return JSONResponse(said, 401, headers={"WWW-Authenticate": "Bearer"})


def host_in(header: str) -> str:
    """Return the host that a ``Host`` header names, without the port.

    >>> host_in("localhost:8000"), host_in("[::1]:8000"), host_in("evil.example")
    ('localhost', '::1', 'evil.example')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
