"""The addresses that are served: /predict, /model, /healthz, and what describes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from relive._util.errors import InputError
from relive.serving.description import openapi, page
from relive.serving.guard import Guard
from relive.serving.questions import answer, from_csv, from_json
from relive.serving.watched import Watched


@dataclass(frozen=True)
class Limits:
    """How much one request may ask: bytes of its body, and samples."""

    body: int = 16_000_000
    samples: int = 10_000


class _RefusedError(Exception):
    """A request that is not answered: a status, and why."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why


def make_app(watched: Watched, limits: Limits, hosts: frozenset[str] | None, token: str | None) -> Starlette:
    """Return what answers requests.

    Parameters
    ----------
    watched
        The model.
    limits
        How much one request may ask.
    hosts, token
        Who may ask, as in ``Guard``.
    """

    async def predict(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/json", "text/csv"):
            raise _RefusedError(415, "send application/json or text/csv, and say which in Content-Type")
        body = await _body(request, limits.body)
        version = await watched.newest()

        def answered() -> bytes:
            if kind == "text/csv":
                question = from_csv(body, request.query_params, version.model, limits.samples)
            else:
                question = from_json(body, limits.samples)
            return orjson.dumps(answer(version.model, question) | {"version": version.number})

        return Response(await asyncio.to_thread(answered), media_type="application/json")

    async def model(request: Request) -> Response:
        return Response((await watched.newest()).about, media_type="application/json")

    async def healthz(request: Request) -> Response:
        return _json({"status": "ok", "version": (await watched.newest()).number})

    async def description(request: Request) -> Response:
        return _json(openapi(limits.samples, limits.body, token is not None))

    async def docs(request: Request) -> Response:
        safe = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(page(openapi(limits.samples, limits.body, token is not None)), headers=safe)

    routes = [
        Route("/predict", _told(predict), methods=["POST"]),
        Route("/model", _told(model)),
        Route("/healthz", _told(healthz)),
        Route("/openapi.json", _told(description)),
        Route("/docs", _told(docs)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts, token=token)])


def _told(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Have what a client did wrong be answered in a sentence."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except _RefusedError as refused:
            return _json({"error": refused.why}, refused.status)
        except InputError as error:
            return _json({"error": str(error)}, 400)

    return answered


async def _body(request: Request, most: int) -> bytes:
    """Return a request's body, of which no more is kept than may be sent."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise _RefusedError(413, f"the body has more than {most:,} bytes: ask in several requests")
    return bytes(body)


def _json(content: object, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")
