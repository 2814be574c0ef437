"""What a sweep costs besides its runs: 10,000 runs that do nothing, through the local engine and the store.

    python benchmarks/sweep_overhead.py [--runs 10000] [--workers 2] [--profile]

Prints runs per second, the driver's peak memory, and the time to read all results back.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from relive._util.versions import versions
from relive.experiments.arrays import Pictures
from relive.experiments.engines import LocalEngine
from relive.experiments.spec import RunResult, RunSpec, make_spec
from relive.experiments.store import Store
from relive.experiments.sweep import Sweep
from relive.experiments.worker import Job


def canned(spec: RunSpec, versions: dict[str, str]) -> RunResult:
    """Return a result as large as a real one of split MNIST: 5 tasks, 11 evaluations each."""
    row = [0.9874739039665971, 0.9662095984329089, 0.9909284951974386, 0.9954682779456193, 0.9833585476550681]
    return RunResult(
        spec=spec,
        average_accuracy=sum(row) / len(row),
        accuracy_matrix=[row] * spec.tasks,
        forgetting=0.012345678901234567,
        backward_transfer=-0.012345678901234567,
        curve=[(task, look, row[: task + 1]) for task in range(spec.tasks) for look in range(11)],
        train_seconds=123.45678901234567,
        parameters=478_410,
        stored_numbers=0,
        cpu_seconds=123.4,
        versions=versions,
    )


def nothing(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Stand in for a run."""
    return canned(RunSpec.from_json(job.spec), job.versions).to_json(), []


def scan(store: Store, runs: int) -> str:
    """Return how long it takes to read all results."""
    start, cpu = time.perf_counter(), time.process_time()
    results, damaged = store.scan()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    assert len(results) == runs
    assert not damaged
    return f"{seconds:.2f} s for {runs} results ({cpu:.2f} s of CPU)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="show where the driver's time goes")
    options = parser.parse_args()
    first = make_spec("split", "class", "none", dataset="digits")
    specs = [replace(first, seed=seed) for seed in range(options.runs)]
    with tempfile.TemporaryDirectory() as folder, LocalEngine(options.workers) as engine:
        store = Store(Path(folder))
        Sweep([replace(first, iters=1, seed=k) for k in range(options.workers)], store, engine, work=nothing).run()
        start, cpu = time.perf_counter(), time.process_time()
        with cProfile.Profile() as profile:
            if not options.profile:
                profile.disable()
            notes: list[str] = []
            status = Sweep(specs, store, engine, work=nothing, note=notes.append).run()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        assert status.done == options.runs
        assert not status.failures
        assert not notes
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"machine    {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {versions()}")
        print(f"sweep      {options.runs} runs in {seconds:.1f} s: {options.runs / seconds:.0f} runs/s")
        print(f"driver     {1000 * cpu / options.runs:.2f} ms of CPU per run, peak memory {peak:.0f} MB")
        print(f"scan       {scan(store, options.runs + options.workers)}")
        start = time.perf_counter()
        assert Sweep(specs, store, engine, work=nothing).run().done == options.runs
        print(f"again      {time.perf_counter() - start:.2f} s for a sweep that finds everything done")
        if options.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
