"""How fast ``relive serve`` answers many clients at once, and whether replacing the model file meanwhile does harm.

    python -m benchmarks.serving --clients 50 --requests 60 --replacements 100

The server and each client are separate processes. Clients repeat one request, and check every response against the
known predictions of the two models.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENT = """
import http.client, json, sys, time
asked = json.load(sys.stdin)
said = {"seconds": [], "wrong": 0, "failed": 0, "seen": [0] * len(asked["known"])}
link = http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=60)
for _ in range(asked["requests"]):
    start = time.perf_counter()
    try:
        link.request("POST", "/predict", asked["body"], {"Content-Type": "application/json"})
        answer = link.getresponse()
        content = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        said["failed"] += 1
        link.close()
        continue
    said["seconds"].append(time.perf_counter() - start)
    found = [content.get("labels"), content.get("probabilities")]
    if answer.status != 200:
        said["failed"] += 1
    elif found in asked["known"]:
        said["seen"][asked["known"].index(found)] += 1
    else:
        said["wrong"] += 1
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Load:
    """What the clients got: seconds of each request, sorted; wrong and failed responses; responses per model."""

    seconds: list[float]
    wrong: int
    failed: int
    seen: list[int]
    took: float

    def quantile(self, share: float) -> float:
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


@contextmanager
def serving(model: Path) -> Iterator[int]:
    """Serve a model in a separate process, and yield its port."""
    words = [sys.executable, "-m", "relive", "serve", str(model), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield int(line.rpartition("://127.0.0.1:")[2].split()[0])
        finally:
            server.terminate()


def ask(port: int, question: dict[str, Any], known: list[Any], clients: int, requests: int) -> list[Any]:
    """Start the clients, and return their processes."""
    told = json.dumps({"port": port, "requests": requests, "body": json.dumps(question), "known": known})
    started = []
    for _ in range(clients):
        words = [sys.executable, "-S", "-c", CLIENT]
        client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None
        client.stdin.write(told)
        client.stdin.close()
        started.append(client)
    return started


def gathered(clients: list[Any], start: float) -> Load:
    """Wait for all clients, and merge what they got."""
    said = [json.loads(client.stdout.read()) for client in clients]
    took = time.perf_counter() - start
    for client in clients:
        client.stdout.close()
        client.wait()
    return Load(
        sorted(s for one in said for s in one["seconds"]),
        sum(one["wrong"] for one in said),
        sum(one["failed"] for one in said),
        [sum(column) for column in zip(*(one["seen"] for one in said), strict=True)],
        took,
    )


def replace_file(model: Path, version: Path) -> None:
    """Replace a file by another model atomically, as ``relive fit`` does."""
    temporary = model.with_suffix(".tmp")
    shutil.copyfile(version, temporary)
    os.replace(temporary, model)


def under_load(
    model: Path, versions: list[Path], question: dict[str, Any], clients: int, requests: int, replacements: int
) -> Load:
    """Query a served model from many processes, while its file is replaced repeatedly by each version in turn."""
    from relive.inference.predictor import predictor_of

    known = []
    for version in versions:
        answers = predictor_of(version)
        p = answers.predict_proba(question["samples"])
        known.append([answers.classes_[p.argmax(1)].tolist(), p.tolist()])
    replace_file(model, versions[0])
    with serving(model) as port:
        start = time.perf_counter()
        asking = ask(port, question, known, clients, requests)
        for i in range(replacements):
            time.sleep(0.06)
            replace_file(model, versions[(i + 1) % len(versions)])
        return gathered(asking, start)


def two_models(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    """Return two models of digits with different predictions, and a request."""
    from sklearn.datasets import load_digits

    from relive import ContinualClassifier

    x, y = load_digits(return_X_y=True)
    x = x / 16
    versions = [folder / "one.safetensors", folder / "two.safetensors"]
    model = ContinualClassifier("discriminant")
    for path, classes in zip(versions, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)), strict=True):
        rows = [label in classes for label in y]
        model.partial_fit(x[rows], y[rows]).save(path)
    return versions, {"samples": x[:10].tolist(), "proba": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=60, help="requests per client")
    parser.add_argument("--replacements", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        versions, question = two_models(Path(folder))
        for replacements in (0, given.replacements):
            load = under_load(
                Path(folder) / "model.safetensors", versions, question, given.clients, given.requests, replacements
            )
            n = len(load.seconds)
            print(
                f"{given.clients} clients, {n:,} requests of 10 samples, file replaced {replacements} times: "
                f"{n / load.took:.0f} requests/s, median {1e3 * load.quantile(0.5):.0f} ms, "
                f"p99 {1e3 * load.quantile(0.99):.0f} ms, {load.wrong} wrong, {load.failed} failed; "
                f"answered by each model: {load.seen}"
            )


if __name__ == "__main__":
    main()
