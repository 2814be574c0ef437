"""Request handling shared by all servers: bodies of limited size, errors in a sentence, JSON responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from starlette.requests import Request
from starlette.responses import Response

from relive._util.errors import ReliveError

Endpoint = Callable[[Request], Awaitable[Response]]


class RefusedError(Exception):
    """A refused request: a status, and why."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why


def told(endpoint: Endpoint) -> Endpoint:
    """Turn client errors into a response with a message."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RefusedError as refused:
            return json_response({"error": refused.why}, refused.status)
        except ReliveError as error:
            return json_response({"error": str(error)}, 400)

    return answered


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's body, reading no more than allowed."""
    body = bytearray()
    async for part in request.stream():
        body += part
        check_size(len(body), most)
    return bytes(body)


def check_size(n: int, most: int) -> None:
    """Refuse a body that is too large."""
    if n > most:
        raise RefusedError(413, f"the body has more than {most:,} bytes: split it into several requests")


def json_response(content: object, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(content), status, media_type="application/json")
