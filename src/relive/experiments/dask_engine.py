"""Runs on a Dask cluster: the same executor interface, with the data sets sent to each worker once."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from relive._util.errors import InputError, ReliveError
from relive._util.registry import digest_of_address
from relive._util.versions import versions as my_versions
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data
from relive.experiments.engines import Engine, drained
from relive.experiments.spec import RunSpec
from relive.experiments.worker import differences, provide_data, set_reporting

try:
    from distributed import Client, Status, Worker, WorkerPlugin
    from distributed.client import ClosedClientError
    from distributed.versions import VersionMismatchWarning
except ImportError as error:
    raise InputError(f"the Dask engine is not installed ({error}): pip install 'relive[dask]'") from error

P = ParamSpec("P")
T = TypeVar("T")

TOPIC = "relive"  # of the workers' events
CONNECT_TIMEOUT = 5  # seconds within which a scheduler must respond


class Abandoned(ReliveError):  # noqa: N818
    """Nobody waits for this run any more: its sweep was stopped."""


def _versions_here(names: list[str]) -> dict[str, str]:
    """Return this process's versions; for other packages, a digest of the module with that name."""
    mine = my_versions()
    return mine | {name: _digest(name) for name in names if name not in mine}


def _digest(module: str) -> str:
    try:
        return digest_of_address(f"{module}:")
    except InputError:
        return "missing"


@dataclass
class WorkerSetup(WorkerPlugin):
    """What every worker gets once, whenever it joins: the data sets, and permission to do runs.

    The permission is a Dask resource that runs require: a worker that differs from the driver never gets it, and the
    others get it once, since a run needs a whole process (the number of torch threads is set per process).

    Parameters
    ----------
    versions
        The driver's, and digests of the modules of installed packages that the runs need.
    data
        The data sets.
    """

    versions: dict[str, str]
    data: list[Dataset] = field(repr=False)
    idempotent = True  # a second sweep of the same kind finds it in place

    @property
    def name(self) -> str:
        """The name of the plugin, and of the resource: the same only for the same setup."""
        identity = [self.versions, [(data.name, data.digest) for data in self.data]]
        return f"relive-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]}"

    async def setup(self, worker: Worker) -> None:
        differ = differences(_versions_here(list(self.versions)), self.versions)
        if differ:
            refusal = f"worker {worker.address} is not used: it has {differ}"
            worker.log_event(TOPIC, {"refused": refusal, "setup": self.name})
            return
        for data in self.data:
            provide_data(data)
        set_reporting(_Report(worker))
        await worker.set_resources(**{self.name: 1})
        # Runs that have lost their last worker wait for one to join, and it had no permission when it did:
        worker.status = Status.paused
        worker.status = Status.running
        worker.log_event(TOPIC, {"ready": worker.address, "setup": self.name})


@dataclass(frozen=True)
class _Report:
    """Sends a run's progress to the driver, and stops the run if the driver is gone."""

    worker: Worker

    def __call__(self, name: str, task: int, iteration: int) -> None:
        state = self.worker.state.tasks.get(self.worker.get_current_task())
        if state is None or state.state == "cancelled":
            raise Abandoned(f"{name}: its sweep was stopped")
        self.worker.log_event(TOPIC, {"run": name, "task": task, "iteration": iteration})


