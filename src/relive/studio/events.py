"""Server-sent events: the whole state first, then what changed, as one message for all clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson

from relive.serving.http import RefusedError
from relive.studio.jobs import Job, Jobs
from relive.studio.ready import Ready
from relive.studio.runs import News, Runs

TICK, IDLE = 0.4, 2.0  # seconds between two scans of the store, with and without clients
HEARTBEAT = 15.0  # seconds of silence after which a stream sends a comment
MOST_CLIENTS, MOST_BEHIND = 300, 64  # clients at a time; messages that one may lag behind


class Hub:
    """Scans the store, and sends what changed to all clients.

    Parameters
    ----------
    runs
        The runs of a store.
    ready
        Starts commands.
    """

    def __init__(self, runs: Runs, ready: Ready) -> None:
        self.runs = runs
        self.jobs = Jobs(ready, self._job_changed)
        self.clients: set[asyncio.Queue[bytes]] = set()
        self.looked = asyncio.Event()  # set once every run has been read

    async def watch(self) -> None:
        """Scan repeatedly, until cancelled."""
        while True:
            try:
                news = await asyncio.to_thread(self.runs.look)
            except Exception as error:  # whatever is in the directory, the next scan may succeed
                self._tell({"problem": f"cannot read the runs: {error}"})
                news = News()
            if news.rows or news.live or news.gone:
                self._tell({"rows": list(news.rows.values()), "live": news.live, "gone": news.gone})
            if not news.more and not self.looked.is_set():
                self.looked.set()
                self._tell({"ready": True})
            await asyncio.sleep(0.01 if news.more else TICK if self.clients else IDLE)

    def _job_changed(self, job: Job) -> None:
        self._tell({"jobs": [job.to_json()]})

    def _tell(self, what: dict[str, Any]) -> None:
        if not self.clients:
            return
        message = _message(what)
        for queue in list(self.clients):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:  # too slow: its stream ends, and it may reconnect for the whole state
                self.clients.discard(queue)
                with contextlib.suppress(asyncio.QueueEmpty):
                    while True:
                        queue.get_nowait()
                queue.put_nowait(b"")

    def check_room(self) -> None:
        """Refuse a client beyond the limit."""
        if len(self.clients) >= MOST_CLIENTS:
            raise RefusedError(503, f"{MOST_CLIENTS} pages are connected already: close some of them")

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the whole state, then what changed, to one client."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(MOST_BEHIND)
        self.clients.add(queue)
        try:
            yield _message(
                {
                    "all": True,
                    "rows": list(self.runs.rows.values()),
                    "live": self.runs.live,
                    "jobs": [job.to_json() for job in self.jobs.all.values()],
                    "ready": self.looked.is_set(),
                }
            )
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    message = b": still here\n\n"
                if not message:
                    return
                yield message
        finally:
            self.clients.discard(queue)


def _message(what: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(what) + b"\n\n"
