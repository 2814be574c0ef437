"""The lifecycle of runs, one or many: lease, skip finished ones, run on an engine, store, retry failures once.

``relive run`` is a sweep of one run in its own process; ``compare``, ``paper`` and ``grid`` are sweeps of many.
"""

from __future__ import annotations

import math
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from relive._util.registry import files_at
from relive._util.versions import versions
from relive.experiments.arrays import Pictures
from relive.experiments.engines import Engine
from relive.experiments.resultfile import DamagedResult, StoreError
from relive.experiments.spec import SCENARIO_NAMES, RunResult, RunSpec, make_spec
from relive.experiments.store import Store
from relive.experiments.worker import Job, VersionsDiffer, work
from relive.methods import method_facts

TICK = 0.25  # seconds between two checks of the engine
ATTEMPTS = 2

# Rough milliseconds per iteration on split: only used to start long runs first.
COST = {"none": 6, "xdg": 7, "ewc": 9, "online-ewc": 7, "si": 8, "lwf": 8, "dgr": 36, "dgr-distill": 36, "rtf": 28}


def specs_of(
    protocols: Iterable[str],
    scenarios: Iterable[str],
    methods: Iterable[str],
    seeds: Iterable[int],
    settings: Mapping[str, Sequence[float]] | None = None,
    **changes: Any,
) -> list[RunSpec]:
    """Return the specs of a grid; combinations that a method does not support are left out.

    >>> len(specs_of(["split"], ["task", "class"], ["xdg", "si"], range(2), {}))
    6
    """
    values = settings or {}
    return [
        make_spec(protocol, scenario, method, seed=seed, settings=dict(zip(values, chosen, strict=True)), **changes)
        for protocol, scenario, method, seed in product(protocols, scenarios, methods, seeds)
        if scenario in method_facts(method).scenarios or scenario not in SCENARIO_NAMES  # make_spec refuses the latter
        for chosen in product(*values.values())
    ]


def cost(spec: RunSpec) -> float:
    """Return roughly how long a run takes, in arbitrary units."""
    return spec.tasks * spec.iters * math.pow(spec.hidden, 1.5) * COST.get(spec.method, 10)


@dataclass(frozen=True)
class Failure:
    """A run that did not finish: its spec, and the traceback."""

    spec: RunSpec
    trace: str


@dataclass
class Status:
    """The state of a sweep."""

    total: int
    done: int = 0
    running: list[RunSpec] = field(default_factory=list)
    progress: dict[str, tuple[int, int]] = field(default_factory=dict)
    elsewhere: int = 0  # runs that another sweep is doing
    failures: list[Failure] = field(default_factory=list)
    done_share: float = 0.0  # share of the total cost that is finished, including parts of runs in progress
    found_share: float = 0.0  # share that was there before this sweep
    waiting_for: str = ""  # while nothing runs: what the sweep waits for


OnStatus = Callable[[Status], None]


@dataclass
class _Run:
    """A run in progress: it holds its lease until it is over."""

    spec: RunSpec
    attempt: int
    lease: ExitStack


