"""The studio's routes: the page's files, and the API below /api/, which needs the token."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relive._util.errors import InputError
from relive.experiments.spec import RunResult, RunSpec
from relive.experiments.store import Store
from relive.serving.guard import Guard
from relive.serving.http import RefusedError, body_of, json_response, told
from relive.studio import choices, comparing
from relive.studio.commands import as_command, as_python, compare_words, run_words, words_of
from relive.studio.comparing import Comparer
from relive.studio.events import Hub
from relive.studio.looking import Looker, Seen
from relive.studio.models import Models
from relive.studio.ready import Ready
from relive.studio.runs import Runs

BODY = 1_000_000  # bytes of a request's body, uploads excepted
SIDE = 64  # pixels along each side of a drawing
MOST_CHOSEN = 200  # runs that may be chosen for one comparison
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Places:
    """Where the studio finds things: runs, model files, data sets."""

    store: Store
    models: Path
    data: Path | None = None


class SafeHeaders:
    """Adds headers to every response that keep the browser from doing more than the page needs."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in SAFE.items())]
            await send(message)

        await self.app(scope, receive, with_headers)


class Studio:
    """The application behind the page.

    Parameters
    ----------
    places
        Where runs, model files and data are.
    """

    def __init__(self, places: Places) -> None:
        self.places = places
        self.runs = Runs(places.store)
        self.ready = Ready()
        self.hub = Hub(self.runs, self.ready)
        self.looker = Looker(places.data)
        self.models = Models(places.models, self.ready)
        self.comparer = Comparer(places.store)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Watch the store while the server runs, and stop the started commands when it ends."""
        watching = asyncio.create_task(self.hub.watch())
        await self.ready.warm_up()
        try:
            yield
        finally:
            watching.cancel()
            await self.hub.jobs.stop_all()

    def routes(self) -> list[Route]:
        """Return the routes below /api/."""
        return [
            Route("/api/events", told(self.events)),
            Route("/api/catalogue", told(self.catalogue)),
            Route("/api/runs", told(self.start), methods=["POST"]),
            Route("/api/first", told(self.first), methods=["POST"]),
            Route("/api/runs/{name}", told(self.run)),
            Route("/api/runs/{name}/go-on", told(self.go_on), methods=["POST"]),
            Route("/api/runs/{name}/wrong", told(self.wrong)),
            Route("/api/runs/{name}/dreams", told(self.dreams)),
            Route("/api/programs", told(self.programs), methods=["POST"]),
            Route("/api/compare", told(self.compare)),
            Route("/api/chosen", told(self.chosen), methods=["POST"]),
            Route("/api/report", told(self.report), methods=["POST"]),
            Route("/api/draw", told(self.draw), methods=["POST"]),
            Route("/api/jobs/{number:int}/stop", told(self.stop), methods=["POST"]),
            *self.models.routes(),
        ]

    async def events(self, request: Request) -> Response:
        """Stream the state and its changes as server-sent events."""
        self.hub.check_room()
        return StreamingResponse(
            self.hub.stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def catalogue(self, request: Request) -> Response:
        """Return the choices that forms offer."""
        return json_response(choices.catalogue())

    async def start(self, request: Request) -> Response:
        """Start the runs that a form asks for."""
        form = await read_json(request)
        specs = await asyncio.to_thread(choices.specs_from, form)
        if len(specs) == 1 or form.get("seeds") is None:  # one seed: a process per method, side by side
            return self._started([self._run(spec) for spec in specs])
        words = compare_words(specs)
        names = [spec.name for spec in specs]
        return self._started([self._job(words, as_command(words), names)])

    async def programs(self, request: Request) -> Response:
        """Return known runs, or those that a form asks for, as commands and as Python; nothing is started."""
        asked = await read_json(request)
        if isinstance(asked, dict) and "runs" in asked:
            specs = [result.spec for result in (await self._results(asked)).values() if result is not None]
        else:
            specs = await asyncio.to_thread(choices.specs_from, asked)
        if not specs:
            raise RefusedError(404, "none of these runs is known and finished")
        return json_response({"command": as_command(*words_of(specs)), "python": as_python(*specs)})

    async def first(self, request: Request) -> Response:
        """Start the demo: fine-tuning and replay side by side."""
        specs = await asyncio.to_thread(first_specs)
        return self._started([self._run(spec) for spec in specs])

    async def go_on(self, request: Request) -> Response:
        """Resume a run that was stopped."""
        name = request.path_params["name"]
        spec = await asyncio.to_thread(self.runs.spec, name)
        if spec is None:
            raise RefusedError(404, f"there is no run {name!r}")
        return self._started([self._run(spec)])

    async def stop(self, request: Request) -> Response:
        """Interrupt a command that was started here."""
        self.hub.jobs.stop(request.path_params["number"])
        return json_response({})

    async def run(self, request: Request) -> Response:
        """Return everything that is known about a run."""
        return json_response(await asyncio.to_thread(self._about, request.path_params["name"]))

    async def wrong(self, request: Request) -> Response:
        """Return the test samples of one task that a run misclassifies after another."""
        seen, after = self._seen(request.path_params["name"]), number_in(request, "after")
        question = self.looker.wrong, seen, after, number_in(request, "task")
        return json_response(await self.looker.answer(*question))

    async def dreams(self, request: Request) -> Response:
        """Return what a run replays after a task."""
        seen, after = self._seen(request.path_params["name"]), number_in(request, "after")
        question = self.looker.dreams, seen, after, number_in(request, "task", 0)
        return json_response(await self.looker.answer(*question))

    async def draw(self, request: Request) -> Response:
        """Return what the snapshots of some runs predict for a drawing, SIDE × SIDE bytes in base64."""
        asked = await read_json(request)
        names = asked.get("runs") if isinstance(asked, dict) else None
        if not isinstance(names, list) or not 1 <= len(names) <= 4:
            raise InputError('"runs" must be a list of one to four runs')
        try:
            pixels = np.frombuffer(base64.b64decode(asked.get("pixels", ""), validate=True), np.uint8)
        except (binascii.Error, TypeError, ValueError):
            pixels = np.zeros(0, np.uint8)
        if len(pixels) != SIDE * SIDE:
            raise InputError(f'"pixels" must be {SIDE} × {SIDE} bytes in base64')
        task = asked.get("task", 0)
        if not isinstance(task, int) or isinstance(task, bool):
            raise InputError(f"task = {task!r}: it must be a whole number")
        runs = [self._seen(name) for name in names]
        question = self.looker.draw, pixels.reshape(SIDE, SIDE), runs, task
        return json_response(await self.looker.answer(*question))

    async def compare(self, request: Request) -> Response:
        """Return finished runs side by side, and next to the paper's numbers."""
        version = frozenset((row["name"], row["when"]) for row in self.runs.rows.values() if row["state"] == "done")
        return json_response(await asyncio.to_thread(self.comparer.everything, version))

    async def chosen(self, request: Request) -> Response:
        """Return chosen runs side by side, and the names of those that are missing or not finished."""
        found = await self._results(await read_json(request), MOST_CHOSEN)
        groups = await asyncio.to_thread(comparing.chosen, [result for result in found.values() if result is not None])
        return json_response({"groups": groups, "missing": [name for name, result in found.items() if result is None]})

    async def report(self, request: Request) -> Response:
        """Return the report of the named runs, or of all finished ones, as one page."""
        asked = await read_json(request)
        named = (await self._results(asked, MOST_CHOSEN)).values() if asked else None
        results = None if named is None else [result for result in named if result is not None]
        return json_response({"page": await asyncio.to_thread(self.comparer.report, results, self.places.data)})

    async def _results(self, asked: Any, most: int | None = None) -> dict[str, RunResult | None]:
        """Return the results of the named runs; None for one that is unknown or not finished."""
        names = asked.get("runs") if isinstance(asked, dict) else None
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InputError('"runs" must be a list of run names')
        if most is not None and len(names) > most:
            raise InputError(f"{len(names)} runs are too many to compare: choose at most {most}")
        return await asyncio.to_thread(lambda: {name: self.runs.result(name) for name in names})

    def _seen(self, name: Any) -> Seen:
        directory = self.runs.directory(name) if isinstance(name, str) else None
        spec = self.runs.spec(name) if directory is not None else None
        if directory is None or spec is None:
            raise RefusedError(404, f"there is no run {name!r}")
        return Seen(spec, directory)

    def _about(self, name: str) -> dict[str, Any]:
        row = self.runs.rows.get(name)
        if row is None:
            raise RefusedError(404, f"there is no run {name!r}")
        result = self.runs.result(name)
        spec = result.spec if result is not None else self.runs.spec(name)
        about: dict[str, Any] = {"row": row}
        if spec is not None:
            about |= {"spec": spec.to_json(), "command": as_command(run_words(spec)), "python": as_python(spec)}
        if result is not None:
            about |= {name: value for name, value in result.to_json().items() if name != "spec"}
        return about

    def _run(self, spec: RunSpec) -> dict[str, Any]:
        words = run_words(spec)
        return self._job([*words, "--quiet"], as_command(words), [spec.name])

    def _job(self, words: list[str], title: str, names: list[str]) -> dict[str, Any]:
        where = ["--runs-dir", str(self.places.store.root)]
        where += ["--data-dir", str(self.places.data)] if self.places.data is not None else []
        return self.hub.jobs.start([*words, *where, "--snapshots"], title, names).to_json()

    @staticmethod
    def _started(jobs: list[dict[str, Any]]) -> Response:
        return json_response({"jobs": jobs}, 201)


