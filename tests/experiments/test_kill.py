"""Kill -9 at random moments: nothing is lost or done twice, and results are bit-identical to undisturbed runs."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from relive._util.versions import versions
from relive.data.datasets.dataset import Dataset
from relive.experiments.checkpoint import FileCheckpoint
from relive.experiments.engines import LocalEngine
from relive.experiments.execute import run
from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec
from relive.experiments.store import CHECKPOINT, Store
from relive.experiments.sweep import Sweep
from tests.experiments.small import FORKS, alive, bits, real, small, start_driver, until, workers_of

KILLS = 20
CELLS = [
    ("split", "class", "rtf"),
    ("split", "task", "dgr"),
    ("permuted", "task", "dgr-distill"),
    ("split", "class", "si"),
    ("split", "domain", "lwf"),
    ("split", "task", "xdg"),
    ("permuted", "domain", "ewc"),
    ("split", "class", "online-ewc"),
    ("split", "class", "offline"),
]


def undisturbed(root: Path, specs: list[RunSpec], data: Dataset) -> Store:
    """Do the runs one after another in this process, without checkpoints."""
    store = Store(root)
    for spec in specs:
        outcome = run(spec, data=data)
        store.save(outcome.result, outcome.samples)
    return store


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()


class Murder:
    """Sweeps that are killed, and what is known about them."""

    def __init__(self, store: Store, log: Path) -> None:
        self.store, self.log = store, log
        self.rng = random.Random(20)
        self.specs: list[RunSpec] = []
        self.kills = {"driver": 0, "worker": 0}
        log.touch()

    def start(self) -> BaseProcess:
        """Start a driver, with at least four runs to do, and wait until a run begins."""
        while len(self.specs) < len(self.store.scan()[0]) + 4:
            self.specs.append(small(*CELLS[len(self.specs) % len(CELLS)], seed=len(self.specs)))
        before = self.log.read_text().count("begin")
        driver = start_driver(self.store, self.specs, real, 2, self.log)
        until(lambda: self.log.read_text().count("begin") > before or not driver.is_alive())
        return driver

    def strike(self, driver: BaseProcess) -> None:
        """Kill a process at a random moment: the driver one time in five."""
        time.sleep(self.rng.uniform(0, 0.6))
        workers = workers_of(driver.pid or 0)
        if sum(self.kills.values()) % 5 == 4:
            self.kills["driver"] += 1
            kill(driver)
            until(lambda: not any(map(alive, workers)))
        elif workers:
            self.kills["worker"] += 1
            os.kill(self.rng.choice(workers), signal.SIGKILL)

    def finish(self) -> None:
        """Let a driver finish; a run that was killed twice under one driver needs another."""
        for _ in range(2):
            driver = start_driver(self.store, self.specs, real, 2, self.log)
            driver.join()
            if driver.exitcode == 0:
                return
        raise AssertionError("the sweep does not end well")


def test_a_sweep_that_is_killed_twenty_times(tmp_path: Path, digits: Dataset) -> None:
    murder = Murder(Store(tmp_path / "killed"), tmp_path / "log")
    while sum(murder.kills.values()) < KILLS:
        driver = murder.start()
        while driver.is_alive() and sum(murder.kills.values()) < KILLS:
            murder.strike(driver)
        if driver.is_alive():
            kill(driver)
    murder.finish()

    begun = murder.log.read_text().splitlines()
    assert [line for line in begun if not line.startswith("begin")] == [], "twice at a time, or done before"
    victims = murder.kills["worker"] + 2 * (murder.kills["driver"] + 1)
    assert len(murder.specs) <= len(begun) <= len(murder.specs) + victims, "only what was killed began again"
    assert min(murder.kills.values()) >= 3
    assert bits(murder.store) == bits(undisturbed(tmp_path / "undisturbed", murder.specs, digits))
    left = {path.name for path in murder.store.root.glob("*/*")}
    assert left <= {"spec.json", "result.json", "samples.npz", ".lease"}, "no checkpoints, nothing half-written"


class Told(Observer):
    """Records the tasks that begin."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def task_started(self, task: int) -> None:
        with self.log.open("a") as file:
            file.write(f"{task}\n")


