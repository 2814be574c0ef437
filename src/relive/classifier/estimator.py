"""ContinualClassifier: the scikit-learn face of the learner. One ``partial_fit`` is one task."""

from __future__ import annotations

import copy
import itertools
import math
import numbers
import os
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from relive._util.errors import InputError, unknown
from relive._util.fidelity import Fidelity, fidelity_of
from relive._util.seeds import stream
from relive._util.threads import threads
from relive.classifier.features import Features
from relive.classifier.labels import digest_of, joined, label_array
from relive.classifier.lessons import Lesson, Memory, Name, memories
from relive.classifier.stopping import Watch, choose_held_out
from relive.core.learner import Learner
from relive.core.scenarios import SCENARIOS, Scenario, scenario_of
from relive.data.tasks import Examples, Task
from relive.methods import make_method, method_facts
from relive.methods.generative_replay import GenerativeReplay
from relive.networks import GenerativeClassifier
from relive.networks.catalogue import EncoderFactory, encoder_factory
from relive.networks.head import masked
from relive.networks.likelihoods import LIKELIHOODS

Array = npt.NDArray[Any]
Progress = Callable[[int, int, float], object]
FEW = 20  # samples that may all be of different classes
STRUCTURE = ("method", "scenario", "settings", "encoder", "shape", "hidden", "latent", "likelihood", "fidelity")  # stay
ASKED = 1000  # replayed samples that a model and the model of before are compared on


class ContinualClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that goes on learning new classes without keeping old data.

    Each call of :meth:`partial_fit` teaches it one task. Classes and tasks need not be known beforehand: the output
    layer grows. By default it replays what its own feedback connections generate (Replay-through-Feedback) and can be
    asked at any time for the class, out of all that it has met (Class-IL).

    Parameters
    ----------
    method
        A name from ``relive methods``; not one that keeps data, such as ``"offline"``.
    scenario
        ``"class"``: which of all classes? ``"task"``: the task is given with every question, which of its classes?
        ``"domain"``: the same classes again in other circumstances, the task is not given.
    settings
        The method's own settings, such as ``{"lam": 1e6}`` for EWC.
    iterations
        Steps per task; ``None`` for 20 passes over the task's data, at least 500 steps and at most 5000.
    encoder
        The network's first part: ``"mlp"``, two hidden layers; ``"conv"``, for pictures; an address of one's own,
        ``"my_file.py:make"``; or a function ``(shape, hidden, rng)`` that returns a ``torch.nn.Module``. A model with a
        function cannot be saved.
    shape
        How the encoder is to read a sample: ``(height, width)``, ``(channels, height, width)``; ``None`` for a plain
        row of features.
    hidden, latent
        Units in each hidden layer; latent variables of the generator.
    learning_rate, batch_size
        Of Adam.
    likelihood
        What inputs are to the generator: ``"bernoulli"`` numbers in [0, 1], ``"gaussian"`` any others, which are
        then standardised by the first task's mean and deviation. ``"auto"`` looks at the first task: bytes
        (``uint8``, taken for 0 to 255) and numbers within [0, 1] are Bernoulli, everything else is Gaussian.
    fidelity
        ``"as_written"``, the paper's equations; ``"as_run"``, its code, which gives the generator less weight; or a
        ``Fidelity``.
    early_stopping
        Whether to stop a task's training when accuracy on a held-out part of it no longer grows.
    validation_fraction, n_iter_no_change
        How much of the task is held out for that, and how many looks (one every 50 steps) to wait.
    random_state
        The seed. The same seed and the same data in the same order give the same bits; ``None`` draws a new seed.
    n_jobs
        Threads of one matrix product; ``None`` is one, −1 as many as cores. One is fastest for networks of the usual
        size, and much so next to other work. The number decides the last bits.

    Attributes
    ----------
    classes_
        The labels met so far, and those declared, sorted.
    n_tasks_
        How many tasks were learned.
    n_features_in_
        Features per sample.
    lessons_
        What is remembered about each task.
    notes_
        Whatever the caller wants to keep with the model, as plain JSON values; empty at first.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from relive import ContinualClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> model = ContinualClassifier(iterations=200, hidden=100)
    >>> for new in ([0, 1, 2], [3, 4, 5]):
    ...     rows = [label in new for label in y]
    ...     model = model.partial_fit(X[rows], y[rows])
    >>> model.classes_.tolist()
    [0, 1, 2, 3, 4, 5]
    >>> model.score(X[y < 3], y[y < 3]) > 0.9
    True
    """

    def __init__(
        self,
        method: str = "rtf",
        scenario: str = "class",
        *,
        settings: dict[str, float] | None = None,
        iterations: int | None = None,
        encoder: str | EncoderFactory = "mlp",
        shape: tuple[int, ...] | None = None,
        hidden: int = 400,
        latent: int = 100,
        learning_rate: float = 0.001,
        batch_size: int = 128,
        likelihood: str = "auto",
        fidelity: str | Fidelity = "as_written",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.scenario = scenario
        self.settings = settings
        self.iterations = iterations
        self.encoder = encoder
        self.shape = shape
        self.hidden = hidden
        self.latent = latent
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.likelihood = likelihood
        self.fidelity = fidelity
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- what a user does with it --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, task: Name | None = None) -> Self:
        """Start afresh and learn one task.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NumPy, pandas or torch; float or uint8.
        y : array-like of shape (n_samples,)
            Labels: whole numbers, booleans or strings.
        task
            A name for the task; its number, from 0, if not given.
        """
        draft: Self = clone(self)
        draft.random_state = self.random_state  # the very one: a generator goes on
        with threads(self._n_threads()):
            return self._become(draft._taught(X, y, task))

    def partial_fit(
        self, X: Any, y: Any, task: Name | None = None, classes: Any = None, *, on_step: Progress | None = None
    ) -> Self:
        """Learn one more task. If that fails or is interrupted, the model stays as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NumPy, pandas or torch; float or uint8.
        y : array-like of shape (n_samples,)
            Labels, new or known.
        task
            A name for the task; its number, from 0, if not given.
        classes
            Labels that are known to come, if any: they appear in ``classes_`` at once. Not needed.
        on_step
            Called after every step with its number, from 1, the highest number there may be, and the loss.
        """
        draft = copy.copy(self)
        with threads(self._n_threads()):
            return self._become(draft._taught(X, y, task, classes, on_step))

    def predict_proba(self, X: Any, task: Any = None) -> Array:
        """Return the probability of every class of ``classes_``, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What to classify.
        task
            In Task-IL, whose classes to choose from: a task's name, or one for each sample. Not given otherwise.
        """
        check_is_fitted(self)
        x = self.features_.inputs(self._data(X))
        column = np.searchsorted(self.classes_, self.labels_)  # of each class
        probabilities = np.zeros((len(x), len(self.classes_)))
        for k, rows in self._questions(task, len(x)):
            with threads(self._n_threads()):
                classes, p = self._answer(self.learner_, x[rows], k)
            probabilities[np.ix_(rows, column[classes])] = p.numpy()
        return probabilities

    def predict(self, X: Any, task: Any = None) -> Array:
        """Return the most likely class of every sample, (n_samples,); ``task`` as in :meth:`predict_proba`."""
        best = self.predict_proba(X, task).argmax(1)
        labels: Array = self.classes_[best]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """Return the share of samples that are classified right; ``task`` as in :meth:`predict_proba`."""
        return float(accuracy_score(y, self.predict(X, task), sample_weight=sample_weight))

    def replay(self, n: int = 100, task: Name | None = None, random_state: int = 0) -> tuple[Array, Array]:
        """Return what the model would replay: n samples that it generates, and the labels that it gives them.

        Parameters
        ----------
        n
            How many.
        task
            In Task-IL, whose classes to choose the labels from.
        random_state
            The seed of the noise that they are generated from.
        """
        check_is_fitted(self)
        net = self.learner_.net
        if not isinstance(net, GenerativeClassifier):
            raise InputError(
                f"method {self.method!r} generates nothing, so that it has nothing to replay: rtf, for one, can"
            )
        with threads(self._n_threads()):
            samples = self.features_.samples(net.generate(n, stream(random_state, "replay")))
        return samples, self.predict(samples, task)

    def report(self) -> list[Memory]:
        """Say how well each class is remembered, as far as this can be known without old data."""
        check_is_fitted(self)
        dreamt = {}
        if isinstance(self.learner_.net, GenerativeClassifier) and not self.learner_.scenario.needs_task:
            with threads(self._n_threads()):
                x = self.learner_.net.generate(ASKED, stream(self.seed_, "report"))
                dreamt = _shares(self._said(self.learner_, x, self.n_tasks_ - 1))
        return memories(self.labels_.tolist(), self.lessons_, dreamt)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, with all that is needed to go on learning with the same bits."""
        from relive.classifier.modelfile import save

        save(self, Path(path))

    def _n_threads(self) -> int:
        """Return how many threads were asked for."""
        n = self.n_jobs
        if n is not None and (not isinstance(n, numbers.Integral) or isinstance(n, bool) or (n < 1 and n != -1)):
            raise InputError(f"n_jobs = {n!r}: it must be a whole number of at least 1, -1 for all cores, or None")
        return os.cpu_count() or 1 if n == -1 else int(n or 1)

    # ---- learning a task -----------------------------------------------------------------------------------------

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, in one assignment that cannot be interrupted half-way."""
        own = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = own | {name: value for name, value in vars(draft).items() if name.endswith("_")}
        return self

    def _taught(self, X: Any, y: Any, task: Name | None, classes: Any = None, on_step: Progress | None = None) -> Self:
        """Learn a task, in place: the caller throws this model away if anything goes wrong."""
        self._check_parameters()
        first = not self.__sklearn_is_fitted__()
        data, y = self._data(X, reset=first), label_array(y)
        check_consistent_length(data, y)
        labels, position = np.unique(y, return_inverse=True)
        if len(y) > FEW and 2 * len(labels) > len(y):
            warnings.warn(
                f"y has {len(labels):,} different labels for {len(y):,} samples: are they classes, or numbers to be "
                "estimated, which a classifier cannot do?",
                stacklevel=3,
            )
        if first:
            self.features_ = Features.of(data, self.likelihood)
            self.labels_ = self.declared_ = labels[:0]
            self.lessons_: list[Lesson] = []
            self.notes_: dict[str, Any] = {}
            self.made_ = self._structure()
        self.check_unchanged()
        self.features_.check(data)
        name = self._name(task)
        if classes is not None and len(classes):
            self.declared_ = joined(self.declared_, np.unique(label_array(classes)))
        self.labels_ = joined(self.labels_, labels)
        self.classes_ = np.sort(joined(self.labels_, self.declared_))

        place = {label: c for c, label in enumerate(self.labels_.tolist())}
        own = np.array([place[label] for label in labels.tolist()])  # the classes of this task
        shared = SCENARIOS[self.made_["scenario"]].shares_units
        offered = np.arange(len(self.labels_)) if shared else own  # what it may be answered with
        target = np.array([offered.tolist().index(c) for c in own])[position]  # the place of each sample's class in it
        if first:
            self.seed_ = _seed(self.random_state)
        self._grow(tuple(offered.tolist()), data.shape[1], first)

        start = time.perf_counter()
        iterations = self._learn(data, torch.from_numpy(target), tuple(offered.tolist()), on_step)
        lesson = Lesson(
            name=name,
            classes=tuple(offered.tolist()),
            counts=tuple(np.bincount(target, minlength=len(offered)).tolist()),
            iterations=iterations,
            seconds=time.perf_counter() - start,
            learned_at=datetime.now(UTC).isoformat(timespec="seconds"),
            digest=digest_of(data, y),
            agreement=self._agreement(),
        )
        self.lessons_ = [*self.lessons_, lesson]
        self.n_tasks_ = len(self.lessons_)
        return self

    def _check_parameters(self) -> None:
        for name in ("method", "scenario", "likelihood"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} = {getattr(self, name)!r}: it must be a name")
        if not isinstance(self.fidelity, str | Fidelity):
            raise InputError(f"fidelity = {self.fidelity!r}: it must be a name, or a Fidelity")
        if self.settings is not None and not isinstance(self.settings, dict):
            raise InputError(f"settings = {self.settings!r}: it must be a dictionary, or None")
        encoder_factory(self.encoder)
        whole = isinstance(self.shape, tuple | list) and all(isinstance(n, numbers.Integral) for n in self.shape)
        if self.shape is not None and not whole:
            raise InputError(f"shape = {self.shape!r}: it must be whole numbers, such as (28, 28), or None")
        facts = method_facts(self.method)
        if facts.keeps_data:
            raise InputError(
                f"method = {self.method!r} keeps data of earlier tasks, which this classifier is there to avoid; "
                "`relive methods` lists the others"
            )
        if self.scenario not in SCENARIOS:
            raise unknown("scenario", self.scenario, SCENARIOS)
        if self.likelihood not in ("auto", *LIKELIHOODS):
            raise unknown("likelihood", self.likelihood, ["auto", *LIKELIHOODS])
        facts.check_scenario(self.scenario)
        facts.check_settings(self.settings or {})
        self._n_threads()
        for name in ("hidden", "latent", "batch_size", "n_iter_no_change", "iterations"):
            value = getattr(self, name)
            if value is None and name == "iterations":
                continue
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} = {value!r}: it must be a whole number of at least 1")
        for name, below in (("learning_rate", math.inf), ("validation_fraction", 1.0)):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) < below:
                raise InputError(f"{name} = {value!r}: it must be a number between 0 and {below:g}, ends excluded")

    def _structure(self) -> dict[str, Any]:
        """Return the parameters that a model is made with, and keeps for good."""
        return {name: copy.deepcopy(getattr(self, name)) for name in STRUCTURE}

    def check_unchanged(self) -> None:
        """Refuse to go on, or to be stored, with parameters that cannot change any more."""
        for name, was in self.made_.items():
            if getattr(self, name) != was:
                raise InputError(
                    f"{name} was {was!r} when this model was made and is {getattr(self, name)!r} now: it cannot change "
                    "any more. Set it back, or use fit to start afresh"
                )

    def _data(self, X: Any, reset: bool = False) -> Array:
        """Return samples as an array (n, features) of float64, float32 or uint8."""
        if isinstance(X, Tensor):
            X = (X.float() if X.dtype == torch.bfloat16 else X).detach().cpu().numpy()
        data: Array = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32, np.uint8])
        return data

    def _name(self, task: Any) -> Name:
        """Return how a new task is called."""
        taken = [lesson.name for lesson in self.lessons_]
        if task is None:
            return next(k for k in itertools.count(len(taken)) if k not in taken)
        name = int(task) if isinstance(task, numbers.Integral) and not isinstance(task, bool) else task
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"task = {task!r}: a task's name is a string or a whole number")
        if isinstance(name, str) and not name.strip():
            raise InputError(
                f"task = {task!r}: a task's name cannot be empty; leave it out to have a number for a name"
            )
        if SCENARIOS[self.scenario].needs_task and name in taken:
            raise InputError(
                f"task {name!r} was learned already, and in Task-IL a task is learned once: give it a name of its own"
            )
        return str(name) if isinstance(name, str) else name

    def _grow(self, offered: tuple[int, ...], n_inputs: int, first: bool) -> None:
        """Get the learner ready for a task with these classes."""
        scenario = self._scenario_with([*(lesson.classes for lesson in self.lessons_), offered])
        if first:
            self.learner_ = self._new_learner(scenario, n_inputs)
        else:
            self.learner_.grow(scenario)

    def _scenario_with(self, tasks: list[tuple[int, ...]]) -> Scenario:
        """Return the scenario of these tasks, with units for the declared classes after theirs."""
        n, of_all = len(self.labels_), len(self.classes_)
        scenario = self.made_["scenario"]
        reserved = tuple(range(0 if SCENARIOS[scenario].shares_units else n, of_all))
        return scenario_of(scenario, [*tasks, reserved] if of_all > n else tasks)

    def _new_learner(self, scenario: Scenario, n_inputs: int) -> Learner:
        made = self.made_
        fidelity = made["fidelity"]
        return Learner(
            make_method(made["method"], **(made["settings"] or {})),
            scenario,
            n_inputs,
            encoder=made["encoder"],
            shape=tuple(map(int, made["shape"] or ())),
            hidden=int(made["hidden"]),
            latent=int(made["latent"]),
            learning_rate=float(self.learning_rate),
            batch_size=int(self.batch_size),
            seed=self.seed_,
            fidelity=fidelity if isinstance(fidelity, Fidelity) else fidelity_of(fidelity),
            likelihood=self.features_.likelihood,
        )

    def _learn(self, data: Array, target: Tensor, offered: tuple[int, ...], on_step: Progress | None) -> int:
        """Let the learner learn, and return how many steps it took."""
        pixels = self.features_.rows(data)
        held_out = torch.zeros(len(target), dtype=torch.bool)
        if self.early_stopping:
            rng = stream(self.seed_, f"held out {len(self.lessons_)}")
            held_out = choose_held_out(target, float(self.validation_fraction), rng)
        train, test = (Examples(pixels[rows], target[rows]) for rows in (~held_out, held_out))
        task = Task(train, test, offered, tuple(str(self.labels_[c]) for c in offered), (1, data.shape[1]))
        iterations = int(self.iterations or min(max(math.ceil(20 * len(train) / self.batch_size), 500), 5000))
        watch = Watch(self.learner_, test, len(self.lessons_), int(self.n_iter_no_change))

        def stepped(iteration: int, loss: float) -> bool:
            if on_step is not None:
                on_step(iteration, iterations, loss)
            return watch(iteration)

        # the earlier tasks are gone: the methods offered here do not look at them
        self.learner_.learn([task] * (len(self.lessons_) + 1), iterations, stepped)
        return watch.taken

    def _agreement(self) -> dict[int, tuple[int, int]]:
        """Ask the model of before the task and this one about the same replayed samples."""
        method, before = self.learner_.method, len(self.lessons_)
        if not isinstance(method, GenerativeReplay) or not before:
            return {}
        teacher = copy.copy(self.learner_)
        teacher.net = method.teacher_
        teacher.seen = before
        x = method.teacher_.generate(ASKED, stream(self.seed_, f"agreement {before}"))
        counts: dict[int, tuple[int, int]] = {}
        for k in range(before) if self.learner_.scenario.needs_task else [before - 1]:
            said, says = self._said(teacher, x, k), self._said(self.learner_, x, k)
            for c in np.unique(said).tolist():
                n, agreed = counts.get(c, (0, 0))
                counts[c] = n + int((said == c).sum()), agreed + int(((said == c) & (says == c)).sum())
        return counts

    # ---- answering -----------------------------------------------------------------------------------------------

    def _questions(self, task: Any, n: int) -> Iterator[tuple[int, Array]]:
        """Yield a task's number and the rows that are asked about it."""
        scenario = self.learner_.scenario
        if not scenario.needs_task:
            if task is not None:
                raise InputError(f"task = {task!r}: in {scenario.title} the task is not given, leave it out")
            yield self.n_tasks_ - 1, np.arange(n)
            return
        numbers_ = {lesson.name: k for k, lesson in enumerate(self.lessons_)}
        if task is None:
            raise InputError(
                f"{scenario.title} needs to know the task: give task=, one of {', '.join(map(repr, numbers_))}, "
                "or one for each sample"
            )
        given = task.tolist() if isinstance(task, np.generic | np.ndarray | Tensor) else task
        names: list[Any] = [given] * n if isinstance(given, str | numbers.Integral) else list(given)
        if len(names) != n:
            raise InputError(f"task has {len(names)} names for {n} samples: give one name, or one for each sample")
        for name in dict.fromkeys(names):
            if name not in numbers_:
                raise InputError(f"task {name!r} was never learned: known are {', '.join(map(repr, numbers_))}")
            yield numbers_[name], np.array([i for i, other in enumerate(names) if other == name])

    @torch.no_grad()
    def _answer(self, learner: Learner, x: Tensor, k: int) -> tuple[Array, Tensor]:
        """Return the classes that may be the answer to a question of task k, and their probabilities (n, classes)."""
        scenario = learner.scenario
        logits = learner.method.logits(learner.net, x, torch.full((len(x),), k))
        active = scenario.active(k, learner.seen)
        class_of = {
            int(unit): c
            for task, classes in enumerate(scenario.classes[: learner.seen])
            for unit, c in zip(scenario.units(task), classes, strict=True)
        }
        units = active.nonzero().flatten()
        p = masked(logits, active).double().softmax(1)[:, units]
        return np.array([class_of[int(unit)] for unit in units]), p

    def _said(self, learner: Learner, x: Tensor, k: int) -> Array:
        """Return the most likely class of every input, (n,)."""
        classes, p = self._answer(learner, x, k)
        said: Array = classes[p.argmax(1).numpy()]
        return said

    # ---- being a scikit-learn estimator, copied and stored ---------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "n_tasks_" in self.__dict__

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "learner_" in state:
            state |= {"learner_": state["learner_"].state(), "notes_": copy.deepcopy(state["notes_"])}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "learner_" in state:
            self.restore(state["learner_"])

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Make the learner again from its state, everything else being there."""
        self.classes_ = np.sort(joined(self.labels_, self.declared_))
        scenario = self._scenario_with([lesson.classes for lesson in self.lessons_])
        self.learner_ = self._new_learner(scenario, self.n_features_in_)
        self.learner_.load_state(tensors)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _shares(said: Array) -> dict[int, float]:
    classes, counts = np.unique(said, return_counts=True)
    return {int(c): float(n / len(said)) for c, n in zip(classes, counts, strict=True)}