def first_specs(dataset: str = "digits") -> list[RunSpec]:
    """Return the runs of the demo: fine-tuning and replay, side by side."""
    return choices.specs_from(choices.FIRST | {"dataset": dataset} | choices.FIRST_SIZES[dataset])


def number_in(request: Request, name: str, usual: int | None = None) -> int:
    """Return a whole number from the query string, such as ``?after=2``."""
    text = request.query_params.get(name, "" if usual is None else str(usual))
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise InputError(f"{name} = {text!r}: it must be a whole number")
    return int(text)


async def read_json(request: Request) -> Any:
    """Return a request's body, which must be JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "send JSON, with Content-Type: application/json")
    try:
        return orjson.loads(await body_of(request, BODY))
    except orjson.JSONDecodeError as error:
        raise InputError(f"the body is not JSON: {error}") from error


def page_routes() -> list[Route]:
    """Return the routes of the page's files, which are read once: no request reaches the file system."""
    folder = files("relive.studio") / "static"
    contents = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}

    def route(address: str, name: str) -> Route:
        kind, content = KINDS[name.rpartition(".")[2]], contents[name]
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'

        async def served(request: Request) -> Response:
            headers = {"ETag": tag, "Cache-Control": "no-cache"}
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            return Response(content, media_type=kind, headers=headers)

        return Route(address, served)

    return [route("/", "index.html"), *(route(f"/static/{name}", name) for name in contents if name != "index.html")]


def make_app(places: Places, hosts: frozenset[str] | None, token: str) -> Starlette:
    """Return the ASGI application.

    Parameters
    ----------
    places
        Where runs, model files and data are.
    hosts
        Host names that a request may be for; None for any.
    token
        The token that requests below /api/ must carry.
    """
    studio = Studio(places)
    guard = Middleware(Guard, hosts=hosts, token=token, is_open=lambda path: not path.startswith("/api/"))
    return Starlette(
        routes=[*page_routes(), *studio.routes()],
        middleware=[Middleware(SafeHeaders), guard],
        lifespan=studio.lifespan,
    )
