"""Looking into a run's snapshots: what they misclassify, what they replay, what they predict for a drawing."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from relive._util.errors import InputError
from relive._util.fidelity import Fidelity
from relive.core.scenarios import SCENARIOS
from relive.experiments.spec import RunSpec
from relive.studio.commands import as_command
from relive.studio.drawing import prepared
from relive.studio.programs import Step
from relive.studio.snapshots import snapshot_path, snapshots_in

if TYPE_CHECKING:
    from relive.classifier.estimator import ContinualClassifier
    from relive.data.tasks import Task
    from relive.inference.opening import Model

Array = npt.NDArray[Any]
SHOWN = 24  # misclassified samples
REPLAYED, BY_CLASS = 600, 14  # samples to generate, and how many of each class are shown
ON_MAP, FOR_AXES = 250, 1500  # dots of each kind, and real samples that decide the map's axes
NO_SNAPSHOT = "this run has no snapshot after that task: run it with --snapshots, as the form here does"


@dataclass(frozen=True)
class Seen:
    """A run to look into: its spec and its directory."""

    spec: RunSpec
    directory: Path


class Looker:
    """Answers questions about snapshots, one at a time, and caches what it has read.

    Parameters
    ----------
    data_dir
        Where data sets are.
    """

    def __init__(self, data_dir: Path | None) -> None:
        self._lock = threading.Lock()
        self._tasks = lru_cache(4)(partial(_tasks, data_dir))
        self._axes = lru_cache(4)(lambda *key: _axes(self._tasks(*key)))
        self._models = lru_cache(24)(_model)
        self._full_models = lru_cache(24)(_full_model)

    async def answer(self, question: Callable[..., dict[str, Any]], *about: object) -> dict[str, Any]:
        """Answer a question, a method of this object, in another thread, one at a time."""

        def alone() -> dict[str, Any]:
            with self._lock:
                return question(*about)

        return await asyncio.to_thread(alone)

    def _at(self, run: Seen, task: int) -> tuple[Path, int]:
        path = snapshot_path(run.directory, task)
        if task not in snapshots_in(run.directory):
            raise InputError(NO_SNAPSHOT)
        return path, path.stat().st_mtime_ns

    def wrong(self, run: Seen, after: int, on: int) -> dict[str, Any]:
        """Return the test samples of a task that a run misclassifies after another, and its predictions."""
        model, tasks = self._models(*self._at(run, after)), self._tasks(*_key(run.spec))
        if not 0 <= on < len(tasks):
            raise InputError(f"there is no task {on + 1}: the run has {len(tasks)}")
        task, scenario = tasks[on], SCENARIOS[run.spec.scenario]
        if scenario.needs_task and on > after:
            raise InputError("this task was not learned yet: in Task-IL choose one that was")
        x = task.test.inputs(slice(None)).numpy()
        truth = np.array(_names(task, run.spec))[task.test.labels.numpy()]
        probabilities = model.predict_proba(x, on if scenario.needs_task else None)
        said, sure = model.classes_[probabilities.argmax(1)], probabilities.max(1)
        rows = np.flatnonzero(said != truth)
        return {
            "n": len(x),
            "wrong": len(rows),
            "shape": list(task.shape) if task.is_picture else None,
            "samples": [
                {
                    "pixels": _pixels(x[i]) if task.is_picture else None,
                    "truth": str(truth[i]),
                    "said": str(said[i]),
                    "p": float(sure[i]),
                }
                for i in rows[np.argsort(-sure[rows])][:SHOWN]
            ],
        }

    def dreams(self, run: Seen, after: int, on: int) -> dict[str, Any]:
        """Return what a run would replay after a task, by class, and a map of it next to real samples.

        In Task-IL a replayed sample has a label for each task: ``on`` is the task whose classes are shown.
        """
        scenario, tasks = SCENARIOS[run.spec.scenario], self._tasks(*_key(run.spec))
        if scenario.needs_task and on > after:
            raise InputError(f"task {on + 1} was not learned yet: choose one that was")
        model, given = self._full_models(*self._at(run, after)), on if scenario.needs_task else None
        x, said = model.replay(REPLAYED, given)
        sure = model.predict_proba(x, given).max(1)
        shape = tasks[0].shape if tasks[0].is_picture else None
        classes = []
        for label in tasks[on].names if scenario.needs_task else model.labels_.tolist():
            rows = np.flatnonzero(said == label)
            pictures = [{"pixels": _pixels(x[i]), "p": float(sure[i])} for i in rows[:BY_CLASS]] if shape else []
            classes.append({"label": str(label), "share": len(rows) / max(1, len(said)), "pictures": pictures})
        path = str(snapshot_path(run.directory, after))
        return {
            "shape": shape,
            "task": given,
            "classes": classes,
            "map": self._map(run, after, x, said),
            "command": as_command(["inspect", path, "--picture", "dreams.png"]),
            "python": Step(path).replay(REPLAYED, given),
        }

    def _map(self, run: Seen, after: int, x: Array, said: Array) -> dict[str, Any]:
        """Return replayed samples, and real ones of the tasks so far, in two dimensions."""
        mean, axes = self._axes(*_key(run.spec))
        tasks, rng = self._tasks(*_key(run.spec))[: after + 1], np.random.default_rng(0)
        real, labels = [], []
        for task in tasks:
            rows = rng.permutation(len(task.test))[: ON_MAP // len(tasks)]
            real.append(task.test.inputs(slice(None)).numpy()[rows])
            names = _names(task, run.spec)
            labels += [names[c] for c in task.test.labels.numpy()[rows]]
        return {
            "real": ((np.concatenate(real) - mean) @ axes).round(3).tolist(),
            "real_labels": labels,
            "dreamt": ((x[:ON_MAP] - mean) @ axes).round(3).tolist(),
            "dreamt_labels": [str(label) for label in said[:ON_MAP]],
        }

    def draw(self, pixels: Array, runs: Sequence[Seen], on: int) -> dict[str, Any]:
        """Return what each snapshot of some runs predicts for a drawing, (side, side) bytes, and its reconstruction.

        In Task-IL the task is given with the drawing: ``on``, among whose classes the snapshot decides.
        """
        shapes = {self._tasks(*_key(run.spec))[0].shape for run in runs}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise InputError("a drawing is a grey picture: choose runs on grey pictures of the same size")
        shape = shapes.pop()
        x = prepared(pixels, (shape[0], shape[1]))
        return {"shape": shape, "seen": _pixels(x), "runs": [self._answers(run, x.reshape(1, -1), on) for run in runs]}

    def _answers(self, run: Seen, x: Array, on: int) -> list[dict[str, Any]]:
        tasks, steps = self._tasks(*_key(run.spec)), []
        needs_task = SCENARIOS[run.spec.scenario].needs_task
        if not 0 <= on < len(tasks):
            raise InputError(f"there is no task {on + 1}: the run has {len(tasks)}")
        for task in snapshots_in(run.directory):
            place = self._at(run, task)
            model = self._models(*place)
            again = _drawn_again(self._full_models(*place), x)
            known = not needs_task or on <= task
            p = model.predict_proba(x, on if needs_task else None)[0].round(5).tolist() if known else []
            said = dict(zip(map(str, model.classes_.tolist()), p, strict=True)) if known else {}
            classes = list(tasks[on].names) if needs_task else list(said)
            steps.append(
                {
                    "task": task,
                    "classes": classes,
                    "known": [c for c in map(str, model.labels_.tolist()) if c in classes] if known else [],
                    "p": [said.get(c, 0.0) for c in classes],
                    "again": None if again is None else _pixels(again),
                }
            )
        if not steps:
            raise InputError(NO_SNAPSHOT)
        return steps


def _key(spec: RunSpec) -> tuple[str, str, int, int, Fidelity]:
    return spec.protocol, spec.dataset, spec.tasks, spec.seed, spec.fidelity


def _names(task: Task, spec: RunSpec) -> list[str]:
    """Return a snapshot's labels for a task's classes: their positions where tasks share the output units."""
    return [str(k) for k in range(len(task.names))] if SCENARIOS[spec.scenario].shares_units else list(task.names)


def _tasks(
    data_dir: Path | None, protocol: str, dataset: str, n_tasks: int, seed: int, fidelity: Fidelity
) -> list[Task]:
    from relive.data.datasets.sources import load_data
    from relive.data.protocols import tasks_of

    return tasks_of(protocol, load_data(dataset, data_dir, quiet=True), n_tasks, seed, fidelity)


def _axes(tasks: list[Task]) -> tuple[Array, Array]:
    """Return the mean of test samples, and their two principal axes, (inputs, 2)."""
    each = FOR_AXES // len(tasks)
    x = np.concatenate([task.test.inputs(slice(0, each)).numpy() for task in tasks]).astype(np.float64)
    mean = x.mean(0)
    _, _, v = np.linalg.svd(x - mean, full_matrices=False)
    return mean, v[:2].T


def _model(path: Path, changed: int) -> Model:
    from relive.inference.opening import opened

    return opened(path, allow_code=False)[1]


def _full_model(path: Path, changed: int) -> ContinualClassifier:
    from relive.classifier.modelfile import load

    return load(path)


def _drawn_again(model: ContinualClassifier, x: Array) -> Array | None:
    """Return an input as the network's feedback connections reconstruct it; None if it has none."""
    import torch

    from relive._util.seeds import stream
    from relive.networks.models import ReconstructingClassifier

    net = model.learner_.net
    if not isinstance(net, ReconstructingClassifier):
        return None
    with torch.no_grad():
        rng = stream(0, "drawing")
        answers = net.answer(model.features_.inputs(x), rng)
        again: Array = net.likelihood.draw(answers.reconstruction, rng)[0].numpy()
    return again


def _pixels(x: Array) -> str:
    """Return values in [0, 1] as bytes in base64."""
    return base64.b64encode((np.clip(x, 0, 1) * 255).round().astype(np.uint8).tobytes()).decode()
