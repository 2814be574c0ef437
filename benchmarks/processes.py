"""Measurements of whole processes: workers against threads, how soon a run begins, an older commit against this one.

``python -m benchmarks.processes 2 100`` is a worker with two threads that, for every line it reads, does 100 iterations
of RtF and prints the seconds.
"""

from __future__ import annotations

import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from benchmarks.common import AT_MOST, ROOT, Effort, Figure, Findings, environment, fresh, subject

BEFORE = "e024791"  # the commit that this one's speed is compared with
WORKERS_GOAL, START_GOAL = 1.2, 1.3

START = """
import os, sys
from relive.cli import main
from relive.cli.progress import LiveObserver
LiveObserver.stepped = lambda *arguments: os._exit(0)  # the first iteration is done
sys.argv = ["relive", "run", "--runs-dir", sys.argv[1]]
main()
"""


# ---- workers and threads ----------------------------------------------------------------------------------------


@contextmanager
def _worker(threads: int, iterations: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.processes", str(threads), str(iterations)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(threads=threads), stdin=pipe, stdout=pipe, text=True
    ) as process:
        _answer(process)  # wait until it is ready
        yield process
        process.communicate()  # close its input, which ends it


def _ask(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[str]) -> float:
    assert process.stdout is not None
    return float(process.stdout.readline())


def serve(threads: int, iterations: int) -> None:
    """Serve as a worker."""
    torch.set_num_threads(threads)
    of = subject("split", "class", "rtf")
    of.block(3)
    print(0, flush=True)
    for _ in sys.stdin:
        print(sum(of.block(iterations)), flush=True)


def measure_workers(effort: Effort) -> Findings:
    """Return runs per hour of two workers with a thread each over those of one process with two threads."""
    iterations = effort.n(80, 10)
    two, one = [], []
    with ExitStack() as stack:
        effort.say("starting workers")
        pair = [stack.enter_context(_worker(1, iterations)) for _ in range(2)]
        single = stack.enter_context(_worker(2, iterations))
        for _ in range(effort.n(4, 1)):
            effort.say("two workers, one thread each")
            for process in pair:
                _ask(process)
            two.append(2 / max(_answer(process) for process in pair))
            effort.say("one process, two threads")
            _ask(single)
            one.append(1 / _answer(single))
    # a run of RtF on split MNIST is 5 × 2000 iterations
    runs = {who: 3600 * iterations * statistics.median(rates) / 10_000 for who, rates in (("two", two), ("one", one))}
    return Findings(
        [
            Figure(
                "two workers with one thread over one with two, in runs per hour",
                runs["two"] / runs["one"],
                goal=WORKERS_GOAL,
                note=f"RtF, split MNIST, at the last task's pace: {runs['two']:.0f} and {runs['one']:.0f} an hour",
            )
        ],
        runs,
    )


# ---- how soon a run begins --------------------------------------------------------------------------------------


def _seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment(), check=True, capture_output=True)
    return time.perf_counter() - start


def measure_start(effort: Effort) -> Findings:
    """Return the time until ``relive run`` has done its first iteration over that of python with ``import torch``."""
    ours, torches = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(effort.n(5, 2) + 1):
            effort.say(f"start {i}")
            torches.append(_seconds("-c", "import os, torch; os._exit(0)"))
            ours.append(_seconds("-c", START, folder))
    start, bare = statistics.median(ours[1:]), statistics.median(torches[1:])  # the first fills the disk cache
    note = f"{start:.2f} s over {bare:.2f} s"
    return Findings(
        [Figure("first iteration of relive run over import torch", start / bare, "×", START_GOAL, AT_MOST, note)],
        {"relive run": ours, "import torch": torches},
    )


# ---- before and after -------------------------------------------------------------------------------------------


@contextmanager
def _tree(commit: str) -> Iterator[Path]:
    """Unpack the package as it was at a commit."""
    done = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"no commit {commit} here to compare with: {done.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder) / "src"


def measure_before(effort: Effort) -> Findings:
    """Return where RtF's iteration spends its time, before and now, in alternating processes.

    Both with MKL's products, as before; what oneDNN's gain is a part of its own.
    """
    profiles: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    with _tree(BEFORE) as old:
        for i in range(effort.n(2, 1)):
            for when, source in (("before", old), ("now", ROOT / "src")):
                effort.say(f"{when}, {i + 1}")
                arguments = "split", "rtf", effort.n(40, 8)
                profile = fresh("benchmarks.floor", *arguments, source=source, ATEN_CPU_CAPABILITY="avx2")
                profiles[when].append(profile)
    medians = {
        when: {key: statistics.median(p[key] for p in runs) for key in runs[0]} for when, runs in profiles.items()
    }
    before, now = medians["before"], medians["now"]
    return Findings(
        [
            Figure(
                f"RtF's iteration at {BEFORE} over now",
                now["share"] / before["share"],
                note="each in units of its bare products, MKL's for both",
            ),
            Figure(f"floor share at {BEFORE}", before["share"], ""),
            Figure("floor share now", now["share"], ""),
        ],
        medians | {"commit": BEFORE, "each": profiles},
    )


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
