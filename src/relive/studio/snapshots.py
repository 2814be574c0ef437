"""A run's network after each task, as model files: ``relive run --snapshots``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relive.experiments.spec import RunSpec
from relive.experiments.store import SNAPSHOTS, Store
from relive.experiments.worker import Job, work
from relive.methods import method_facts

if TYPE_CHECKING:
    from torch import Tensor

    from relive.classifier.estimator import ContinualClassifier
    from relive.core.learner import Learner
    from relive.data.tasks import Task
    from relive.experiments.arrays import Pictures

CHECKED = 20  # test samples on which a snapshot must predict what the network predicts


def snapshot_path(directory: Path, task: int) -> Path:
    """Return where the model file of a run after a task (from 0) is."""
    return directory / SNAPSHOTS / f"task{task + 1}.safetensors"


def snapshots_in(directory: Path) -> list[int]:
    """Return after which tasks, from 0, a run's directory has a model file."""
    found = [path.stem.removeprefix("task") for path in (directory / SNAPSHOTS).glob("task*.safetensors")]
    return sorted(int(number) - 1 for number in found if number.isdecimal())


@dataclass(frozen=True)
class Snapshots:
    """Writes a model file after each task; it only reads the learner, so that the run's result stays the same.

    Attributes
    ----------
    spec
        Of the run.
    directory
        Of the run, where the folder of model files goes.
    """

    spec: RunSpec
    directory: Path

    def __call__(self, learner: Learner, tasks: list[Task], task: int) -> None:
        """Save the learner after a task."""
        path = snapshot_path(self.directory, task)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            model, x = model_of(self.spec, learner, tasks), tasks[task].test.inputs(slice(0, CHECKED))
            if not model.learner_.predict(x, task).equal(learner.predict(x, task)):
                raise ValueError("a model file cannot hold the method's state")
            model.save(path)
        except Exception as error:  # a model file may not hold the method's state: the run continues
            warnings.warn(f"no snapshot of {self.spec.name} after task {task + 1}: {error}", stacklevel=2)


def work_with_snapshots(job: Job) -> tuple[dict[str, Any], list[Pictures]]:
    """Do a run in a worker process that shares the driver's files, and write its snapshots."""
    assert job.runs_dir is not None
    spec = RunSpec.from_json(job.spec)
    return work(job, Snapshots(spec, Store(Path(job.runs_dir)).directory(spec)))


def model_of(spec: RunSpec, learner: Learner, tasks: list[Task]) -> ContinualClassifier:
    """Return a run's learner as a classifier, with the tasks learned so far as its lessons.

    Classes have the names that the tasks give them; in Domain-IL, their position in the task. A method that needs all
    data (Offline) becomes a network without any method, ``none``. Inputs are those of the run's tasks.
    """
    from relive.classifier import parameters
    from relive.classifier.asked import Asked
    from relive.classifier.bookkeeping import Bookkeeping
    from relive.classifier.choice import Choice
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.features import Features
    from relive.classifier.learning import new_learner

    facts, first = method_facts(spec.method), tasks[0]
    method = "none" if facts.needs_earlier_tasks else spec.method
    model = ContinualClassifier(
        method,
        spec.scenario,
        settings=dict(spec.settings) if not facts.needs_earlier_tasks else None,
        encoder=spec.encoder,
        shape=first.shape,
        hidden=spec.hidden,
        latent=spec.latent,
        learning_rate=spec.learning_rate,
        batch_size=spec.batch_size,
        likelihood=learner.problem.sizes.likelihood,
        fidelity=spec.fidelity,
        allow_stored_data=facts.keeps_data,
        random_state=spec.seed,
    )
    names, numbers, meaning = _classes(spec, learner, tasks)
    met = max(max(ids) for ids in numbers[: learner.seen]) + 1  # classes
    known = max(meaning[:met]) + 1  # labels
    model.structure_ = parameters.structure_of(model.get_params(deep=False))
    model.choice_, model.seed_ = Choice(method), spec.seed
    model.n_features_in_ = first.n_inputs
    n = np.zeros(first.n_inputs)
    model.features_ = Features(learner.problem.sizes.likelihood, n, n + 1)
    model.asked_, model.portraits_ = Asked.nothing(), ()
    model.notes_ = {"run": spec.name} | ({"image": list(first.shape)} if first.is_picture else {})
    model.bookkeeping_ = Bookkeeping(
        spec.scenario,
        np.array(names[:known]),
        np.array(names[known:], dtype=np.array(names).dtype),
        tuple(_lesson(k, tasks[k], [meaning[c] for c in numbers[k]], spec.iters) for k in range(learner.seen)),
        tuple(numbers[: learner.seen]),
        tuple(meaning[:met]),
    )
    model.learner_ = new_learner(model, model.bookkeeping_.scenario_with())
    fresh, state = model.learner_.state(), learner.state()
    # an optimizer of another kind than a model file's starts afresh, and what a method keeps for later tasks (XdG's
    # gates) is left out
    kept = {name: t for name, t in state.items() if name in fresh or name.startswith("method.")}
    state = fresh | {name: _cut(t, fresh[name]) if name in fresh else t for name, t in kept.items()}
    model.learner_.check_state(state)
    model.learner_.load_state(state)
    return model


def _cut(tensor: Tensor, like: Tensor) -> Tensor:
    """Return as many rows of a tensor as another has, if that is all that differs; a memory starts with no rows."""
    alike = tensor.dim() > 0 and tensor.shape[1:] == like.shape[1:] and len(like) > 0
    return tensor[: len(like)] if alike else tensor


def _classes(spec: RunSpec, learner: Learner, tasks: list[Task]) -> tuple[list[str], list[tuple[int, ...]], list[int]]:
    """Return all labels, the classes of each task in the order in which they are learned, and each class's label."""
    ids = list(dict.fromkeys(c for task in tasks for c in task.classes))
    numbers = [tuple(ids.index(c) for c in task.classes) for task in tasks]
    if learner.scenario.shares_units:  # classes at the same position in their tasks share a label
        position = {c: i for classes in numbers for i, c in enumerate(classes)}
        meaning = [position[c] for c in range(len(ids))]
        return [str(i) for i in range(max(meaning) + 1)], numbers, meaning
    called = {c: name for task in tasks for c, name in zip(task.classes, task.names, strict=True)}
    names = [called[c] for c in ids]
    if len(set(names)) < len(names):  # two classes with the same name
        names = [str(c) for c in ids]
    return names, numbers, list(range(len(ids)))


def _lesson(k: int, task: Task, labels: list[int], iterations: int) -> Any:
    from relive.classifier.lessons import Lesson

    counts = np.bincount(task.train.labels.cpu().numpy(), minlength=len(labels)).tolist()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Lesson(k, tuple(labels), tuple(counts), iterations, 0.0, when, "")
