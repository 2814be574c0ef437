"""Where faults are injected: commands and writers, their initial state, and the states they may leave."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import torch

from relive._util.errors import ReliveError
from relive.classifier.history import kept
from relive.classifier.modelfile import load
from relive.cli import main
from relive.data.datasets import files, idx
from relive.experiments import ledger
from relive.experiments.checkpoint import FileCheckpoint
from relive.experiments.engines import InProcess
from relive.experiments.execute import PartialResult
from relive.experiments.spec import RunResult, make_spec
from relive.experiments.store import Store
from relive.experiments.sweep import Sweep
from tests.experiments.small import quick, result_of

M = Path("m.safetensors")
SPEC = make_spec("split", "class", "none", dataset="digits", iters=2, hidden=4, latent=2)
OTHER = make_spec("split", "class", "none", dataset="digits", iters=3, hidden=4, latent=2)
OLD, NEW = "old", "new"


def relive(*words: str) -> int:
    """Run a command in this process, and return its exit code."""
    sys.argv = ["relive", *words]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return 130
    return 0


def write_table(path: Path, *labels: str) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "label"])
        for k, label in enumerate(labels * 6):
            writer.writerow([*(rng.random(3) + k % len(labels)).round(3), label])


class Operation(ABC):
    """Something that writes. All of it happens in the working directory.

    ``find`` creates the initial state, ``act`` is where faults are injected and returns an exit code, ``state`` returns
    whether the files are the old or the new ones, and raises if they are neither. ``go_on`` is the next command, which
    starts from either state and leads to ``NEW``.
    """

    name: str
    checked = True  # whether what it writes is read back before it replaces the old file

    @abstractmethod
    def find(self) -> None: ...

    @abstractmethod
    def act(self) -> int: ...

    @abstractmethod
    def state(self) -> str: ...

    def go_on(self) -> int:
        return self.act()

    def left(self) -> list[str]:
        """Return leftovers, after acting again without a fault."""
        return [str(path) for path in Path().rglob("*.tmp")]


class FirstFit(Operation):
    """``relive fit`` of a new model."""

    name = "fit, new model"

    def find(self) -> None:
        write_table(Path("a.csv"), "x", "y")

    def act(self) -> int:
        return relive("fit", str(M), "a.csv", "--method", "ncm", "--again")

    def state(self) -> str:
        return NEW if M.exists() and load(M).classes_.tolist() == ["x", "y"] else OLD


class Fit(Operation):
    """``relive fit`` of one more task, which keeps two earlier versions."""

    name = "fit, one more task"

    def find(self) -> None:
        write_table(Path("a.csv"), "x", "y")
        write_table(Path("b.csv"), "z")
        for _ in range(3):
            assert relive("fit", str(M), "a.csv", "--method", "ncm", "--again", "--keep", "2") == 0
        assert len(kept(M)) == 2

    def act(self) -> int:
        return relive("fit", str(M), "b.csv", "--again")

    def state(self) -> str:
        versions = [load(version).n_tasks_ for version in kept(M)]
        assert versions == sorted(versions, reverse=True), versions
        assert len(versions) <= 4, versions
        model = load(M)
        assert set(versions) >= {model.n_tasks_ - 1} or model.n_tasks_ == 3, versions
        return NEW if "z" in model.classes_ else OLD

    def left(self) -> list[str]:
        return super().left() + [str(version) for version in kept(M)[2:]]


class Rollback(Fit):
    """``relive rollback``."""

    name = "rollback"

    def find(self) -> None:
        super().find()
        assert relive("fit", str(M), "b.csv") == 0

    def act(self) -> int:
        return relive("rollback", str(M))

    def go_on(self) -> int:
        return self.act() if self.state() == OLD else relive("rename", str(M), "x", "w")

    def state(self) -> str:
        for version in kept(M):
            load(version)
        model = load(M)
        if "z" in model.classes_:
            return OLD
        undone = [load(path) for path in Path().glob(f"{M}.undone*")]
        assert any("z" in version.classes_ for version in undone), "what was rolled back from is kept"
        return NEW


class Forget(Fit):
    """``relive forget`` of a class."""

    name = "forget"

    def act(self) -> int:
        return relive("forget", str(M), "y")

    def go_on(self) -> int:
        return self.act() if self.state() == OLD else relive("rename", str(M), "x", "w")

    def state(self) -> str:
        for version in kept(M):
            load(version)
        return OLD if "y" in load(M).classes_ else NEW


class Result(Operation):
    """A sweep's result, with its lease, its spec and its pictures."""

    name = "a sweep's result"

    def find(self) -> None:
        Store(Path("runs")).save(result_of(OTHER), [])

    def act(self) -> int:
        try:
            status = Sweep([SPEC], Store(Path("runs")), InProcess(), work=quick).run()
        except (ReliveError, OSError):
            return 1
        return int(bool(status.failures))

    def state(self) -> str:
        store = Store(Path("runs"))
        assert store.load(OTHER) == result_of(OTHER)
        found = store.load(SPEC)
        assert found is None or found.average_accuracy == result_of(SPEC).average_accuracy
        return OLD if found is None else NEW


