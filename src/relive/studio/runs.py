"""The runs of a store as rows of a table, scanned repeatedly: only what changed is read."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from relive._util.errors import ReliveError
from relive._util.registry import short_name
from relive.data.catalogue import DATASETS
from relive.experiments import ledger
from relive.experiments.journal import Progress, read_progress
from relive.experiments.resultfile import read_result
from relive.experiments.spec import RunResult, RunSpec
from relive.experiments.store import CHECKPOINT, PROGRESS, RESULT, SAMPLES, SPEC, Store
from relive.methods import METHODS
from relive.paper.published import PUBLISHED
from relive.paper.tuned import as_in_paper
from relive.report import style
from relive.studio.snapshots import snapshots_in

AT_ONCE = 400  # results that one scan reads, so that the first rows appear soon
RECHECK = 20.0  # seconds after which finished runs are scanned again: they may have been repeated
Row = dict[str, Any]


@dataclass
class News:
    """What one scan found: new or changed rows, progress of running runs, and names of deleted runs."""

    rows: dict[str, Row] = field(default_factory=dict)
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    more: bool = False  # whether some runs are not read yet


class Runs:
    """Follows the runs of a store.

    Parameters
    ----------
    store
        Where runs are.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.rows: dict[str, Row] = {}
        self.live: dict[str, dict[str, Any]] = {}
        self._seen: dict[str, tuple[int, ...]] = {}
        self._settled: set[str] = set()  # finished, and read
        self._checked = 0.0
        self._ledgers_read = False

    def directory(self, name: str) -> Path | None:
        """Return the directory of a known run; None for any other name."""
        for root in (self.store.root, *self.store.also):
            if name in self.rows and (root / name).is_dir():
                return root / name
        return None

    def spec(self, name: str) -> RunSpec | None:
        """Return the spec of a known run."""
        directory = self.directory(name)
        return _spec(directory) if directory is not None else None

    def result(self, name: str) -> RunResult | None:
        """Return the result of a known run that is done."""
        if name not in self.rows or self.rows[name]["state"] != "done":
            return None
        for root in (self.store.root, *self.store.also):
            if (root / name / RESULT).exists():
                return read_result(root / name / RESULT)
            found = ledger.results(root).get(name)
            if isinstance(found, RunResult):
                return found
        return None

    def look(self) -> News:
        """Return what changed since the last scan."""
        news = News()
        if not self._ledgers_read:
            self._read_ledgers(news)
            self._ledgers_read = True
        if time.monotonic() - self._checked > RECHECK:
            self._checked = time.monotonic()
            self._settled = set()
        names = self._names()
        for name in [known for known, row in self.rows.items() if row["place"] == "here" and known not in names]:
            del self.rows[name]
            self._seen.pop(name, None)
            self._settled.discard(name)
            self.live.pop(name, None)
            news.gone.append(name)
        read = 0
        for name in sorted(names - self._settled):
            if read >= AT_ONCE:
                news.more = True
                break
            read += self._look_at(name, news)
        return news

    def _names(self) -> set[str]:
        try:
            with os.scandir(self.store.root) as entries:
                return {entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()}
        except OSError:  # there is no directory yet
            return set()

    def _look_at(self, name: str, news: News) -> bool:
        """Read a run's directory if its files changed; return whether it had to be read."""
        directory = self.store.root / name
        files = tuple(_changed(directory / file) for file in (RESULT, PROGRESS, SPEC, CHECKPOINT))
        done, under_way = files[0], files[1]
        progress = read_progress(directory) if under_way else None
        alive = progress is not None and progress.is_alive
        now = (*files, int(alive))
        if done and not alive:
            self._settled.add(name)
        if self._seen.get(name) == now:
            return False
        self._seen[name] = now
        row = _row(directory, progress, alive)
        if row is None:
            return True
        self.live.pop(name, None)
        if progress is not None and row["state"] != "done":
            self.live[name] = news.live[name] = {k: v for k, v in asdict(progress).items() if k not in ("pid", "host")}
        if self.rows.get(name) != row:
            self.rows[name] = news.rows[name] = row
        return True

    def _read_ledgers(self, news: News) -> None:
        """Read the ledgers and the read-only directories, which do not change."""
        for root in (*self.store.also, self.store.root):
            for name, found in ledger.results(root).items():
                if isinstance(found, RunResult):
                    self.rows[name] = news.rows[name] = _done(found, 0.0, []) | {"place": "ledger"}
        for root in self.store.also:
            for path in sorted(root.glob(f"*/{RESULT}")):
                row = _row(path.parent, None, False)
                if row is not None:
                    self.rows[row["name"]] = news.rows[row["name"]] = row | {"place": "elsewhere"}


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _spec(directory: Path) -> RunSpec | None:
    try:
        return RunSpec.from_json(orjson.loads((directory / SPEC).read_bytes()))
    except (OSError, ReliveError, ValueError, TypeError, KeyError):
        return None


def _row(directory: Path, progress: Progress | None, alive: bool) -> Row | None:
    """Return a run's row; None if the directory has no run."""
    if alive and progress is not None:
        spec = _spec(directory)
        return None if spec is None else _facts(spec, directory.name) | {"state": "running", "when": progress.began}
    try:
        result = read_result(directory / RESULT)
        when = (directory / RESULT).stat().st_mtime
        dreams = (directory / SAMPLES).exists()  # written by methods that generate samples
        return _done(result, when, snapshots_in(directory)) | {"name": directory.name, "dreams": dreams}
    except FileNotFoundError:
        pass
    except (ReliveError, OSError) as error:
        spec = _spec(directory)
        facts = {"name": directory.name, "place": "here", "title": directory.name} if spec is None else _facts(spec)
        return facts | {"state": "damaged", "when": 0.0, "error": str(error)}
    spec = _spec(directory)
    if spec is None or (progress is None and not (directory / CHECKPOINT).exists()):
        return None  # it left nothing to show or resume
    when = progress.began if progress is not None else _changed(directory / CHECKPOINT) / 1e9
    return _facts(spec, directory.name) | {"state": "stopped", "when": when}


def _done(result: RunResult, when: float, snapshots: list[int]) -> Row:
    spec = result.spec
    row = _facts(spec)
    if result.shown.get("title"):
        row["title"] = result.shown["title"]
    return row | {
        "state": "done",
        "when": when,
        "accuracy": result.average_accuracy,
        "forgetting": result.forgetting,
        "seconds": result.train_seconds,
        "own": (spec.protocol, spec.scenario, spec.method) not in PUBLISHED or not as_in_paper(spec, spec.settings),
        "snapshots": snapshots,
    }


def _facts(spec: RunSpec, name: str = "") -> Row:
    return {
        "name": name or spec.name,
        "place": "here",
        "method": spec.method,
        "title": style.method_title(spec.method),
        "colour": style.method_colour(spec.method) if spec.method in METHODS else "#5a6675",
        "bound": style.method_bound(spec.method),
        "dataset": short_name(spec.dataset),
        "grey": spec.dataset in DATASETS and len(DATASETS[spec.dataset].shape) == 2,
        "protocol": short_name(spec.protocol),
        "scenario": spec.scenario,
        "seed": spec.seed,
        "tasks": spec.tasks,
        "iters": spec.iters,
        "settings": style.settings_text(spec.settings, spec.method),
        "own": True,
    }