class Sweep:
    """Does every run that the store does not have yet.

    Parameters
    ----------
    specs
        What to do; each spec once.
    store
        Where results are stored; only the driver writes results.
    engine
        Where runs are executed.
    data_dir
        Where workers look for data first.
    work
        What does a job; tests and benchmarks replace it with something shorter.
    again
        Whether finished runs are repeated.
    note
        Called with what the user should know: damaged results, retries, resumed runs, workers refused or lost.
    """

    def __init__(
        self,
        specs: Iterable[RunSpec],
        store: Store,
        engine: Engine,
        data_dir: str | None = None,
        work: Callable[[Job], tuple[dict[str, Any], list[Pictures]]] = work,
        *,
        again: bool = False,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.store = store
        self.engine = engine
        self.data_dir = data_dir
        self.work = work
        self.again = again
        self.note = note
        self.versions = versions()
        self.waiting = deque(sorted({spec.name: spec for spec in specs}.values(), key=cost, reverse=True))
        self.elsewhere: set[str] = set()
        self.attempts: dict[str, int] = {}
        self.running: dict[Future[Any], _Run] = {}
        self.status = Status(total=len(self.waiting))
        self.whole = sum(map(cost, self.waiting)) or 1.0
        self.finished = 0.0
        self.found = 0.0
        self.fatal: StoreError | VersionsDiffer | None = None
        self.resumed: dict[str, float] = {}  # how much of a run was done at its first report

    def run(self, on_status: OnStatus | None = None) -> Status:
        """Do everything, and return the final status; ``on_status`` is called about four times a second.

        If it is stopped, the workers are stopped too; finished runs and finished tasks are kept.
        """
        try:
            left = self.left()
            if left:
                self.engine.prepare(left, self.versions, self.data_dir)
            while (self.waiting and self.fatal is None) or self.running:
                if self.fatal is None:
                    self._submit_free()
                if self.running:
                    self._collect_finished()
                elif self.waiting:  # everything left is being done by another sweep, or there are no workers
                    time.sleep(TICK)
                self._update_status()
                if on_status is not None:
                    on_status(self.status)
            if self.fatal is not None:
                raise self.fatal
        except BaseException:
            self.engine.shutdown(wait=False, cancel_futures=True)  # before the leases: nobody may start these yet
            raise
        finally:
            for run in self.running.values():
                run.lease.close()
        return self.status

    def left(self) -> list[RunSpec]:
        """Return what is not done yet; the rest is counted before anything starts, so that times left are right."""
        left = []
        for spec in self.waiting:
            if not self.again and not self.store.has_checkpoint(spec) and self._is_done(spec):
                self._mark_done(spec)
            else:
                left.append(spec)
        self.waiting = deque(left)
        self.found = self.finished
        self._update_status()
        return left

    def _submit_free(self) -> None:
        """Give the engine as many runs as it has slots for."""
        slots = self.engine.slots()
        free = slots - len(self.running)
        refused = []
        while self.waiting and free > 0:
            spec = self.waiting.popleft()
            with ExitStack() as lease:
                if not lease.enter_context(self.store.lease(spec)):
                    refused.append(spec)
                    self.elsewhere.add(spec.name)
                    continue
                self.elsewhere.discard(spec.name)
                if self.store.load_or_set_aside(spec, self.note) is not None and not self.again:  # done in the meantime
                    self.store.tidy(spec)
                    self._mark_done(spec)
                else:
                    self._start(spec, lease)
                    free -= 1
        self.waiting.extend(refused)
        self.status.elsewhere = len(self.elsewhere)
        self.status.waiting_for = "" if self.running or not self.waiting else "another sweep" if slots else "workers"

    def _is_done(self, spec: RunSpec) -> bool:
        """Return whether there is an intact result; a damaged one is handled by the lease holder."""
        try:
            return self.store.load(spec) is not None
        except DamagedResult:
            return False

    def _start(self, spec: RunSpec, lease: ExitStack) -> None:
        """Submit a run, which from then on owns its lease."""
        attempt = self.attempts[spec.name] = self.attempts.get(spec.name, 0) + 1
        here = self.engine.shares_files
        runs_dir, files = (str(self.store.root), {}) if here else (None, files_at(spec.homes))
        job = Job(spec.to_json(), self.versions, runs_dir, self.data_dir, files)
        future = self.engine.submit(self.work, job)
        self.running[future] = _Run(spec, attempt, lease.pop_all())

    def _collect_finished(self) -> None:
        """Wait a moment for runs to end; their futures are released here, since an engine keeps results until then."""
        over, _ = wait(self.running, timeout=TICK, return_when=FIRST_COMPLETED)
        for future in over:
            self._collect(future)
        if isinstance(self.fatal, StoreError):  # runs in progress could not be stored either
            raise self.fatal

    def _collect(self, future: Future[Any]) -> None:
        """Store the result of a finished run, or arrange a retry."""
        run = self.running.pop(future)
        with run.lease:
            error = CancelledError("the engine gave up on it") if future.cancelled() else future.exception()
            if error is None:
                result, samples = future.result()
                self.store.save(RunResult.from_json(result), samples)
                self._mark_done(run.spec)
            elif isinstance(error, StoreError | VersionsDiffer):
                self.note(f"{run.spec.name}: {error}; no further runs are started")  # they would fail too
                self.fatal = self.fatal or error
            elif run.attempt < ATTEMPTS:
                self.note(f"{run.spec.name} failed and is retried: {error!r}")
                self.waiting.appendleft(run.spec)
            else:
                self.status.failures.append(Failure(run.spec, "".join(traceback.format_exception(error))))

    def _mark_done(self, spec: RunSpec) -> None:
        self.status.done += 1
        self.finished += cost(spec)

    def _update_status(self) -> None:
        """Update the status."""
        status = self.status
        status.progress = self.engine.progress()
        for text in self.engine.notes():
            self.note(text)
        status.running = [run.spec for run in self.running.values()]
        under_way = 0.0
        for spec in status.running:
            task, iteration = status.progress.get(spec.name, (1, 0))
            done = cost(spec) * ((task - 1) * spec.iters + iteration) / (spec.tasks * spec.iters)
            under_way += done
            if spec.name in status.progress and spec.name not in self.resumed:
                self.resumed[spec.name] = done
        status.done_share = (self.finished + under_way) / self.whole
        status.found_share = (self.found + sum(self.resumed.values())) / self.whole
