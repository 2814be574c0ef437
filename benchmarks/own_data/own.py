"""The methods of relive, through its public estimator."""

from __future__ import annotations

from typing import final

from benchmarks.own_data.learner import Learner, Setting
from benchmarks.own_data.samples import Array
from relive import ContinualClassifier


@final
class Own(Learner):
    """A ContinualClassifier: a task is a call of ``partial_fit``; inputs are passed unscaled, pictures with a shape."""

    def __init__(self, setting: Setting, method: str, keeps_data: bool = False) -> None:
        self.model = ContinualClassifier(
            method, shape=setting.shape, allow_stored_data=keeps_data, random_state=setting.seed
        )

    def learn(self, X: Array, y: Array) -> None:
        self.model.partial_fit(X, y)

    def predict(self, X: Array) -> Array:
        return self.model.predict(X)

    @property
    def numbers_kept(self) -> int:
        learner, features = self.model.learner_, self.model.features_
        kept = learner.n_parameters + learner.method.stored_numbers([]) + self.model.asked_.numbers
        return kept + features.mean.size + features.scale.size
