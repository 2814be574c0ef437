"""Sweeps: done runs are skipped, failures are reported and do not spread, nothing is done twice, no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relive._util.errors import InputError
from relive.experiments.engines import LocalEngine, WorkerDied
from relive.experiments.resultfile import StoreError
from relive.experiments.store import CHECKPOINT, LEASE, Store
from relive.experiments.sweep import Status, Sweep, cost
from relive.experiments.worker import VersionsDiffer, check_versions
from tests.experiments.small import (
    SPEC,
    InProcess,
    alive,
    awkward,
    endless,
    failing,
    first_has_full_disk,
    first_has_other_code,
    full_disk,
    murdered,
    other_code,
    quick,
    result_of,
    slow,
    small,
    specs,
    start_driver,
    until,
    workers_of,
)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where stand-ins log the seeds that they did."""
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    with LocalEngine(2) as engine:
        yield engine


def done(store: Store) -> list[int]:
    """Return the seeds of the finished runs."""
    results, damaged = store.scan()
    assert not damaged
    return sorted(result.spec.seed for result in results)


class TestOrder:
    def test_what_is_done_is_skipped(self, store: Store) -> None:
        for spec in specs(4)[1:3]:
            store.save(result_of(spec), [])
        engine = InProcess()
        status = Sweep(specs(4), store, engine, work=quick).run()
        assert sorted(engine.order) == [0, 3]
        assert (status.done, status.total, done(store)) == (4, 4, [0, 1, 2, 3])

    def test_when_all_is_done_no_worker_starts(self, store: Store) -> None:
        store.save(result_of(SPEC), [])
        with LocalEngine(2) as engine:
            assert Sweep([SPEC], store, engine, work=quick).run().done == 1
            assert workers_of(os.getpid()) == []

    def test_the_longest_run_is_first(self, store: Store) -> None:
        engine = InProcess()
        Sweep(specs(5), store, engine, work=quick).run()
        assert engine.order == [4, 3, 2, 1, 0]

    def test_longer_is_what_has_more_to_compute(self) -> None:
        rtf = replace(SPEC, method="rtf")
        assert cost(rtf) > cost(replace(SPEC, method="si")) > cost(SPEC)
        for more in ({"tasks": 3}, {"iters": 20}, {"hidden": 16}):
            assert cost(replace(rtf, **more)) > cost(rtf)  # type: ignore[arg-type]

    def test_a_spec_that_is_asked_for_twice_is_done_once(self, store: Store) -> None:
        engine = InProcess()
        status = Sweep([SPEC, SPEC, replace(SPEC)], store, engine, work=quick).run()
        assert (engine.order, status.total) == ([0], 1)

    def test_what_a_killed_driver_left_in_a_done_run_is_removed(self, store: Store) -> None:
        """Killed after the result was written, before the checkpoint was removed."""
        path = store.save(result_of(SPEC), [])
        (path / CHECKPOINT).touch()
        (path / LEASE).touch()
        engine = InProcess()
        assert Sweep([SPEC], store, engine, work=quick).run().done == 1
        assert engine.order == []
        assert sorted(p.name for p in path.iterdir()) == ["result.json", "spec.json"]

    def test_the_share_that_is_done_grows_to_one(self, store: Store) -> None:
        shares: list[float] = []
        Sweep(specs(4), store, InProcess(), work=quick).run(lambda status: shares.append(status.done_share))
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)

    def test_what_was_there_before_is_told_apart(self, store: Store) -> None:
        store.save(result_of(specs(4)[0]), [])
        found: list[float] = []
        job = Sweep(specs(4), store, InProcess(), work=quick)
        assert [spec.seed for spec in job.left()] == [3, 2, 1]
        job.run(lambda status: found.append(status.found_share))
        assert 0 < found[0] < 0.25
        assert set(found) == {found[0]}

    def test_what_was_there_of_a_run_under_way_is_told_apart_too(self, store: Store) -> None:
        class GoesOn(InProcess):
            """Is in the middle of a run's second task at the first query."""

            step = 4

            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                return Future()

            def progress(self) -> dict[str, tuple[int, int]]:
                self.step += 1
                return {SPEC.name: (2, self.step)}

        shares: list[tuple[float, float]] = []

        def watch(status: Status) -> None:
            shares.append((status.done_share, status.found_share))
            if len(shares) == 2:
                raise Enough

        with pytest.raises(Enough):
            Sweep([SPEC], store, GoesOn(), work=quick).run(watch)
        assert [share for pair in shares for share in pair] == pytest.approx([0.80, 0.80, 0.85, 0.80])

    def test_who_is_waited_for_is_said(self, store: Store) -> None:
        said: list[str] = []

        def watch(status: Status) -> None:
            said.append(status.waiting_for)
            if len(said) == 2:
                raise Enough

        job = Sweep([SPEC], Store(store.root), InProcess(), work=quick)
        with store.lease(SPEC), pytest.raises(Enough):
            job.run(watch)
        assert said == ["another sweep"] * 2


