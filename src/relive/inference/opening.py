"""Opening a model for prediction, without torch if possible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from relive.classifier.modelheader import Header, described
from relive.inference.predictor import NeedsTorchError, checked

if TYPE_CHECKING:
    from relive.classifier.asked import Asked
    from relive.classifier.bookkeeping import Array
    from relive.classifier.choice import Choice
    from relive.classifier.features import Features
    from relive.classifier.lessons import Lesson


class Model(Protocol):
    """The prediction interface of a model: a ``ContinualClassifier``, or a ``Predictor``, which needs no torch."""

    notes_: dict[str, Any]
    n_features_in_: int
    features_: Features
    choice_: Choice
    asked_: Asked

    @property
    def scenario(self) -> str:
        """The scenario's name."""

    @property
    def pending_(self) -> int:
        """How many samples wait to be learned."""

    @property
    def classes_(self) -> Array:
        """The labels seen so far, and those declared, sorted."""

    @property
    def labels_(self) -> Array:
        """The labels seen so far, in the order in which they were first seen."""

    @property
    def lessons_(self) -> tuple[Lesson, ...]:
        """What is remembered about each task."""

    def predict_proba(self, X: Any, task: Any = None) -> Array:
        """Return the probability of every class of ``classes_``."""

    def judged(self, X: Any, task: Any = None, reject: float | None = None) -> tuple[Array, Array]:
        """Return these probabilities, and which samples are rejected."""


def opened(path: Path, *, allow_code: bool) -> tuple[Header, Model]:
    """Return a model file's header, and the model for prediction; errors are those of ``relive.load``."""
    header, arrays = described(path, allow_code=allow_code)
    try:
        return header, checked(path, header, arrays)
    except NeedsTorchError:
        from relive.classifier.modelfile import load

        return header, load(path, allow_code=allow_code)
