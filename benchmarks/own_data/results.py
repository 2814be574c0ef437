"""A run: a learner on a course with a seed. Each is a line of JSON, and is done once."""

from __future__ import annotations

import functools
import itertools
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.own_data.courses import COURSES, PICTURES, Lessons, lessons, samples_of
from benchmarks.own_data.learner import Setting
from benchmarks.own_data.learners import LEARNERS, Entry
from benchmarks.own_data.samples import Samples
from relive._util.versions import versions

Key = tuple[str, str, int]  # course, learner, seed


@dataclass(frozen=True)
class Run:
    """The result of a run.

    Attributes
    ----------
    course, learner, seed
        What was done.
    accuracy, macro
        Share of test samples classified correctly, and the mean of this share over the classes.
    seconds
        CPU time from the first sample until the first prediction after the last task.
    numbers
        How many numbers the learner kept then.
    data, code
        Digests of the data set, and of the package's code.
    """

    course: str
    learner: str
    seed: int
    accuracy: float
    macro: float
    seconds: float
    numbers: int
    data: str
    code: str

    @property
    def key(self) -> Key:
        """What was done."""
        return self.course, self.learner, self.seed


def read(path: Path) -> list[Run]:
    """Return the runs in a file of JSON lines; none if there is no file."""
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def limited(taught: Lessons, most: int, seed: int) -> Lessons:
    """Return lessons with at most so many training and test samples, the same share of each class but the rarest.

    Every class in a task keeps at least two samples, or all it has.
    """
    share = most / sum(len(y) for _, y in taught.tasks)
    random = np.random.default_rng(seed)
    tasks = []
    for X, y in taught.tasks:
        rows = [random.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
        some = np.sort(np.concatenate([own[: max(2, round(min(share, 1) * len(own)))] for own in rows]))
        tasks.append((X[some], y[some]))
    X_test, y_test = taught.X_test, taught.y_test
    if len(y_test) > most:
        _, X_test, _, y_test = train_test_split(X_test, y_test, test_size=most, stratify=y_test, random_state=seed)
    return Lessons(tasks, X_test, y_test)


@functools.lru_cache(maxsize=1)  # a process runs all learners of one course before the next
def loaded(source: str, folder: Path) -> Samples:
    """Return a data set, read once."""
    return samples_of(source, folder)


def measure(key: Key, folder: Path, validation: bool = False, entry: Entry | None = None) -> Run:
    """Train a learner on a course, in this process and on one thread, and test it."""
    name, learner_name, seed = key
    torch.set_num_threads(1)
    course, entry = COURSES[name], entry or LEARNERS[learner_name]
    samples = loaded(course.source, folder)
    taught = lessons(samples, course, seed, validation)
    if entry.most is not None:
        taught = limited(taught, entry.most, seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, that it has not converged after a few steps
        start = time.process_time()
        learner = entry.make(Setting(seed, np.unique(samples.y), samples.shape))
        for X, y in taught.tasks:
            learner.learn(X, y)
        learner.predict(taught.X_test[:1])
        seconds = time.process_time() - start
        right = learner.predict(taught.X_test) == taught.y_test
    return Run(
        course=name,
        learner=learner_name,
        seed=seed,
        accuracy=round(float(right.mean()), 5),
        macro=round(float(np.mean([right[taught.y_test == c].mean() for c in np.unique(taught.y_test)])), 5),
        seconds=round(seconds, 3),
        numbers=learner.numbers_kept,
        data=samples.digest,
        code=versions()["code"],
    )


def missing(done: Sequence[Run], courses: Sequence[str], learners: Sequence[str], seeds: int) -> list[Key]:
    """Return the runs still to be done, seed after seed."""
    there = {run.key for run in done}
    keys = itertools.product(range(seeds), courses, learners)
    return [
        (course, learner, seed)
        for seed, course, learner in keys
        if (COURSES[course].kind == PICTURES or not LEARNERS[learner].pictures_only)
        and (course, learner, seed) not in there
    ]


def run_all(keys: Sequence[Key], output: Path, folder: Path, jobs: int) -> Iterator[Run | str]:
    """Do runs, write each as it ends, and yield it; for a failed one, yield the error."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool, output.open("a") as file:
        waiting = {pool.submit(measure, key, folder): key for key in keys}
        for future in as_completed(waiting):
            error = future.exception()
            if error is not None:
                yield f"{waiting[future]}: {type(error).__name__}: {error}"
                continue
            run = future.result()
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
            yield run