class DaskEngine(Engine):
    """The workers of a Dask cluster; only the driver writes to the store.

    If a worker dies, Dask repeats its runs on another one; workers may join at any time.

    Parameters
    ----------
    scheduler
        The address of its scheduler, such as ``tcp://127.0.0.1:8786``.
    """

    shares_files = False

    def __init__(self, scheduler: str) -> None:
        if "://" not in scheduler:
            raise InputError(f"scheduler = {scheduler!r}: give the full address, e.g. tcp://127.0.0.1:8786")
        self._address = scheduler
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # prepare() reports it better
                self._client: Any = Client(scheduler, timeout=CONNECT_TIMEOUT, name="relive", set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler responds at {scheduler}: {error}") from error
        self._executor = self._client.get_executor()
        self._scheduler = ""  # its id, once runs are prepared: another may be started at the same address
        self._resource = ""
        self._progress: dict[str, tuple[int, int]] = {}
        self._notes: deque[str] = deque()
        self._ready: set[str] = set()
        self._closing: set[str] = set()

    def prepare(self, specs: Sequence[RunSpec], versions: dict[str, str], data_dir: str | None) -> None:
        """Refuse workers that differ from the driver, by name, and send the others the data sets."""
        modules = {home.rpartition(":")[0] for spec in specs for home in spec.homes if not home.startswith("relive.")}
        versions = versions | {name: _digest(name) for name in sorted(modules) if not name.endswith(".py")}
        with self._reaching():
            self._refuse_others(versions)
        names = sorted({spec.dataset for spec in specs})
        setup = WorkerSetup(versions, [load_data(name, data_dir, quiet=True) for name in names])
        self._resource = setup.name
        self._executor = self._client.get_executor(pure=False, resources={setup.name: 1})
        with self._reaching():
            self._scheduler = self._identity()["id"]
            self._client.subscribe_topic(TOPIC, self._on_event)
            self._client.register_plugin(setup, name=setup.name)

    def _refuse_others(self, versions: dict[str, str]) -> None:
        refused = []
        staying = [address for address, worker in self._workers().items() if not worker["status"].startswith("clos")]
        answers = (
            self._client.run(_versions_here, list(versions), workers=staying, on_error="return") if staying else {}
        )
        for address, answer in answers.items():
            differ = differences(answer, versions) if isinstance(answer, dict) else f"no working relive: {answer!r}"
            if differ:
                refused.append(f"worker {address} has {differ}")
        if refused:
            raise InputError(
                "results must not depend on where they were computed, but these differ from the driver:\n  "
                + "\n  ".join(refused)
                + "\nInstall the driver's versions there, or stop these workers"
            )

    def _workers(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's current workers."""
        with self._reaching():
            identity = self._identity()
        if self._scheduler and identity["id"] != self._scheduler:  # the client reconnects, but its runs are lost
            raise ReliveError(
                f"the Dask scheduler at {self._address} was restarted and has lost these runs. Finished ones "
                "are kept; the same command resumes"
            )
        workers: dict[str, dict[str, Any]] = identity["workers"]
        return workers

    def _identity(self) -> dict[str, Any]:
        """Return the scheduler's description of itself."""
        scheduler = self._client.scheduler
        if scheduler is None:
            raise ClosedClientError("its client has given up connecting")
        identity: dict[str, Any] = self._client.sync(scheduler.identity)
        return identity

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Report clearly that the scheduler is gone, if an operation fails for that reason."""
        try:
            yield
        except (OSError, ClosedClientError) as error:
            raise ReliveError(
                f"lost the Dask scheduler at {self._address}: {error}. Finished runs are kept; the same command resumes"
            ) from error

    def slots(self) -> int:
        workers = self._workers()
        ready = {
            address: worker["nthreads"] for address, worker in workers.items() if self._resource in worker["resources"]
        }
        for address in self._ready - ready.keys():
            self._notes.append(f"worker {address} has left; if it had a run, another worker repeats it")
        for address in ready.keys() - self._ready:
            if ready[address] > 1:
                self._notes.append(
                    f"worker {address} has {ready[address]} threads but does one run at a time: "
                    "start more workers with --nthreads 1"
                )
        for address in workers.keys() - ready.keys() - self._closing:
            if workers[address]["status"].startswith("clos"):
                self._notes.append(f"worker {address} is not used: it is closing, perhaps because it has no relive")
                self._closing.add(address)
        self._ready = set(ready)
        return len(ready)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return future

    def progress(self) -> dict[str, tuple[int, int]]:
        return dict(self._progress)

    def notes(self) -> list[str]:
        return drained(self._notes)

    def _on_event(self, event: tuple[float, dict[str, Any]]) -> None:
        """Handle a worker's event; called in the client's thread."""
        message = event[1]
        if "run" in message:
            self._progress[message["run"]] = (message["task"], message["iteration"])
        elif "refused" in message and message["setup"] == self._resource:
            self._notes.append(message["refused"])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster running; with ``wait=False`` our runs on it are abandoned."""
        with suppress(ClosedClientError):  # the scheduler is gone, and our runs with it
            self._executor.shutdown(wait=wait)
        self._client.close()
