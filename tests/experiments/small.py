"""Small sweeps for the tests of this folder: specs, stand-ins for a run, driver processes, and comparisons.

Torch is imported only when needed: a worker process that runs a stand-in starts in half a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from relive.experiments.arrays import Pictures
from relive.experiments.engines import Engine
from relive.experiments.resultfile import StoreError
from relive.experiments.spec import RunResult, RunSpec
from relive.experiments.store import RESULT, SAMPLES, Store
from relive.experiments.worker import Job, check_versions

SPEC = RunSpec("split", "class", "none", "digits", 0, 2, 10, 0.001, 16, 8, 2)
P = ParamSpec("P")
T = TypeVar("T")
# Processes are forked from one that has imported everything: a driver starts at once.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["relive.experiments.sweep", "torch._dynamo", "sklearn.datasets", "pytest", "tests.experiments.test_kill"]
)
Work = Callable[[Job], tuple[dict[str, Any], list[Pictures]]]


def specs(n: int) -> list[RunSpec]:
    """Return n specs for stand-ins; a higher seed is a longer run."""
    return [replace(SPEC, seed=seed, iters=10 + seed) for seed in range(n)]


def small(protocol: str, scenario: str, method: str, seed: int = 0) -> RunSpec:
    """Return the spec of a real run that takes about half a second."""
    from relive.experiments.spec import make_spec

    sizes: dict[str, Any] = {"iters": 60, "hidden": 20, "latent": 5, "batch_size": 32}
    tasks = 5 if protocol == "split" else 3
    return make_spec(protocol, scenario, method, dataset="digits", seed=seed, tasks=tasks, **sizes)


def result_of(spec: RunSpec, versions: dict[str, str] | None = None) -> RunResult:
    """Return a made-up result: the same for the same spec."""
    x = 1 / (3 + spec.seed)
    matrix = [[x if i == j else 0.1 for j in range(spec.tasks)] for i in range(spec.tasks)]
    return RunResult(spec, x, matrix, x, -x, [(0, 1, [x])], 1.5, None, 10, 0, versions or {"relive": "0"})


# Stand-ins for a run.


def quick(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Finish a run at once, writing a line to ``$LOG`` if it is set."""
    spec = RunSpec.from_json(job.spec)
    if "LOG" in os.environ:
        with open(os.environ["LOG"], "a") as log:
            log.write(f"{spec.seed}\n")
    return result_of(spec, job.versions).to_json(), []


def slow(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Take 0.2 s."""
    time.sleep(0.2)
    return quick(job)


def endless(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Finish the run of seed 2 at once, and others never."""
    if job.spec["seed"] != 2:
        time.sleep(600)
    return quick(job)


def other_code(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Act as a worker whose source has changed."""
    check_versions({**job.versions, "code": "changed"}, job.versions)
    return quick(job)


def first_has_other_code(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Have changed source for the first run of a sweep, and take a while for the others."""
    if job.spec["seed"] == 5:
        return other_code(job)
    time.sleep(1)
    return quick(job)


def full_disk(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Act as a worker whose checkpoint does not fit on the disk."""
    raise StoreError("cannot write to the runs directory: No space left on device")


def first_has_full_disk(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Have a full disk for the first run of a sweep, and never end the others."""
    if job.spec["seed"] == 5:
        return full_disk(job)
    time.sleep(600)
    return quick(job)


def failing(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Fail with seed 1, always."""
    if job.spec["seed"] == 1:
        raise ValueError("seed 1 is unlucky")
    return quick(job)


class AwkwardError(Exception):
    """An exception that cannot be unpickled, and so not be sent to another process."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("awkward")


def awkward(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Fail in ways that are hard to report."""
    if job.spec["seed"] == 1:
        raise AwkwardError(1, 2)
    if job.spec["seed"] == 2:
        raise SystemExit(3)
    return quick(job)


def murdered(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Be killed with seed 1 the first time, and with seed 2 every time."""
    seed = job.spec["seed"]
    mark = Path(os.environ["LOG"]).with_suffix(f".{seed}")
    if seed == 2 or (seed == 1 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(job)


def real(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Really do the run; write a line to ``$LOG`` when it begins, and one if it should not have."""
    from relive.experiments.worker import work

    name = RunSpec.from_json(job.spec).name
    with open(os.environ["LOG"], "a", buffering=1) as log, open(f"{os.environ['LOG']}.{name}", "w") as busy:
        try:
            fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.write(f"twice at a time: {name}\n")
        if job.runs_dir and (Path(job.runs_dir) / name / RESULT).exists():
            log.write(f"done before: {name}\n")
        log.write(f"begin {name}\n")
        return work(job)


# Engines and drivers.


class InProcess(Engine):
    """Does a run at once, in this process; records the order, and whether it was abandoned."""

    shares_files = True

    def __init__(self) -> None:
        self.order: list[int] = []
        self.ended = False

    def slots(self) -> int:
        return 1

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.order += [job.spec["seed"] for job in args if isinstance(job, Job)]
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def progress(self) -> dict[str, tuple[int, int]]:
        return {}

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.ended = not wait


def drive(root: Path, todo: list[RunSpec], work: Work, workers: int, log: Path | None = None) -> None:
    """Run as the driver of a sweep; the exit code says whether runs failed."""
    if log is not None:
        os.environ["LOG"] = str(log)
    from relive.experiments.engines import LocalEngine
    from relive.experiments.sweep import Sweep

    with LocalEngine(workers) as engine:
        status = Sweep(todo, Store(root), engine, work=work).run()
    os._exit(1 if status.failures else 0)


def start_driver(store: Store, todo: list[RunSpec], work: Work, workers: int, log: Path | None = None) -> BaseProcess:
    """Start a sweep in a separate process."""
    driver = FORKS.Process(target=drive, args=(store.root, todo, work, workers, log))
    driver.start()
    return driver


def workers_of(driver: int) -> list[int]:
    """Return the worker processes of a driver."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.02)


# Comparing.


def bits(store: Store) -> dict[str, Any]:
    """Return everything in a store that a sweep determines, run by run: all but the times."""
    results, damaged = store.scan()
    assert not damaged
    return {result.spec.name: dict(_bits(store, result)) for result in results}


def _bits(store: Store, result: RunResult) -> Iterator[tuple[str, Any]]:
    yield from (result.to_json() | {"train_seconds": 0, "cpu_seconds": 0}).items()
    path = store.directory(result.spec) / SAMPLES
    if path.exists():
        yield "samples", hashlib.sha256(path.read_bytes()).hexdigest()
