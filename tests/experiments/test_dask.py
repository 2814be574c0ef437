"""Sweeps on a real Dask cluster, a scheduler and workers as processes on loopback, some of which are killed."""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from relive._util.errors import InputError, ReliveError
from relive._util.versions import versions
from relive.experiments import worker
from relive.experiments.dask_engine import TOPIC, DaskEngine
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.store import Store
from relive.experiments.sweep import Status, Sweep
from tests.experiments.small import InProcess, bits, failing, quick, small, specs, until

MINE = """
import numpy as np
import torch
from relive import Method, Protocol
from relive.data.protocols import transformed

class Mine(Method):
    title = "My own {factor}"

    def loss(self, net, batch, rng):
        return {factor} * super().loss(net, batch, rng)

def load():
    x = np.random.default_rng({factor} + 1).normal(size=(60, 6))
    return x, np.arange(60) % 4

def make(shape, hidden, rng):
    return torch.nn.Sequential(torch.nn.Linear(shape[0], hidden), torch.nn.ReLU())

def tasks(data, n_tasks, seed, fidelity):
    return transformed(data, [lambda x, k=k: x.roll(k, 1) for k in range(n_tasks)], [str(k) for k in range(n_tasks)])

ROLLED = Protocol("rolled", tasks, title="Rolled")
"""

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Dask's own sockets


class Cluster:
    """A scheduler, workers by name, and the test's client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.client: Any = None

    def open(self) -> None:
        """Start the scheduler, and connect a client."""
        self.start_scheduler()
        self.client = Client(self.address, set_as_default=False)

    def start_scheduler(self, port: int = 0) -> None:
        """Start it at a port; any free one if that is 0."""
        contact = self.folder / f"scheduler-{port}.json"
        place = ["--port", str(port), "--dashboard-address", "127.0.0.1:0"]
        self._start("scheduler", *place, "--scheduler-file", str(contact))
        until(lambda: contact.exists() and contact.read_text().endswith("}"))
        self.address: str = json.loads(contact.read_text())["address"]

    def _start(self, name: str, *arguments: str, path: str = "") -> None:
        kind = "scheduler" if name == "scheduler" else "worker"
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1"]
        log = (self.folder / f"{name}.log").open("wb")
        found_in = os.pathsep.join([*([path] if path else []), str(Path(__file__).parents[2])])  # the last has tests
        self.processes[name] = subprocess.Popen(
            [*command, *arguments], cwd=self.folder, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": found_in}
        )
        log.close()

    def join(self, name: str, path: str = "", *, nanny: bool = False) -> None:
        """Start a worker."""
        options = ["--name", name, "--nthreads", "1", "--nanny" if nanny else "--no-nanny", "--no-dashboard"]
        self._start(name, self.address, *options, "--local-directory", str(self.folder), path=path)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def workers(self) -> dict[str, str]:
        """Return the address of each worker by its name."""
        workers = self.client.sync(self.client.scheduler.identity)["workers"]
        return {info["name"]: address for address, info in workers.items()}

    def status(self, name: str) -> str:
        """Return a worker's status at the scheduler."""
        workers = self.client.sync(self.client.scheduler.identity)["workers"].values()
        return next((str(info["status"]) for info in workers if info["name"] == name), "")

    def busy(self) -> list[str]:
        """Return the names of the workers that have a run."""
        processing = self.client.processing()
        return [name for name, address in self.workers().items() if processing.get(address)]

    def events(self, kind: str) -> list[str]:
        """Return the events that workers have logged."""
        return [event[kind] for _, event in self.client.get_events(TOPIC) if kind in event]

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()
        gc.collect()  # sockets that Dask has not closed, while warnings about them are ignored


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.open()
        cluster.join("a")
        cluster.join("b")
        until(lambda: len(cluster.workers()) == 2)
        yield cluster
    finally:
        cluster.close()


