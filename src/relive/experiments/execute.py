"""From a spec to a result: data set, tasks, learner, accuracy matrix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relive._util.errors import ReliveError
from relive._util.fidelity import AS_RUN
from relive._util.seeds import stream
from relive._util.threads import check_threads, threads
from relive._util.versions import provenance
from relive.core.evaluation import accuracy, average_accuracy, backward_transfer, forgetting
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import load_data
from relive.data.protocols import protocol_of, tasks_of
from relive.data.tasks import Task
from relive.experiments.observer import Observer
from relive.experiments.shown import display_facts
from relive.experiments.spec import PROBE_ROWS, RunResult, RunSpec
from relive.methods import make_method
from relive.networks import GenerativeClassifier

PROBES_PER_TASK = 10
Keep = Callable[[Learner, list[Task], int], object]
"""Called with the learner, all tasks, and the index of the one just learned; it must not change anything."""
N_SAMPLES = 100


@dataclass
class PartialResult:
    """The results of a run so far."""

    matrix: list[list[float]] = field(default_factory=list)
    curve: list[tuple[int, int, list[float]]] = field(default_factory=list)
    train_seconds: float = 0.0
    cpu_seconds: float = 0.0
    samples: list[npt.NDArray[np.uint8]] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """A finished run: its result, and what its generator replays after each task, (100, height, width[, 3]) each.

    There are no samples if the method does not generate, or if inputs are not images.
    """

    result: RunResult
    samples: list[npt.NDArray[np.uint8]]


class Checkpoint:
    """Where a run keeps its state between tasks; this one keeps nothing."""

    def load(self) -> tuple[dict[str, Tensor], PartialResult] | None:
        """Return the state to resume from, if there is one."""
        return None

    def refused(self, error: Exception) -> None:
        """Called if the learner could not resume from the loaded state."""

    def save(self, state: dict[str, Tensor], progress: PartialResult) -> None:
        """Keep the state after a finished task."""


def run(
    spec: RunSpec,
    *,
    data: Dataset | None = None,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    checkpoint: Checkpoint | None = None,
    keep: Keep | None = None,
) -> Outcome:
    """Execute a spec.

    Parameters
    ----------
    spec
        What to do; create one with ``make_spec``.
    data, data_dir
        The data set, if already loaded, or where to look for it first.
    observer
        Gets the progress.
    checkpoint
        Where to keep the state after each task, and to resume from.
    keep
        Called with the learner after each task, to keep parts of it.
    """
    observer, checkpoint = observer or Observer(), checkpoint or Checkpoint()
    data = data or load_data(spec.dataset, data_dir)
    _check(spec, data)
    tasks = tasks_of(spec.protocol, data, spec.tasks, spec.seed, spec.fidelity)
    learner, progress = _learner(spec, data, tasks), PartialResult()
    kept = checkpoint.load()
    if kept is not None:
        try:
            learner.restore(kept[0])
            progress = kept[1]
            observer.resumed(len(progress.matrix))
        except (ReliveError, LookupError, TypeError, ValueError, RuntimeError) as error:
            checkpoint.refused(error)
            learner = _learner(spec, data, tasks)
    with threads(spec.threads):
        for k in range(len(progress.matrix), len(tasks)):
            observer.task_started(k)
            _learn_task(learner, tasks, k, spec, progress, observer)
            progress.matrix.append([accuracy(learner, task, j) for j, task in enumerate(tasks)])
            if tasks[k].is_picture and data.likelihood == "bernoulli":  # standardised numbers are not brightness
                progress.samples += _samples(learner, tasks[k], stream(spec.seed, f"samples after task {k}"))
            if keep is not None:
                keep(learner, tasks, k)
            observer.task_finished(k, progress.matrix[-1])
            if k + 1 < len(tasks):
                checkpoint.save(learner.state(), progress)
    return Outcome(_result(spec, learner, tasks, progress), progress.samples)


def check_runs(specs: Iterable[RunSpec], data_dir: Path | None = None, *, quiet: bool = False) -> dict[str, Dataset]:
    """Refuse impossible runs before anything is written; return their data sets by name.

    A learner is created for each kind of run, since only then does a method refuse an encoder.
    """
    data: dict[str, Dataset] = {}
    tasks: dict[tuple[str, str, int], list[Task]] = {}
    for spec in {replace(spec, seed=0, settings={}, fidelity=AS_RUN): spec for spec in specs}.values():
        if spec.dataset not in data:
            data[spec.dataset] = load_data(spec.dataset, data_dir, quiet=quiet)
        here, key = data[spec.dataset], (spec.dataset, spec.protocol, spec.tasks)
        _check(spec, here)
        if key not in tasks:
            tasks[key] = tasks_of(spec.protocol, here, spec.tasks, spec.seed, spec.fidelity)
        _learner(spec, here, tasks[key])
    return data


def _check(spec: RunSpec, data: Dataset) -> None:
    """Refuse a run whose code or data have changed, or that needs more than this machine has."""
    check_threads(spec.threads)
    spec.check_sources()
    spec.check_data(data)


def _learner(spec: RunSpec, data: Dataset, tasks: list[Task]) -> Learner:
    return Learner(
        make_method(spec.method, **spec.settings),
        scenario_of(spec.scenario, [task.classes for task in tasks]),
        tasks[0].n_inputs,
        encoder=spec.encoder,
        shape=tasks[0].shape,
        hidden=spec.hidden,
        latent=spec.latent,
        learning_rate=spec.learning_rate,
        batch_size=spec.batch_size,
        optimizer=spec.optimizer,
        device=spec.device,
        seed=spec.seed,
        fidelity=spec.fidelity,
        likelihood=data.likelihood,
    )


def _learn_task(
    learner: Learner, tasks: list[Task], k: int, spec: RunSpec, progress: PartialResult, observer: Observer
) -> None:
    """Learn for the time of task k, probing the accuracy now and then with the clock stopped."""
    every = max(1, spec.iters // PROBES_PER_TASK)
    paused, before = np.zeros(2), 0

    def on_step(iteration: int, loss: float) -> None:
        nonlocal paused
        start = _clocks()
        iteration += before
        observer.stepped(k, iteration, loss)
        if iteration % every == 0 or iteration == 1:
            accuracies = [accuracy(learner, task, j, PROBE_ROWS) for j, task in enumerate(tasks[: learner.seen])]
            progress.curve.append((k, iteration, accuracies))
            observer.probed(k, accuracies)
        paused += _clocks() - start

    start, blend = _clocks(), protocol_of(spec.protocol).blend
    if blend is None:
        learner.learn(tasks[: k + 1], spec.iters, on_step)
    else:
        for shares in blend(k, len(tasks), spec.iters):
            met = int(shares.any(0).nonzero().max()) + 1  # tasks seen so far
            seen = max(met, learner.seen)
            learner.learn_blend(tasks[:seen], shares[:, :seen], on_step)
            before += len(shares)
    seconds, cpu_seconds = _clocks() - start - paused
    progress.train_seconds += float(seconds)
    progress.cpu_seconds += float(cpu_seconds)


def _clocks() -> npt.NDArray[np.float64]:
    """Return the wall-clock time and this process's CPU time."""
    return np.array([time.perf_counter(), time.process_time()])


def _samples(learner: Learner, task: Task, rng: torch.Generator) -> list[npt.NDArray[np.uint8]]:
    """Return what the learner would replay now, as one array of images; empty if it cannot generate."""
    if not isinstance(learner.net, GenerativeClassifier):
        return []
    pixels = learner.net.generate(N_SAMPLES, rng).mul(255).round().byte()
    return [pixels.reshape(N_SAMPLES, *task.shape).numpy()]


def _result(spec: RunSpec, learner: Learner, tasks: list[Task], progress: PartialResult) -> RunResult:
    return RunResult(
        spec=spec,
        average_accuracy=average_accuracy(progress.matrix),
        accuracy_matrix=progress.matrix,
        forgetting=forgetting(progress.matrix),
        backward_transfer=backward_transfer(progress.matrix),
        curve=progress.curve,
        train_seconds=progress.train_seconds,
        cpu_seconds=progress.cpu_seconds,
        parameters=learner.n_parameters,
        stored_numbers=learner.method.stored_numbers(tasks),
        versions=provenance(),
        shown=display_facts(spec),
    )