class Enough(Exception):  # noqa: N818
    """Ends a sweep."""


class TestFailures:
    def test_a_failing_run_is_told_retried_once_and_stops_nobody(self, store: Store, engine: LocalEngine) -> None:
        notes: list[str] = []
        status = Sweep(specs(4), store, engine, work=failing, note=notes.append).run()
        assert done(store) == [0, 2, 3]
        assert [failure.spec.seed for failure in status.failures] == [1]
        trace = status.failures[0].trace
        assert "ValueError: seed 1 is unlucky" in trace
        assert 'in failing\n    raise ValueError("seed 1' in trace, "the worker's own traceback"
        assert [specs(4)[1].name in note for note in notes] == [True]

    def test_even_an_awkward_failure(self, store: Store, engine: LocalEngine) -> None:
        status = Sweep(specs(4), store, engine, work=awkward).run()
        assert done(store) == [0, 3]
        traces = {failure.spec.seed: failure.trace for failure in status.failures}
        assert "raise AwkwardError(1, 2)" in traces[1]
        assert "SystemExit: 3" in traces[2]

    def test_changed_code_lets_the_runs_under_way_finish(self, store: Store, engine: LocalEngine) -> None:
        job = Sweep(specs(6), store, engine, work=first_has_other_code)
        with pytest.raises(VersionsDiffer):
            job.run()
        assert len(done(store)) == 1  # the one running alongside; none of the other four was started
        assert job.status.failures == []

    def test_a_full_disk_does_not_wait_for_the_runs_under_way(self, store: Store, engine: LocalEngine) -> None:
        start = time.monotonic()
        with pytest.raises(StoreError, match="No space left"):
            Sweep(specs(6), store, engine, work=first_has_full_disk).run()
        assert time.monotonic() - start < 60

    @pytest.mark.parametrize("kind", ["versions", "disk"])
    def test_what_would_fail_every_run_stops_at_once(self, store: Store, engine: LocalEngine, kind: str) -> None:
        """Code that changed during the sweep, or a full disk, must not fail the remaining runs."""
        work, error = {"versions": (other_code, VersionsDiffer), "disk": (full_disk, StoreError)}[kind]
        job = Sweep(specs(6), store, engine, work=work)
        with pytest.raises(error):
            job.run()
        assert job.status.failures == []
        assert done(store) == []

    def test_a_killed_worker_takes_only_its_own_run_with_it(self, store: Store, engine: LocalEngine, log: Path) -> None:
        notes: list[str] = []
        status = Sweep(specs(5), store, engine, work=murdered, note=notes.append).run()
        assert done(store) == [0, 1, 3, 4], "1 was killed once, 2 each time"
        assert [failure.spec.seed for failure in status.failures] == [2]
        assert "WorkerDied" in status.failures[0].trace
        assert "was killed by SIGKILL" in status.failures[0].trace
        assert [specs(5)[k].name in "".join(notes) for k in range(5)] == [False, True, True, False, False]
        assert sorted(log.read_text().split()) == ["0", "1", "3", "4"], "no other run was done again"

    def test_a_worker_that_is_killed_while_idle_is_replaced(self, store: Store, engine: LocalEngine) -> None:
        one, two = specs(2)
        Sweep([one], store, engine, work=quick).run()
        (pid,) = workers_of(os.getpid())
        os.kill(pid, signal.SIGKILL)
        status = Sweep([two], store, engine, work=quick).run()
        assert (done(store), status.failures) == ([0, 1], [])

    def test_a_checkpoint_that_cannot_be_used_is_told(self, store: Store, engine: LocalEngine) -> None:
        spec = small("split", "class", "none")
        (store.prepare(spec) / CHECKPOINT).write_bytes(b"junk")
        notes: list[str] = []
        status = Sweep([spec], store, engine, note=notes.append).run()
        assert (status.done, status.failures) == (1, [])
        (told,) = notes
        assert told.endswith("the run starts over")
        assert str(store.directory(spec) / CHECKPOINT) in told

    def test_a_watcher_that_fails_ends_the_workers(self, store: Store) -> None:
        def watch(status: Status) -> None:
            raise OSError("the terminal is gone")

        engine = InProcess()
        with pytest.raises(OSError, match="terminal"):
            Sweep(specs(2), store, engine, work=quick).run(watch)
        assert engine.ended


