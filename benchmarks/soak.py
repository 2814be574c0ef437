"""A sweep of many short runs with a random fault every few seconds: ``python -m benchmarks.soak --minutes 10``.

A driver does the sweep, on worker processes or on a Dask cluster of this machine. Every few seconds the driver, a
worker or the scheduler is killed or suspended, the disk is filled, a lease is deleted, or the clock jumps. In the end
every result must be there, once, bit-identical to an undisturbed run. Stopped at any moment, the same command resumes.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relive.experiments.arrays import Pictures
from relive.experiments.execute import run
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.store import LEASE, RESULT, Store
from relive.experiments.sweep import Sweep
from relive.experiments.worker import Job, work

METHODS = ("none", "ewc", "si", "lwf", "ncm")
SIZES: dict[str, Any] = {"hidden": 6, "latent": 2, "batch_size": 16}
EVERY = (2.0, 6.0)  # seconds between two faults
DISK = 96  # megabytes of the disk that is filled
FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
)
PORT = 18787


def specs(n: int, iters: int) -> list[RunSpec]:
    """Return the runs to do."""
    sizes = {"dataset": "digits", "iters": iters, **SIZES}
    return [make_spec("split", "class", METHODS[k % len(METHODS)], seed=k, **sizes) for k in range(n)]


def logged(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Do a run; log a line when it begins, and one if another process is doing it, or it was done before."""
    name, log = RunSpec.from_json(job.spec).name, Path(os.environ["SOAK_LOG"])
    with log.open("a", buffering=1) as file, (log.parent / "busy" / name).open("w") as busy:
        try:
            fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.write(f"twice {name}\n")
        if job.runs_dir and (Path(job.runs_dir) / name / RESULT).exists():
            file.write(f"again {name}\n")
        file.write(f"begin {name}\n")
        return work(job)


def drive(root: Path, n: int, iters: int, scheduler: str | None, workers: int) -> int:
    """Run as the driver."""
    from relive.cli.sweeping import make_engine

    engine = make_engine("dask" if scheduler else "local", None if scheduler else workers, scheduler)
    with engine:
        status = Sweep(specs(n, iters), Store(root), engine, work=logged).run()
    return int(bool(status.failures))


@dataclass
class Found:
    """What was observed so far; kept in a file, so that a soak can resume."""

    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    recovery: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    megabytes: list[tuple[float, float]] = field(default_factory=list)  # seconds since the start, and MB
    starts: int = 0

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"faults": dict(self.faults), "recovery": dict(self.recovery)}

    @classmethod
    def read(cls, path: Path) -> Found:
        if not path.exists():
            return cls()
        values = json.loads(path.read_text())
        recovery: dict[str, list[float]] = defaultdict(list, values.pop("recovery"))
        return cls(**values | {"faults": Counter(values["faults"]), "recovery": recovery})