class TestCluster:
    """In this order: a and b are killed in the first test, c joins late, x without relive, d with another numpy."""

    def test_killed_workers_and_late_ones_lose_nothing(self, cluster: Cluster, tmp_path: Path) -> None:
        cells = [("split", "class", "rtf"), ("split", "class", "si"), ("permuted", "task", "xdg")]
        todo = [small(*cell, seed=seed) for cell in cells for seed in (0, 1)]
        killed: list[str] = []
        notes: list[str] = []

        def watch(status: Status) -> None:
            if not killed and status.progress:
                killed.append(cluster.busy()[0])
                cluster.kill(killed[0])
            elif len(killed) == 1 and status.done:
                killed.append(({"a", "b"} - set(killed)).pop())
                cluster.kill(killed[1])
                cluster.join("c")  # there is no worker now, and runs wait for it

        with DaskEngine(cluster.address) as engine:
            status = Sweep(todo, Store(tmp_path / "dask"), engine, note=notes.append).run(watch)
        assert (status.done, status.failures, sorted(killed)) == (6, [], ["a", "b"])
        assert len([note for note in notes if "has left" in note]) == 2
        assert [path.name for path in (tmp_path / "dask").glob("*/*.safetensors")] == [], "only the driver writes"

        Sweep(todo, Store(tmp_path / "local"), InProcess()).run()
        assert bits(Store(tmp_path / "dask")) == bits(Store(tmp_path / "local"))

    def test_data_reach_a_worker_once(self, cluster: Cluster, tmp_path: Path) -> None:
        job = worker.Job(small("split", "class", "si").to_json(), versions())
        assert len(pickle.dumps(job)) < 3000, "not with the runs"
        for seed in (2, 3):  # nor with each sweep
            with DaskEngine(cluster.address) as engine:
                assert Sweep([small("split", "class", "si", seed)], Store(tmp_path), engine).run().done == 1
        ready = cluster.events("ready")
        assert len(ready) == len(set(ready)) == 3
        (loaded,) = cluster.client.run(_looked_for_data).values()
        assert loaded == (["digits"], 0)

    def test_a_failing_run_is_told_with_its_traceback(self, cluster: Cluster, tmp_path: Path) -> None:
        notes: list[str] = []
        with DaskEngine(cluster.address) as engine:
            status = Sweep(specs(3), Store(tmp_path), engine, work=failing, note=notes.append).run()
        assert (status.done, len(notes)) == (2, 1)
        (failure,) = status.failures
        assert failure.spec == specs(3)[1]
        assert 'in failing\n    raise ValueError("seed 1' in failure.trace

    def test_code_and_data_of_your_own_are_sent(
        self, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Workers have neither the files nor their folder; changed contents are another run."""
        monkeypatch.chdir(tmp_path)
        todo: list[RunSpec] = []
        here = Store(tmp_path / "here")
        for seed, factor in ((0, 1), (0, -1), (1, 1)):  # the last finds workers that have its data already
            Path("mine.py").write_text(MINE.replace("{factor}", str(factor)))
            mine: dict[str, Any] = {"dataset": "mine.py:load", "encoder": "mine.py:make", "tasks": 2, "iters": 20}
            todo.append(make_spec("mine.py:ROLLED", "class", "mine.py:Mine", seed=seed, **mine))
            with DaskEngine(cluster.address) as engine:
                status = Sweep(todo[-1:], Store(tmp_path / "dask"), engine).run()
            assert (status.done, status.failures) == (1, [])
            Sweep(todo[-1:], here, InProcess()).run()
        assert bits(Store(tmp_path / "dask")) == bits(here)
        first, second, _ = (here.load(spec) for spec in todo)
        assert first is not None
        assert second is not None
        assert (first.shown["title"], second.shown["title"]) == ("My own 1", "My own -1")
        assert first.curve != second.curve

    def test_a_worker_without_a_package_that_a_run_needs_is_refused(
        self, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "my_package.py").write_text(MINE.replace("{factor}", "1"))
        monkeypatch.syspath_prepend(tmp_path)
        spec = make_spec("split", "class", "my_package:Mine", dataset="digits")
        with (
            DaskEngine(cluster.address) as engine,
            pytest.raises(InputError, match=r"worker tcp.* has my_package missing \(driver: .{12}\)"),
        ):
            Sweep([spec], Store(tmp_path / "runs"), engine).run()
        assert Store(tmp_path / "runs").scan() == ([], []), "before anything ran"

    def test_a_stopped_sweep_stops_its_runs(self, cluster: Cluster, tmp_path: Path) -> None:
        def watch(status: Status) -> None:
            if status.progress:
                raise KeyboardInterrupt

        endless = replace(small("split", "class", "none"), iters=10_000_000)
        with DaskEngine(cluster.address) as engine, pytest.raises(KeyboardInterrupt):
            Sweep([endless], Store(tmp_path), engine).run(watch)
        until(lambda: list(cluster.client.run(_threads_at_work).values()) == [0], seconds=20)
        with Store(tmp_path).lease(endless) as mine:
            assert mine

    def test_a_worker_without_relive_is_left_alone(self, cluster: Cluster, tmp_path: Path) -> None:
        """It cannot unpickle the setup sent to it, and its nanny keeps it there, closing for ever."""
        broken = tmp_path / "path" / "relive"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise ImportError('no relive here')")
        cluster.join("x", path=str(broken.parent), nanny=True)
        until(lambda: cluster.status("x").startswith("clos"))
        notes: list[str] = []
        with DaskEngine(cluster.address) as engine:
            status = Sweep(specs(2), Store(tmp_path / "runs"), engine, work=quick, note=notes.append).run()
        assert status.done == 2
        assert [note for note in notes if "it is closing, perhaps because it has no relive" in note]
        cluster.kill("x")
        until(lambda: "x" not in cluster.workers())

    def test_other_versions_are_refused_by_name(self, cluster: Cluster, tmp_path: Path) -> None:
        other = tmp_path / "numpy-0.0.1.dist-info"
        other.mkdir()
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n")
        with DaskEngine(cluster.address) as engine:
            engine.prepare(specs(1), versions(), None)
            cluster.join("d", path=str(tmp_path))
            until(lambda: len(cluster.workers()) == 2 and cluster.events("refused"))
            late = cluster.workers()["d"]
            refusal = f"worker {late} is not used: it has numpy 0.0.1 (driver: {versions()['numpy']})"
            assert (set(cluster.events("refused")), engine.notes()) == ({refusal}, [refusal])
            assert engine.slots() == 1, "c; d has no permission"
        engine = DaskEngine(cluster.address)
        with pytest.raises(InputError, match=rf"worker {late} has numpy 0\.0\.1 \(driver: "):
            Sweep(specs(2), Store(tmp_path / "runs"), engine, work=quick).run()
        assert Store(tmp_path / "runs").scan() == ([], []), "before anything ran"


def _looked_for_data() -> tuple[list[str], int]:
    """Return the data sets that this process was sent, and how many it has looked up itself."""
    return sorted(name for name, _ in worker._Process.data), worker._load.cache_info().misses


def _threads_at_work(dask_worker: Any) -> int:
    return len(dask_worker.active_threads)


def test_a_scheduler_that_is_lost_is_said_clearly_and_by_us_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.open()
        with DaskEngine(cluster.address) as engine:
            register = engine._client.register_plugin

            def killed_meanwhile(*args: Any, **kwargs: Any) -> None:
                cluster.kill("scheduler")
                register(*args, **kwargs)

            monkeypatch.setattr(engine._client, "register_plugin", killed_meanwhile)
            with pytest.raises(ReliveError, match=rf"lost the Dask scheduler at {cluster.address}: .*resumes"):
                Sweep(specs(1), Store(tmp_path / "runs"), engine, work=quick).run()
    finally:
        cluster.close()
    assert capfd.readouterr().err == ""


RECONNECTING = """
import sys
import time
from relive._util.errors import ReliveError
from relive._util.versions import versions
from relive.experiments import dask_engine
from tests.experiments.small import specs

dask_engine.CONNECT_TIMEOUT = 60  # the new scheduler may be slow to start
engine = dask_engine.DaskEngine(sys.argv[1])
engine.prepare(specs(1), versions(), None)
print(engine.slots(), flush=True)
rpc, engine._client.scheduler = engine._client.scheduler, None  # as Dask leaves it when it gives up
try:
    engine.slots()
except ReliveError as error:
    print(error, flush=True)
engine._client.scheduler = rpc
sys.stdin.readline()
while True:
    try:
        engine.slots()
    except ReliveError as error:
        print(error, flush=True)
        break
    time.sleep(0.1)
"""


def test_a_scheduler_that_was_started_again_is_not_waited_for(tmp_path: Path) -> None:
    """Dask's client reconnects to the new one, which does not know the runs that the old one was given.

    It leaves sockets open when it does: hence a separate process.
    """
    cluster = Cluster(tmp_path)
    driver = None
    try:
        cluster.start_scheduler()
        driver = subprocess.Popen(
            [sys.executable, "-c", RECONNECTING, cluster.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == "0\n"
        assert driver.stdout.readline().startswith("lost the Dask scheduler")
        cluster.kill("scheduler")
        cluster.start_scheduler(int(cluster.address.rpartition(":")[2]))
        said, _ = driver.communicate("go on\n", timeout=120)
        assert re.search(r"was restarted and has lost these runs.*resumes", said)
    finally:
        if driver is not None:
            driver.kill()
            driver.communicate()
        cluster.close()


def test_no_scheduler_is_said_clearly_and_soon() -> None:
    start = time.monotonic()
    with pytest.raises(InputError, match=r"no Dask scheduler responds at tcp://127\.0\.0\.1:9"):
        DaskEngine("tcp://127.0.0.1:9")
    assert time.monotonic() - start < 15
    with pytest.raises(InputError, match="no Dask scheduler responds at nonsense://here"):
        DaskEngine("nonsense://here")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "relive.experiments.dask_engine")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'relive\[dask\]'"):
        import_module("relive.experiments.dask_engine")
