"""Samples that were learned and then removed leave sums and predictions as if they had never been learned."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from relive import ContinualClassifier
from relive.core.sources import Part
from relive.data.tasks import Examples
from relive.methods.closed_form import ClosedForm
from tests.classifier.digits import X, Y


@pytest.mark.parametrize("forgettable", [False, True])
@pytest.mark.parametrize("method", ["discriminant", "analytic", "slda", "ncm", "domains"])
def test_samples_that_are_taken_back_leave_a_learner_that_never_saw_them(method: str, forgettable: bool) -> None:
    if method == "domains" and forgettable:
        pytest.skip("domains cannot forget without trace")
    settings = {"numbers": 3e4} if method in ("discriminant", "analytic", "domains") else {}
    scenario = "domain" if method == "domains" else "class"
    model = ContinualClassifier(method, scenario, settings=settings, forgettable=forgettable)
    first, more = np.flatnonzero(Y < 3)[:120], np.flatnonzero(Y < 3)[120:200]
    model.fit(X[first], Y[first])
    learner = copy.deepcopy(model.learner_)
    rows = model.features_.rows(X[more])
    part = Part(0, Examples(rows, torch.from_numpy(Y[more])))
    learner.method.after_task(learner.net, [part], 1)
    x = model.features_.inputs(X[:300])
    assert not torch.allclose(learner.logits(x, 0), model.learner_.logits(x, 0), atol=1e-3)
    learner.unlearn(part, torch.arange(len(more)))
    torch.testing.assert_close(learner.logits(x, 0), model.learner_.logits(x, 0), atol=1e-3, rtol=1e-4)


def test_what_is_taken_back_is_what_was_counted_to_the_last_bit() -> None:
    """Features in float32 depend on the batch; for a few similar samples only rounding error would remain."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (6, 16)).astype(float) * [6, *[1] * 15]
    model = ContinualClassifier("discriminant", calibrate=False).fit(x, np.zeros(6, int))
    learner, rows = copy.deepcopy(model.learner_), model.features_.rows(x)
    learner.unlearn(Part(0, Examples(rows, torch.zeros(6, dtype=torch.long))), torch.arange(6))
    method = learner.method
    assert isinstance(method, ClosedForm)
    assert method.sums.products is not None
    assert not method.sums.total.any()
    assert method.sums.products.abs().max() < 1e-12