class Soak:
    """The sweep, and what happens to it.

    Parameters
    ----------
    home
        Where everything is kept.
    runs, iters, engine, workers
        How many runs; training iterations per task; ``local`` or ``dask``; worker processes.
    """

    def __init__(self, home: Path, runs: int, iters: int, engine: str, workers: int) -> None:
        self.home, self.runs, self.iters, self.engine, self.workers = home, runs, iters, engine, workers
        self.root, self.state, self.clock = home / "disk" / "runs", home / "found.json", home / "clock"
        self.found = Found.read(self.state)
        self.rng = random.Random(self.found.seconds)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (home / "busy").mkdir(parents=True, exist_ok=True)
        self.clock.write_text("+0")
        self.has_disk = self._mount()
        self.faketime = next((path for path in FAKETIME if Path(path).exists()), None)

    def _mount(self) -> bool:
        """Mount a small disk for the runs; without one it is never filled."""
        disk = self.home / "disk"
        disk.mkdir(exist_ok=True)
        if os.path.ismount(disk):
            return True
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "relive-soak", str(disk)], capture_output=True
        )
        return done.returncode == 0

    def start(self) -> None:
        """Start every process that is not running."""
        if self.engine == "dask":
            quiet = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
            self._start("scheduler", "-m", "distributed.cli.dask_scheduler", "--port", str(PORT), *quiet)
            address = f"tcp://127.0.0.1:{PORT}"
            for k in range(self.workers):
                place = ["--local-directory", str(self.home / "dask")]
                options = [address, "--nthreads", "1", "--no-nanny", *quiet, *place]
                self._start(f"worker{k}", "-m", "distributed.cli.dask_worker", *options)
        where = ["--scheduler", f"tcp://127.0.0.1:{PORT}"] if self.engine == "dask" else []
        work = ["--runs", str(self.runs), "--iters", str(self.iters), "--workers", str(self.workers)]
        self._start("driver", "-m", "benchmarks.soak", "--drive", str(self.root), *work, *where)

    def _start(self, name: str, *words: str) -> None:
        old = self.processes.get(name)
        if old is not None and old.poll() is None:
            return
        environment = os.environ | {"SOAK_LOG": str(self.home / "log"), "OMP_NUM_THREADS": "1"}
        if self.faketime and name == "driver":
            environment |= {"LD_PRELOAD": self.faketime, "FAKETIME_TIMESTAMP_FILE": str(self.clock)}
            environment |= {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        log = (self.home / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen([sys.executable, *words], env=environment, stdout=log, stderr=log)
        log.close()
        self.found.starts += name == "driver"

    def done(self) -> int:
        """Return how many results there are."""
        return sum((entry / RESULT).exists() for entry in self.root.iterdir()) if self.root.is_dir() else 0

    def everybody(self) -> list[int]:
        """Return all processes that take part, except a Dask scheduler."""
        first = [p.pid for name, p in self.processes.items() if p.poll() is None and name != "scheduler"]
        return first + [child for parent in first for child in children(parent)]

    def fault(self) -> str:
        """Inject a random fault, and return its kind."""
        kinds = ["kill driver", "kill worker", "stop", "delete lease"]
        kinds += ["full disk"] if self.has_disk else []
        kinds += ["clock jump"] if self.faketime else []
        kinds += ["kill scheduler"] if self.engine == "dask" else []
        kind = self.rng.choice(kinds)
        if kind == "kill driver":
            kill(self.processes["driver"].pid)
        elif kind == "kill scheduler":
            kill(self.processes["scheduler"].pid)
        elif kind == "kill worker":
            workers = [pid for pid in self.everybody() if pid != self.processes["driver"].pid]
            kill(self.rng.choice(workers or [self.processes["driver"].pid]))
        elif kind == "stop":
            pid = self.rng.choice(self.everybody() or [self.processes["driver"].pid])
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self.rng.uniform(0.5, 3))
                os.kill(pid, signal.SIGCONT)
        elif kind == "delete lease":
            for lease in list(self.root.glob(f"*/{LEASE}"))[:3]:
                lease.unlink(missing_ok=True)
        elif kind == "full disk":
            self._fill(self.rng.uniform(0.5, 3))
        else:
            self.clock.write_text(f"{self.rng.choice([-1, 1]) * self.rng.choice([60, 3600, 86400, 86400 * 400]):+d}")
        return kind

    def _fill(self, seconds: float) -> None:
        """Keep the disk full for a while."""
        with (self.home / "disk" / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 2**16)
        time.sleep(seconds)
        (self.home / "disk" / "filler").unlink()

    def soak(self, minutes: float) -> None:
        """Inject faults for so long, or until every run is done."""
        last = time.monotonic()
        end = last + 60 * minutes
        next_fault, kind, since = last, "", last  # the last fault, and when it was; empty once a result has followed
        before = self.done()
        while time.monotonic() < end and before < self.runs:
            self.start()
            time.sleep(0.2)
            now, count = time.monotonic(), self.done()
            if count > before and kind:
                self.found.recovery[kind].append(round(now - since, 2))
                kind = ""
            if count > before and not next_fault:
                next_fault = now + self.rng.uniform(*EVERY)
            before = count
            if next_fault and now >= next_fault and (count or kind):
                kind = self.fault()
                self.found.faults[kind] += 1
                since, next_fault = time.monotonic(), 0.0
            self.found.seconds += time.monotonic() - last
            last = time.monotonic()
            if len(self.found.megabytes) < self.found.seconds / 5:
                self.found.megabytes.append((round(self.found.seconds), sum(map(memory, self.everybody()))))
            self.state.write_text(json.dumps(self.found.to_json()))

    def finish(self) -> None:
        """Let the driver finish undisturbed, and end all processes."""
        self.clock.write_text("+0")
        while self.done() < self.runs:
            self.start()
            time.sleep(0.5)
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10 if process is self.processes["driver"] else 0)
            process.kill()
            process.wait()

    def verdict(self, sample: int) -> dict[str, Any]:
        """Compare with undisturbed runs; return the figures."""
        results, damaged = Store(self.root).scan()
        by_name = {result.spec.name: result for result in results}
        wanted = specs(self.runs, self.iters)
        lost = [spec.name for spec in wanted if spec.name not in by_name]
        some = random.Random(0).sample(wanted, min(sample, len(wanted)))
        wrong = [spec.name for spec in some if spec.name in by_name and not same(by_name[spec.name], run(spec).result)]
        log = (self.home / "log").read_text().splitlines() if (self.home / "log").exists() else []
        words = Counter(line.split()[0] for line in log if line)
        left = [path.name for path in self.root.glob("*/*") if path.name not in ("spec.json", RESULT, LEASE)]
        recovery = {kind: sorted(times) for kind, times in self.found.recovery.items() if times}
        memory_by_time = [m for _, m in self.found.megabytes]
        third = max(1, len(memory_by_time) // 3)
        return {
            "engine": self.engine,
            "runs": self.runs,
            "minutes": round(self.found.seconds / 60, 1),
            "faults": dict(self.found.faults),
            "lost": len(lost),
            "damaged": len(damaged),
            "compared": len(some),
            "wrong": len(wrong),
            "twice at a time": words["twice"],
            "done again": words["again"],
            "begun": words["begin"],
            "left behind": sorted(set(left)),
            "recovery": {kind: [times[len(times) // 2], times[-1]] for kind, times in recovery.items()},
            "megabytes": [round(max(memory_by_time[:third] or [0])), round(max(memory_by_time[-third:] or [0]))],
            "disk": self.has_disk,
            "clock": self.faketime is not None,
        }


def same(one: Any, other: Any) -> bool:
    """Return whether two results of a spec are bit-identical."""
    return bool(one.accuracy_matrix == other.accuracy_matrix and one.curve == other.curve)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


def memory(pid: int) -> float:
    """Return the private memory of a process in megabytes."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--iters", type=int, default=3, help="training iterations per task: how long a run takes")
    parser.add_argument("--engine", choices=["local", "dask"], default="local")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--compare", type=int, default=2000, help="how many results are compared with undisturbed runs")
    parser.add_argument("--home", type=Path, default=Path("soak"))
    parser.add_argument("--output", type=Path, help="where to write the figures, as JSON")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        return drive(options.drive, options.runs, options.iters, options.scheduler, options.workers)
    soak = Soak(options.home.absolute() / options.engine, options.runs, options.iters, options.engine, options.workers)
    try:
        soak.soak(options.minutes)
        soak.finish()
        figures = soak.verdict(options.compare)
    finally:
        for process in soak.processes.values():
            process.kill()
    print(json.dumps(figures, indent=1))
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n")
    if soak.has_disk:
        subprocess.run(["umount", str(soak.home / "disk")], check=False)
    shutil.rmtree(soak.home, ignore_errors=True)
    return int(bool(figures["lost"] or figures["wrong"] or figures["damaged"] or figures["twice at a time"]))


if __name__ == "__main__":
    raise SystemExit(main())
