"""Inject a fault into one of a process's system calls with strace, and check what is left.

Python and torch take seconds to start, so this process imports everything once, and faults go into a fork of it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.operations import NEW, Operation, clear

CALLS = {
    "open": "openat",
    "write": "write",
    "fsync": "fsync",
    "rename": "rename",
    "link": "link",
    "unlink": "unlink",
    "mkdir": "mkdir",
    "chmod": "chmod",
    "lock": "flock",
    "map": "mmap",
    "read": "read",
    "close": "close",
    "list": "getdents64",
}
ERRORS = {"EIO": "error=EIO", "ENOSPC": "error=ENOSPC", "EINTR": "error=EINTR", "KILL": "signal=KILL"}
LIE = {"LIE": "retval=1"}  # it reports that one byte was written, though none was
PATIENCE = 60.0  # seconds that strace may take to attach, and a process with a fault to end
FOUND = Path("found")  # the initial state of an operation, copied for each fault


class HarnessError(Exception):
    """Faults cannot be injected here; the message says why."""


@dataclass(frozen=True)
class Fault:
    """What happens at the n-th of some system calls."""

    call: str
    what: str
    n: int

    def __str__(self) -> str:
        return f"{self.what} at {self.call} {self.n}"


@dataclass(frozen=True)
class Outcome:
    """How a process with a fault ended: whether the fault was reached, the exit code, and its stderr."""

    met: bool
    code: int
    said: str


def actions(call: str, operation: Operation) -> dict[str, str]:
    """Return what can go wrong at a call."""
    if call == "map":
        return {"ENOMEM": "error=ENOMEM", "KILL": "signal=KILL"}
    if call in ("read", "close", "list"):
        return {"EIO": "error=EIO", "KILL": "signal=KILL"}
    return ERRORS | (LIE if call == "write" and operation.checked else {})


def disturbed(operation: Operation, fault: Fault | None) -> Outcome:
    """Fork, let the child act with a fault, or run the next command without one; return how it ended."""
    go, release = os.pipe()
    child = os.fork()
    if child == 0:
        _act(operation.act if fault is not None else operation.go_on, go)
    os.close(go)
    tracer = _attached(child, fault, operation) if fault is not None else None
    os.write(release, b"x")
    os.close(release)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    met = False
    if tracer is not None:
        tracer.wait(PATIENCE)
        trace = Path("../trace").read_text(errors="replace")
        met = "INJECTED" in trace or code == -signal.SIGKILL
    return Outcome(met, code, Path("../stderr").read_text(errors="replace"))


def _act(act: Callable[[], int], go: int) -> None:
    """Run as the child: act once the tracer is attached, and skip this process's own cleanup."""
    code = 99
    try:
        signal.alarm(int(PATIENCE))
        out = os.open("../stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        err = os.open("../stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(err, 2)
        select.select([go], [], [])  # a call that no fault applies to
        code = act()
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def _attached(child: int, fault: Fault, operation: Operation) -> subprocess.Popen[str]:
    """Return strace, attached to the child."""
    call, what = CALLS[fault.call], actions(fault.call, operation)[fault.what]
    command = ["strace", "-o", "../trace", "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={fault.n}"]
    tracer = subprocess.Popen([*command, "-p", str(child)], stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    line = tracer.stderr.readline()
    if "attached" not in line:
        os.kill(child, signal.SIGKILL)
        raise HarnessError(f"strace cannot attach: {line.strip()}")
    return tracer


def check_available() -> None:
    """Raise an error if strace is missing or may not trace."""
    if shutil.which("strace") is None:
        raise HarnessError("strace is not installed: apt-get install strace")
    done = subprocess.run(
        ["strace", "-o", "/dev/null", "-e", "trace=mkdir", "-e", "inject=mkdir:error=EIO:when=1", "true"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise HarnessError(f"strace may not trace here: {done.stderr.strip()}")


def problems_after(operation: Operation, fault: Fault, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong after a fault: with the files, with the error message, and with the next command."""
    if "Traceback" in outcome.said or outcome.code == 99:
        yield f"a traceback: {outcome.said[-2000:]}"
    if outcome.code < 0 and outcome.code != -signal.SIGKILL:
        yield f"ended by signal {-outcome.code}"
    try:
        state = operation.state()
        if outcome.code == 0 and state != NEW:
            yield "it reported success, but nothing is stored"
    except Exception as error:
        yield f"what is stored is incomplete: {error!r}"
    again = disturbed(operation, None)
    if again.code != 0:
        yield f"the next command fails with {again.code}: {again.said[-500:]}"
        return
    try:
        if operation.state() != NEW:
            yield "the next command has no effect"
    except Exception as error:
        yield f"after the next command, what is stored is incomplete: {error!r}"
    if operation.left():
        yield f"left behind: {operation.left()}"


class Tried:
    """How many faults were tried, by call and kind, and what was wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.wrong: list[str] = []


def prepared(operation: Operation, home: Path) -> None:
    """Create an operation's initial state, once, and change to its directory."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "work").mkdir(parents=True)
    os.chdir(home / "work")
    nowhere, stdout, stderr = os.open(os.devnull, os.O_WRONLY), os.dup(1), os.dup(2)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        operation.find()
        operation.act()  # so that everything is imported
        clear()
        operation.find()
    finally:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
    shutil.copytree(".", home / FOUND)


def attempt(operation: Operation, fault: Fault, tried: Tried) -> bool:
    """Try one fault; return whether it was reached before the operation completed."""
    clear()
    shutil.copytree(Path("..") / FOUND, ".", dirs_exist_ok=True)
    outcome = disturbed(operation, fault)
    if not outcome.met:
        return False
    tried.counts[f"{fault.call} {fault.what}"] += 1
    tried.endings["killed" if outcome.code < 0 else "went on" if outcome.code == 0 else "told"] += 1
    tried.wrong += [f"{operation.name}, {fault}: {problem}" for problem in problems_after(operation, fault, outcome)]
    return True
