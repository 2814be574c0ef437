"""ContinualClassifier: the scikit-learn interface of the learner. One ``partial_fit`` is one task."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from relive._util.errors import InputError
from relive._util.fidelity import Fidelity
from relive._util.seeds import stream
from relive._util.threads import threads
from relive.classifier import learning, parameters, portraits, selfreport, waiting
from relive.classifier.answers import without_forgotten
from relive.classifier.asked import Asked
from relive.classifier.asking import label_probabilities, novelty_of
from relive.classifier.bookkeeping import Bookkeeping
from relive.classifier.choice import AUTO, Choice
from relive.classifier.evaluation import Evaluation, evaluate
from relive.classifier.features import Features
from relive.classifier.labels import kind_of, label_array
from relive.classifier.learned import Learned
from relive.classifier.lessons import Name
from relive.classifier.training import OnTrainingStep
from relive.core.learner import Learner
from relive.networks import GenerativeClassifier
from relive.networks.catalogue import EncoderFactory

Array = npt.NDArray[Any]


class ContinualClassifier(Learned, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that keeps learning new classes without storing old data.

    Each call of :meth:`partial_fit` teaches it one task. Classes and tasks need not be known beforehand: the output
    layer grows. At any time it can predict the class among all those seen so far (Class-IL).

    Parameters
    ----------
    method
        ``"auto"`` chooses a suitable one at the first task (:mod:`relive.classifier.choice` has the rule).
        Otherwise a name from ``relive methods``, or the address of your own, ``"my_file.py:MyMethod"``; not
        ``"offline"``, which needs the data of all tasks at once.
    scenario
        ``"class"``: which of all classes? ``"task"``: the task is given with every sample; which of its classes?
        ``"domain"``: the same classes under new conditions, the task is not given.
    settings
        The method's settings, such as ``{"lam": 1e6}`` for EWC.
    iterations
        Steps per task; ``None`` for 20 passes over the task's data, at least 500 steps and at most 5000. A closed-form
        method takes none.
    encoder
        ``"mlp"``, two hidden layers; ``"conv"``, for images; ``"random"``, features that are not trained;
        ``"inputs"``, none; the address of your own, ``"my_file.py:make"``; or a function ``(shape, hidden, rng)``
        that returns a ``torch.nn.Module``. A model with a function cannot be saved. ``None`` for the method's
        default, ``"mlp"`` for most.
    shape
        The shape of a sample: ``(height, width)``, ``(height, width, channels)``; ``None`` for a plain row of
        features.
    hidden, latent
        Units in each hidden layer; latent variables of the generator.
    learning_rate, batch_size
        Of Adam.
    likelihood
        How the generator models inputs: ``"bernoulli"`` for numbers in [0, 1], ``"gaussian"`` for any others, which
        are then standardised with the first task's mean and standard deviation. ``"auto"`` looks at the first task:
        bytes (``uint8``, read as 0 to 255) and numbers within [0, 1] are Bernoulli, everything else is Gaussian.
    fidelity
        ``"as_written"``, the paper's equations; ``"as_run"``, its code, which gives the generator less weight; or a
        ``Fidelity``.
    early_stopping
        Whether to stop a task's training when the accuracy on a held-out part stops improving.
    validation_fraction, n_iter_no_change
        How much of the task is held out for that, and how many checks (one every 50 steps) to wait.
    holdout
        The share of each class's samples in a task that is held out for testing; the figures are kept with the
        lesson. It is taken first, and early stopping holds its part out of the rest: no sample is in both.
    calibrate
        Whether to score samples that were not learned, and to keep what is needed to calibrate probabilities and to
        detect unknown classes: :mod:`relive.classifier.asking` has the rule.
    consolidate_every
        For a method that trains a network: collect the samples of small batches in memory until there are this many,
        and learn them as one task. ``None`` treats every batch as a task. A closed form learns any batch exactly.
    allow_stored_data
        Whether the method may store data of earlier tasks, such as a replay buffer. Real samples are then in the
        model and in its file, including those that wait to be learned.
    forgettable
        Whether a closed-form method keeps its sums per class, so that :meth:`forget` leaves no trace. Each class then
        needs as much memory as all of them do otherwise, so there are fewer features for the same memory.
    random_state
        The seed. The same seed and the same data in the same order are bit-identical; ``None`` draws a new seed.
    n_jobs
        Threads per matrix product; ``None`` is one, −1 one per core. One is fastest for networks of the usual
        size, especially on a busy machine. The number affects the last bits.
    device
        Where to compute: ``"cpu"``, ``"cuda"``, ``"mps"``, or ``"auto"``. Bit-identical results need the CPU.

    Attributes
    ----------
    classes_
        The labels seen so far, and those declared, sorted; read-only, like everything learned.
    n_tasks_, pending_
        How many tasks were learned; how many samples are waiting.
    n_features_in_
        Features per sample.
    choice_
        The method, and why it was chosen.
    lessons_
        What is remembered about each task.
    notes_
        Anything the caller wants to store with the model, as plain JSON values; empty at first.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from relive import ContinualClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> model = ContinualClassifier()
    >>> for new in ([0, 1, 2], [3, 4, 5]):
    ...     rows = [label in new for label in y]
    ...     model = model.partial_fit(X[rows], y[rows])
    >>> model.classes_.tolist()
    [0, 1, 2, 3, 4, 5]
    >>> model.score(X[y < 3], y[y < 3]) > 0.9
    True
    """

    # decided by the first task, and learned
    features_: Features
    bookkeeping_: Bookkeeping
    structure_: dict[str, Any]
    choice_: Choice
    seed_: int
    learner_: Learner
    asked_: Asked
    portraits_: portraits.Portraits
    notes_: dict[str, Any]
    waiting_: waiting.Waiting | None = None

    def __init__(
        self,
        method: str = AUTO,
        scenario: str = "class",
        *,
        settings: dict[str, float] | None = None,
        iterations: int | None = None,
        encoder: str | EncoderFactory | None = None,
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
        holdout: float = 0.0,
        calibrate: bool = True,
        consolidate_every: int | None = None,
        allow_stored_data: bool = False,
        forgettable: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "cpu",
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
        self.holdout = holdout
        self.calibrate = calibrate
        self.consolidate_every = consolidate_every
        self.allow_stored_data = allow_stored_data
        self.forgettable = forgettable
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def fit(self, X: Any, y: Any, task: Name | None = None) -> Self:
        """Start over and learn one task, given as in :meth:`partial_fit`."""
        draft: Self = clone(self)
        draft.random_state = self.random_state  # not a copy: a generator advances
        learning.learn(draft, X, y, task)
        return self._take_over(draft)

    def partial_fit(
        self, X: Any, y: Any, task: Name | None = None, classes: Any = None, *, on_step: OnTrainingStep | None = None
    ) -> Self:
        """Learn one more task. If that fails or is interrupted, the model is unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NumPy, pandas or torch; float or uint8.
        y : array-like of shape (n_samples,)
            Labels: whole numbers, booleans or strings; new or known ones.
        task
            A name for the task; its number, from 0, if not given.
        classes
            Labels expected later, if any: they appear in ``classes_`` at once. Not needed.
        on_step
            Called after every step with its number, from 1, the maximum number, and the loss.
        """
        draft = copy.copy(self)
        waiting.take(draft, X, y, task, classes, on_step)
        return self._take_over(draft)

    def consolidate(self) -> Self:
        """Learn the samples waiting for more (``consolidate_every``) now, as one task."""
        draft = copy.copy(self)
        waiting.consolidate(draft)
        return self._take_over(draft)

    def forget(self, *labels: Any) -> Self:
        """Forget classes: they are no longer predicted, and what is kept of each of them is deleted.

        With ``forgettable=True`` the model is then, up to rounding, as if it had never learned them, except for how
        the first task scaled the features. Otherwise they leave traces in what classes share: the within-class
        covariance, a network's weights. Labels of forgotten classes may be learned again, as new ones. If this
        fails, the model is unchanged, as for every change.
        """
        return self._changed(learning.forget, labels)

    def rename(self, old: Any, new: Any) -> Self:
        """Rename a class."""
        return self._changed(learning.rename, old, new)

    def merge(self, labels: Sequence[Any], into: Any) -> Self:
        """Merge several classes into one, under a new name or that of one of them.

        In closed form the model is then the same as if it had learned them as one class; a network predicts the sum
        of their probabilities.
        """
        return self._changed(learning.merge, labels, into)

    def _answers(self, X: Any, task: Any) -> Array:
        check_is_fitted(self)
        x, column = self.features_.inputs(self._data(X)), np.searchsorted(self.classes_, self.labels_)  # of each label
        probabilities, task = (
            np.zeros((len(x), len(self.classes_))),
            task.tolist() if isinstance(task, Tensor) else task,
        )
        for k, rows in self.bookkeeping_.rows_by_task(task, len(x)):
            with self._threads():
                p = label_probabilities(self.learner_, self.bookkeeping_, x[rows], k)
            probabilities[np.ix_(rows, column)] = p
        return probabilities

    def _novelty(self, X: Any) -> Array | None:
        with self._threads():
            return novelty_of(self.learner_, self.portraits_, self.features_.inputs(self._data(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """Return the share of samples that are classified correctly; ``task`` as in :meth:`predict_proba`."""
        return float(accuracy_score(y, self.predict(X, task), sample_weight=sample_weight))

    def evaluate(self, X: Any, y: Any, task: Any = None) -> Evaluation:
        """Evaluate predictions: accuracy by class with intervals, confusions, calibration.

        Parameters
        ----------
        X, y
            Samples and their true labels, of the type that was learned; labels never learned count as wrong.
        task
            As in :meth:`predict_proba`.
        """
        probabilities = self.predict_proba(X, task)
        best, truth = probabilities.argmax(1), label_array(y)
        check_consistent_length(probabilities, truth)
        if kind_of(truth) != kind_of(self.labels_):
            raise InputError(
                f"y has {kind_of(truth)} as labels, but this model has learned {kind_of(self.labels_)}: give "
                "labels of that type"
            )
        return evaluate(truth, self.classes_[best], probabilities.max(1), self.labels_)

    def replay(self, n: int = 100, task: Name | None = None, random_state: int = 0) -> tuple[Array, Array]:
        """Return what the model would replay: n generated samples, and the labels that it gives them.

        Parameters
        ----------
        n
            How many; samples assigned to a forgotten class are left out.
        task
            In Task-IL, whose classes to choose the labels from.
        random_state
            The seed of the noise that they are generated from.
        """
        check_is_fitted(self)
        net = self.learner_.net
        if not isinstance(net, GenerativeClassifier):
            raise InputError(
                f"method {self.choice_.method!r} generates nothing, so it has nothing to replay; rtf, for example, does"
            )
        with self._threads():
            x = without_forgotten(self.learner_, net.generate(n, stream(random_state, "replay")))
        samples = self.features_.samples(x)
        return samples, self.predict(samples, task)

    def report(self) -> list[selfreport.Memory]:
        """Return how well each class is remembered, as far as can be known without old data."""
        check_is_fitted(self)
        with self._threads():
            replayed = selfreport.replayed_counts(self.learner_, self.seed_)
        by_label = {p: n for p, (n,) in self.bookkeeping_.by_label({c: (n,) for c, n in replayed.items()}).items()}
        painted = portraits.by_label(self.portraits_, self.bookkeeping_)
        return selfreport.memories(self.labels_.tolist(), self.lessons_, by_label, painted)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, with everything needed to continue learning bit-identically."""
        from relive.classifier.modelfile import save

        save(self, Path(path))

    @property
    def pending_(self) -> int:
        """How many samples wait to be learned; predictions do not reflect them yet."""
        return len(self.waiting_) if self.waiting_ is not None else 0

    # ---- learning and changing -----------------------------------------------------------------------------------

    def _take_over(self, draft: Self) -> Self:
        """Adopt what the draft has learned, in one assignment that cannot be interrupted halfway."""
        own = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = own | {name: value for name, value in vars(draft).items() if name.endswith("_")}
        return self

    def _changed(self, change: Callable[..., None], *what: Any) -> Self:
        """Change what was learned, completely or not at all."""
        check_is_fitted(self)
        waiting.check_none(self)
        draft = copy.copy(self)
        change(draft, *what)
        return self._take_over(draft)

    def _data(self, X: Any, reset: bool = False) -> Array:
        """Return samples as an array (n, features) of float64, float32 or uint8."""
        if isinstance(X, Tensor):
            X = (X.float() if X.dtype == torch.bfloat16 else X).detach().cpu().numpy()
        data: Array = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32, np.uint8])
        return data

    def _threads(self) -> AbstractContextManager[None]:
        """Compute with the requested number of threads."""
        return threads(parameters.thread_count(self.n_jobs))

    # ---- being a scikit-learn estimator, copied and stored ---------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "learner_" in vars(self)

    def __copy__(self) -> Self:
        """Return an independent model: what was learned is never changed in place, only replaced."""
        other = type(self).__new__(type(self))
        other.__dict__ = dict(vars(self))
        if self.__sklearn_is_fitted__():
            other.notes_ = copy.deepcopy(self.notes_)  # which are the user's to change
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a model that shares nothing with this one; its network is copied, not rebuilt."""
        other = type(self).__new__(type(self))
        other.__dict__ = copy.deepcopy(dict(vars(self)), memo)
        return other

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {"learner_": state["learner_"].state()} if "learner_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "learner_" in state:
            self.learner_ = learning.new_learner(self, self.bookkeeping_.scenario_with())
            self.learner_.load_state(state["learner_"])
