"""Model files in a folder, trained and queried by the commands themselves: the same checks and messages."""

from __future__ import annotations

import asyncio
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relive._util.errors import InputError, unknown
from relive.methods import METHODS
from relive.serving.http import RefusedError, json_response, told
from relive.studio.programs import Step
from relive.studio.ready import Answer, Ready
from relive.studio.uploads import received

ENDING = ".safetensors"
NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,79}", re.ASCII)
AT_ONCE = 2  # commands at a time
SHOWN = 200  # predictions that are returned
KEPT = 5  # earlier versions of a model that are kept, so that every step here can be undone
TEXT = 200  # characters that an option may have


class Models:
    """The page's requests about model files.

    Parameters
    ----------
    folder
        Where they are; created when the first one is trained.
    ready
        Runs the commands.
    """

    def __init__(self, folder: Path, ready: Ready) -> None:
        self.folder = folder
        self._ready = ready
        self._slots = asyncio.Semaphore(AT_ONCE)

    def routes(self) -> list[Route]:
        """Return the routes."""
        doing = {"fit": self.fit, "predict": self.predict, "evaluate": self.evaluate, "forget": self.forget}
        doing |= {"rollback": self.rollback}
        return [
            Route("/api/models", told(self.all)),
            Route("/api/models/{name}", told(self.inspect)),
            *(Route(f"/api/models/{{name}}/{what}", told(do), methods=["POST"]) for what, do in doing.items()),
        ]

    async def all(self, request: Request) -> Response:
        """Return the model files, the newest first."""
        found = [(path, path.stat()) for path in self.folder.glob(f"*{ENDING}") if NAME.fullmatch(path.stem)]
        found.sort(key=lambda pair: pair[1].st_mtime, reverse=True)
        models = [{"name": path.stem, "bytes": known.st_size, "when": known.st_mtime} for path, known in found]
        methods = [
            {"name": name, "title": facts.title}
            for name, facts in METHODS.items()
            if not (facts.needs_earlier_tasks or facts.keeps_data)  # a command is needed to allow stored samples
        ]
        return json_response({"models": models, "methods": methods, "folder": str(self.folder)})

    async def inspect(self, request: Request) -> Response:
        """Return what is in a model file."""
        file = self._file(request)
        return await self._told(["inspect", file, "--json"], Step(file).inspect(), as_json=True)

    async def fit(self, request: Request) -> Response:
        """Train a model on uploaded samples."""
        self.folder.mkdir(parents=True, exist_ok=True)
        asked = request.query_params
        method = asked.get("method")
        if method and method not in METHODS:
            raise unknown("method", method, METHODS)
        words = [*_options(asked, "label", "x", "y", "task"), *([f"--method={method}"] if method else [])]
        words += [f"--{flag}" for flag in ("forgettable", "again") if asked.get(flag) == "yes"]
        return await self._with_data(request, "fit", Step.fit, [*words, f"--keep={KEPT}", "--quiet"])

    async def predict(self, request: Request) -> Response:
        """Return a model's predictions for uploaded samples."""
        words = [*_options(request.query_params, "label", "x", "y", "task"), "--proba", "--format=json"]
        return await self._with_data(request, "predict", Step.predict, words, as_json=True)

    async def evaluate(self, request: Request) -> Response:
        """Compare a model's predictions with uploaded labels."""
        words = [*_options(request.query_params, "label", "x", "y", "task"), "--format=json"]
        return await self._with_data(request, "evaluate", Step.evaluate, words, as_json=True)

    async def forget(self, request: Request) -> Response:
        """Make a model forget a class."""
        label = request.query_params.get("class", "")
        if not label or len(label) > TEXT:
            raise InputError("name the class to forget")
        file = self._file(request)
        words = ["forget", file, f"--keep={KEPT}", "--", label]
        return await self._told(words, Step(file, asked={"class": label}, keep=KEPT).forget())

    async def rollback(self, request: Request) -> Response:
        """Restore the previous version."""
        file = self._file(request)
        return await self._told(["rollback", file], Step(file).rollback())

    def _file(self, request: Request, new: bool = False) -> str:
        """Return the file name of a request's model; the file is in the folder, whatever the request says."""
        name = request.path_params["name"]
        if not NAME.fullmatch(name):
            raise InputError(f"{name!r}: a model's name has up to 80 letters, digits, and . _ + - after the first")
        path = self.folder / f"{name}{ENDING}"
        if path.resolve().parent != self.folder.resolve():
            raise InputError(f"{name} is a link that leads out of {self.folder}")
        if not new and not path.is_file():
            raise RefusedError(404, f"there is no model {path.name} in {self.folder}")
        return path.name

    async def _with_data(
        self, request: Request, what: str, program: Callable[[Step], str], words: list[str], as_json: bool = False
    ) -> Response:
        model = self._file(request, new=what == "fit")
        is_new = not (self.folder / model).exists()
        with tempfile.TemporaryDirectory(prefix="relive-studio-") as folder:
            data = await received(request, Path(folder))
            step = Step(model, is_new, str(data.relative_to(folder)), request.query_params, KEPT)
            return await self._told([what, model, str(data), *words], program(step), as_json, hidden=folder)

    async def _told(self, words: list[str], program: str, as_json: bool = False, hidden: str = "") -> Response:
        """Run a command and return its output; ``hidden`` is a temporary folder to remove from it."""
        async with self._slots:
            done = await self._ready.do(words, self.folder)
        said = Answer(done.code, *(text.replace(f"{hidden}/", "") if hidden else text for text in (done.out, done.err)))
        if said.code != 0:
            raise RefusedError(400, said.err.strip().removeprefix("error: ") or f"it failed with exit code {said.code}")
        typed = shlex.join(["relive", *(word.replace(f"{hidden}/", "") if hidden else word for word in words)])
        answer: dict[str, Any] = {"command": typed, "python": program, "notes": said.err.strip()}
        if not as_json:
            return json_response(answer | {"said": said.out.rstrip()})
        result = orjson.loads(said.out)
        more = {"total": len(result)} if isinstance(result, list) else {}
        return json_response(answer | more | {"result": result[:SHOWN] if isinstance(result, list) else result})


def _options(asked: Mapping[str, str], *names: str) -> list[str]:
    """Return options of a command, each as one word, so that no value can pass for another option."""
    for name in names:
        if len(asked.get(name, "")) > TEXT:
            raise InputError(f"{name} is longer than {TEXT} characters")
    return [f"--{name}={asked[name]}" for name in names if asked.get(name)]
