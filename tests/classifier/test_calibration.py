"""The temperature: summed losses equal a plain loop's; the temperature that generated the samples is recovered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relive.classifier.calibration import TEMPERATURES, losses, temperature, tempered


def drawn(n: int, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities whose logits are t times too large, and classes drawn from the true ones."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, 4)) * 2
    truth = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    classes = np.array([rng.choice(4, p=p) for p in truth])
    sure = np.exp(t * logits)
    return sure / sure.sum(1, keepdims=True), classes


def test_the_losses_at_every_temperature_by_a_plain_loop() -> None:
    p, right = drawn(20, 1.0)
    for t, loss in zip(TEMPERATURES, losses(p, right), strict=True):
        expected = 0.0
        for row, c in zip(p, right, strict=True):
            powers = [float(v) ** (1 / t) for v in row]
            expected -= math.log(powers[c] / sum(powers))
        assert loss == pytest.approx(expected)


@pytest.mark.parametrize("true", [0.5, 1.0, 4.0])
def test_the_temperature_that_samples_were_made_with_is_found(true: float) -> None:
    assert temperature(losses(*drawn(5000, true)), usual=1.0) == pytest.approx(true, rel=0.2)


def test_losses_of_tasks_add_up_and_few_samples_say_little() -> None:
    p, right = drawn(400, 4.0)
    np.testing.assert_allclose(losses(p, right), losses(p[:100], right[:100]) + losses(p[100:], right[100:]))
    assert temperature(np.zeros_like(TEMPERATURES), usual=2.0) == 2.0
    assert temperature(losses(p[:1], p[:1].argmax(1)), usual=2.0) > 0.9  # one sample changes little


def test_no_answer_changes_and_what_is_impossible_stays_so() -> None:
    p = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])
    for t in (0.5, 1.0, 8.0):
        q = tempered(p, t)
        np.testing.assert_array_equal(q.argmax(1), p.argmax(1))
        np.testing.assert_allclose(q.sum(1), 1)
        assert (q[:, 2] == 0).all()
    np.testing.assert_allclose(tempered(p, 2.0)[0, :2], np.sqrt([0.7, 0.3]) / np.sqrt([0.7, 0.3]).sum())