class Checkpoint(Operation):
    """The state of a run after a task, replacing the one after the task before."""

    name = "checkpoint"

    def _checkpoint(self) -> FileCheckpoint:
        return FileCheckpoint(Store(Path("runs")), SPEC, {"torch": "1"})

    def _save(self, done: int) -> None:
        progress = PartialResult([[0.5] * SPEC.tasks] * done, [(0, 1, [0.5])], 1.0, 1.0)
        self._checkpoint().save({"a": torch.full((1000,), float(done))}, progress)

    def find(self) -> None:
        Store(Path("runs")).prepare(SPEC)
        self._save(1)

    def act(self) -> int:
        try:
            Store(Path("runs")).tidy(SPEC)
            self._save(2)
        except (ReliveError, OSError):
            return 1
        return 0

    def state(self) -> str:
        kept = self._checkpoint().load()
        assert kept is not None, "one or the other is there"
        tensors, progress = kept
        assert bool((tensors["a"] == len(progress.matrix)).all())
        return NEW if len(progress.matrix) == 2 else OLD


class Ledger(Operation):
    """``relive collect`` into a ledger that has runs."""

    name = "ledger"

    def find(self) -> None:
        ledger.add(Path("ledger"), [result_of(OTHER)], {f"{OTHER.name}/task0": np.zeros((2, 4, 4), np.uint8)})
        Store(Path("runs")).save(result_of(SPEC), [np.ones((2, 4, 4), np.uint8)])

    def act(self) -> int:
        return relive("collect", "runs", "--into", "ledger", "--samples")

    def state(self) -> str:
        found = ledger.results(Path("ledger"))
        assert all(isinstance(run, RunResult) for run in found.values()), found
        assert found[OTHER.name] == result_of(OTHER)
        assert len(ledger.samples(Path("ledger"), OTHER)) == 1
        return NEW if SPEC.name in found else OLD


class DataCache(Operation):
    """A file of a data set, stored in the cache."""

    name = "data cache"
    raw = idx.to_bytes(np.arange(40, dtype=np.uint8))
    file = files.File("t-ubyte", (40,), hashlib.sha256(raw).hexdigest())

    def find(self) -> None:
        Path("cache").mkdir()

    def act(self) -> int:
        try:
            files.prepare(Path("cache"))
            files.write(Path("cache"), self.file.name, self.raw)
        except (ReliveError, OSError):
            return 1
        return 0

    def state(self) -> str:
        place = files.find(self.file, (Path("cache"),))
        if place is None:
            return OLD
        assert files.read(place, self.file) == self.raw
        return NEW

    def left(self) -> list[str]:
        return []  # what a killed writer left is removed an hour later


OPERATIONS: list[Operation] = [
    FirstFit(),
    Fit(),
    Rollback(),
    Forget(),
    Result(),
    Checkpoint(),
    Ledger(),
    DataCache(),
]


def clear() -> None:
    """Empty the working directory."""
    for path in Path().iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)
