"""The number of classes that a network claims to have learned is checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from relive import ContinualClassifier
from relive._util.errors import InputError


@pytest.mark.parametrize("method", ["bir", "generative-classifier"])
@pytest.mark.parametrize("met", [-1, 255])
def test_a_number_of_learned_classes_that_cannot_be_is_refused(method: str, met: int) -> None:
    X, y = np.random.default_rng(0).random((12, 4)), np.arange(12) % 3
    learner = ContinualClassifier(method, hidden=4, latent=2, iterations=2, batch_size=8).partial_fit(X, y).learner_
    state = learner.state()
    learner.check_state(state)
    with pytest.raises(InputError, match=f"met = {met}: a network for .* classes cannot have learned so many"):
        learner.check_state(state | {"net.met": torch.tensor(met)})
