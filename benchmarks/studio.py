"""How much open pages slow down training: one run, alternately with and without fifty pages that follow it.

python -m benchmarks.studio   (some minutes, on a quiet machine)
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from relive.cli.serve import listening_on
from relive.experiments.journal import read_progress
from relive.experiments.spec import make_spec
from relive.experiments.store import Store
from relive.studio.commands import run_words

CLIENTS, TURNS, TURN = 50, 30, 3.0  # clients; turns, every second one with them, and seconds of each


def main() -> None:
    """Measure, and print the ratio."""
    spec = make_spec("split", "class", "rtf", dataset="digits", tasks=2, iters=100_000)
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        directory = Store(runs).prepare(spec)
        port, server = serve(runs)
        run = subprocess.Popen(
            [sys.executable, "-m", "relive", *run_words(spec), "--runs-dir", str(runs), "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while _steps(directory) < 500:
                time.sleep(0.1)
            speeds: dict[bool, list[float]] = {False: [], True: []}
            told, busy = 0, 0.0
            for turn in range(TURNS):
                watched = turn % 2 == 1
                with Watchers(port, CLIENTS if watched else 0) as watchers:
                    before, start, used = _steps(directory), time.monotonic(), _processor_time(server.pid)
                    time.sleep(TURN)
                    speeds[watched].append((_steps(directory) - before) / (time.monotonic() - start))
                    told += watchers.lines
                    busy += watched * (_processor_time(server.pid) - used)
        finally:
            run.kill()
            server.kill()
            run.wait()
            server.wait()
    alone, beside = (sum(speeds[watched]) / len(speeds[watched]) for watched in (False, True))
    seconds = TURN * TURNS / 2
    print(f"{told / CLIENTS / seconds:.1f} messages/s to each; the server used {100 * busy / seconds:.1f} % of a core")
    print(f"alone {alone:.1f} steps/s, with {CLIENTS} pages {beside:.1f} steps/s: ratio {alone / beside:.3f}")


def serve(runs: Path) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a studio over a runs directory, and return its port and process."""
    with listening_on("127.0.0.1", 0) as free:
        port = int(free.getsockname()[1])
    words = ["studio", "--runs-dir", str(runs), "--no-open", "--port", str(port)]
    server = subprocess.Popen([sys.executable, "-m", "relive", *words], stdout=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    Watchers.token = server.stdout.readline().decode().strip().partition("#token=")[2]
    return port, server


def _steps(directory: Path) -> int:
    progress = read_progress(directory)
    return 0 if progress is None else progress.iteration


def _processor_time(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Watchers:
    """Clients that read the event stream, each on its own connection."""

    token = ""

    def __init__(self, port: int, n: int) -> None:
        self.lines = 0
        self._over = False
        self._threads = [threading.Thread(target=self._watch, args=(port,), daemon=True) for _ in range(n)]

    def __enter__(self) -> Watchers:
        for thread in self._threads:
            thread.start()
        time.sleep(1)
        return self

    def __exit__(self, *exception: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()
        time.sleep(1)

    def _watch(self, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        while not self._over:
            line = answer.readline()  # before the count is read, which other threads change meanwhile
            self.lines += line.startswith(b"data: ")
        connection.close()


if __name__ == "__main__":
    main()