class TestLocalEngine:
    def test_it_takes_no_more_than_its_slots(self, engine: LocalEngine) -> None:
        futures = [engine.submit(time.sleep, 0.1) for _ in range(2)]
        with pytest.raises(RuntimeError, match="all 2 workers are busy"):
            engine.submit(time.sleep, 0.1)
        assert [future.result() for future in futures] == [None, None]

    def test_what_cannot_be_sent_takes_no_worker(self, engine: LocalEngine) -> None:
        with pytest.raises(Exception, match="pickle"):
            engine.submit(lambda: None)
        assert engine.submit(abs, -1).result() == 1

    def test_a_large_answer_comes_whole_or_not_at_all(self, engine: LocalEngine) -> None:
        assert engine.submit(bytes, 10_000_000).result() == bytes(10_000_000)
        future = engine.submit(time.sleep, 600)
        for pid in workers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        assert isinstance(future.exception(timeout=30), WorkerDied)

    def test_it_leaves_no_process_thread_or_handle(self) -> None:
        def resources() -> tuple[int, int]:
            return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

        with LocalEngine(1) as engine:
            engine.submit(abs, -1).result()  # multiprocessing keeps a helper process from the first start on
        before = resources()
        with LocalEngine(2) as engine:
            assert engine.submit(abs, -1).result() == 1
            engine.submit(os.getpid)
        assert workers_of(os.getpid()) == []
        assert all(now <= then for now, then in zip(resources(), before, strict=True))

    def test_giving_up_ends_it_at_once(self) -> None:
        engine = LocalEngine(1)
        future = engine.submit(time.sleep, 600)
        engine.shutdown(wait=False)
        assert workers_of(os.getpid()) == []
        assert isinstance(future.exception(), WorkerDied)
        engine.shutdown()

    def test_ctrl_c_is_the_drivers_to_handle(self) -> None:
        """A terminal sends it to the workers too, even while they start."""
        script = "from relive.experiments.engines import LocalEngine as E; import os, signal\n"
        script += "with E(1) as engine:\n future = engine.submit(abs, -1)\n"
        script += " os.kill(engine._workers[0].process.pid, signal.SIGINT)\n assert future.result() == 1\n"
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

    def test_there_must_be_a_worker(self) -> None:
        with pytest.raises(InputError, match="workers = 0"):
            LocalEngine(0)

    def test_other_versions_are_refused_by_name(self) -> None:
        with pytest.raises(VersionsDiffer, match=r"torch 2\.9 \(driver: 2\.13\).*python None \(driver: 3\.11\)"):
            check_versions({"torch": "2.9", "numpy": "2"}, {"torch": "2.13", "numpy": "2", "python": "3.11"})


class TestTwoSweeps:
    def test_they_share_the_work_and_never_do_a_run_twice(self, store: Store, log: Path) -> None:
        other = start_driver(store, specs(24), slow, 1, log)
        until(lambda: log.read_text())
        elsewhere: list[int] = []
        with LocalEngine(1) as engine:
            status = Sweep(specs(24), store, engine, work=slow).run(lambda now: elsewhere.append(now.elsewhere))
        other.join()
        assert (other.exitcode, status.done, status.failures) == (0, 24, [])
        assert done(store) == list(range(24))
        assert sorted(map(int, log.read_text().split())) == list(range(24))
        assert max(elsewhere) >= 1


class TestEndings:
    def test_an_interrupt_ends_the_workers_and_keeps_what_is_finished(self, store: Store) -> None:
        driver = start_driver(store, specs(3), endless, 1)  # it finishes the longest run, 2, and never the next, 1
        until(lambda: done(store) == [2] and (store.directory(specs(3)[1]) / LEASE).exists())
        (worker,) = workers_of(driver.pid or 0)
        os.kill(driver.pid or 0, signal.SIGINT)
        driver.join(30)
        assert driver.exitcode == 1, "KeyboardInterrupt"
        assert not alive(worker)
        assert done(store) == [2]
        with store.lease(specs(3)[1]) as mine:
            assert mine

    def test_workers_die_with_a_driver_that_is_killed(self, store: Store) -> None:
        driver = start_driver(store, specs(3), endless, 2)
        until(lambda: len(workers_of(driver.pid or 0)) == 2)
        workers = workers_of(driver.pid or 0)
        os.kill(driver.pid or 0, signal.SIGKILL)  # they have only begun to start, and must still notice
        driver.join()
        until(lambda: not any(map(alive, workers)), seconds=30)
        with store.lease(specs(3)[1]) as mine:
            assert mine