def run_once(root: Path, spec: RunSpec, log: Path) -> None:
    """Do a run as ``relive run`` does."""
    store = Store(root)
    outcome = run(spec, checkpoint=FileCheckpoint(store, spec, versions()), observer=Told(log))
    store.save(outcome.result, outcome.samples)
    os._exit(0)


@pytest.mark.parametrize("cell", [("split", "task", "dgr"), ("permuted", "class", "ewc")])
def test_a_run_that_is_killed_goes_on_with_the_same_bits(
    cell: tuple[str, str, str], tmp_path: Path, digits: Dataset
) -> None:
    spec = small(*cell)
    log = tmp_path / "log"
    log.touch()
    start = time.perf_counter()
    whole = undisturbed(tmp_path / "undisturbed", [spec], digits)
    seconds = time.perf_counter() - start
    rng = random.Random(7)
    killed = Store(tmp_path / "killed")
    lives = 0
    while killed.load(spec) is None:
        lives += 1
        begun = len(log.read_text())
        process = FORKS.Process(target=run_once, args=(killed.root, spec, log))
        process.start()
        until(lambda: len(log.read_text()) > begun or not process.is_alive())  # noqa: B023
        process.join(None if lives > 6 else rng.uniform(0, seconds / 4))
        kill(process)
    assert bits(killed) == bits(whole)
    tasks = [int(task) for task in log.read_text().split()]
    assert tasks == sorted(tasks), "it never went back to a task that was finished"
    assert lives > 2
    assert len(tasks) > spec.tasks, "it was killed in the middle of a task"


class TestCheckpoint:
    """An untrustworthy checkpoint is not used: the run starts over, and ends bit-identically."""

    @pytest.fixture
    def checkpoint(self, tmp_path: Path, digits: Dataset) -> FileCheckpoint:
        """What is left of a run that was stopped in its second task."""
        spec = small("split", "class", "rtf")
        checkpoint = FileCheckpoint(Store(tmp_path), spec, versions())

        class Stopped(Exception):  # noqa: N818
            pass

        class Stop(Observer):
            def task_started(self, task: int) -> None:
                if task == 1:
                    raise Stopped

        with pytest.raises(Stopped):
            run(spec, data=digits, checkpoint=checkpoint, observer=Stop())
        return checkpoint

    def test_a_whole_one_is_used(self, checkpoint: FileCheckpoint) -> None:
        kept = checkpoint.load()
        assert kept is not None
        assert len(kept[1].matrix) == 1

    def test_a_sweep_goes_on_from_a_whole_one_and_says_so(self, checkpoint: FileCheckpoint) -> None:
        engine = LocalEngine(1)
        notes: list[str] = []
        status = Sweep([checkpoint.spec], checkpoint.store, engine, note=notes.append).run()
        engine.shutdown()
        assert status.done == 1
        assert notes == [f"{checkpoint.spec.name} resumes after task 1 of 5"]

    def test_a_damaged_one_is_not(self, checkpoint: FileCheckpoint) -> None:
        raw = checkpoint.path.read_bytes()
        flipped = bytearray(raw)
        flipped[-100] ^= 1  # one bit of one number
        for broken in (raw[: len(raw) // 2], b"", bytes(flipped), raw.replace(b'"train_seconds', b'"train_secondz')):
            checkpoint.path.write_bytes(broken)
            assert checkpoint.load() is None
        checkpoint.path.write_bytes(raw)
        assert checkpoint.load() is not None

    def test_one_of_another_spec_or_version_is_not(self, checkpoint: FileCheckpoint) -> None:
        other = replace(checkpoint.spec, iters=61)
        path = checkpoint.store.prepare(other) / CHECKPOINT
        path.write_bytes(checkpoint.path.read_bytes())
        assert FileCheckpoint(checkpoint.store, other, versions()).load() is None
        assert FileCheckpoint(checkpoint.store, checkpoint.spec, versions() | {"torch": "9"}).load() is None
