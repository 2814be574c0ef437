"""The served addresses: /predict, /model, /healthz, and their description."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from relive.serving.description import openapi, page
from relive.serving.guard import Guard
from relive.serving.http import RefusedError, body_of, json_response, told
from relive.serving.questions import answer, from_csv, from_json
from relive.serving.watched import Watched


@dataclass(frozen=True)
class Limits:
    """Limits of one request: bytes of its body, and samples."""

    body: int = 16_000_000
    samples: int = 10_000


def make_app(watched: Watched, limits: Limits, hosts: frozenset[str] | None, token: str | None) -> Starlette:
    """Return the application.

    Parameters
    ----------
    watched
        The model.
    limits
        Limits of one request.
    hosts, token
        Access control, as in ``Guard``.
    """

    async def predict(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/json", "text/csv"):
            raise RefusedError(415, "send application/json or text/csv, and set Content-Type accordingly")
        body = await body_of(request, limits.body)
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
        return json_response({"status": "ok", "version": (await watched.newest()).number})

    async def description(request: Request) -> Response:
        return json_response(openapi(limits.samples, limits.body, token is not None))

    async def docs(request: Request) -> Response:
        safe = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(page(openapi(limits.samples, limits.body, token is not None)), headers=safe)

    routes = [
        Route("/predict", told(predict), methods=["POST"]),
        Route("/model", told(model)),
        Route("/healthz", told(healthz)),
        Route("/openapi.json", told(description)),
        Route("/docs", told(docs)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts, token=token)],
        exception_handlers={HTTPException: _no_such_address},
    )


async def _no_such_address(request: Request, error: Exception) -> Response:
    """Answer as JSON that there is no such address, or that it takes other methods."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "")
    why = f"use {allowed}, not {request.method}" if allowed else "see /docs for what is served"
    answer = json_response({"error": f"{request.url.path}: {error.detail.lower()}; {why}"}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer
