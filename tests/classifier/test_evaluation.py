"""How good a model is: every figure against scikit-learn's or a plain loop."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score

from relive import ContinualClassifier
from relive._util.errors import InputError
from relive.classifier.evaluation import changes, evaluate
from tests.classifier.digits import rows


@pytest.fixture
def asked() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.choice(["cat", "dog", "eel", "owl"], 500)
    answers = np.where(rng.random(500) < 0.7, y, rng.choice(["cat", "dog", "eel"], 500))
    return y, answers, rng.random(500)


def test_accuracies_and_confusions_are_scikit_learn_s(asked: tuple[np.ndarray, ...]) -> None:
    y, answers, confidence = asked
    done = evaluate(y, answers, confidence, np.array(["cat", "dog", "eel"]))
    assert done.overall.share == accuracy_score(y, answers)
    np.testing.assert_array_equal(done.confusion, confusion_matrix(y, answers))
    recalls = recall_score(y, answers, average=None, zero_division=0)
    np.testing.assert_allclose([share.share for share in done.by_class.values()], recalls)
    assert done.unknown == ["owl"]
    assert json.loads(json.dumps(done.to_json()))["n"] == 500


def test_the_calibration_error_as_it_is_defined(asked: tuple[np.ndarray, ...]) -> None:
    y, answers, confidence = asked
    confidence[:3] = [0.0, 1.0, 0.5]  # both ends, and a bin edge
    total = 0.0
    for b in range(10):
        mine = [i for i, c in enumerate(confidence) if b / 10 <= c < (b + 1) / 10 or (b == 9 and c == 1)]
        if mine:
            right = sum(y[i] == answers[i] for i in mine) / len(mine)
            total += len(mine) / len(y) * abs(right - sum(confidence[i] for i in mine) / len(mine))
    done = evaluate(y, answers, confidence, np.unique(answers))
    assert done.calibration_error == pytest.approx(total)
    assert done.confidence == pytest.approx(confidence.mean())
    assert sum(b.n for b in done.reliability) == 500


def test_the_interval_is_wilson_s() -> None:
    share = evaluate(np.zeros(50, int), np.repeat([0, 1], [40, 10]), np.ones(50), np.arange(2)).overall
    n, p, z = 50, 0.8, 1.959963984540054
    middle, margin = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    np.testing.assert_allclose(
        share.interval, [(middle - margin) / (1 + z * z / n), (middle + margin) / (1 + z * z / n)]
    )


def test_what_has_changed_between_two_models() -> None:
    y = np.repeat([0, 1], [6, 4])
    before = np.array([0, 0, 0, 0, 1, 1, 0, 0, 0, 0])
    after = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
    total, zero, one = changes(y, before, after)
    assert (total.label, total.gained, total.lost) == (None, 4, 1)
    assert total.p == pytest.approx(2 * (math.comb(5, 0) + math.comb(5, 1)) / 2**5)
    assert (zero.before.share, zero.after.share, zero.gained, zero.lost) == (4 / 6, 0.5, 0, 1)
    assert (one.before.share, one.after.share, one.p) == (0, 1, 0.125)


def test_a_model_evaluates_itself_with_its_own_answers() -> None:
    model = ContinualClassifier().partial_fit(*rows(0, 1)).partial_fit(*rows(2, 3))
    x, y = rows(0, 1, 2, 3, 7)
    done = model.evaluate(x, y)
    assert done.overall.share == model.score(x, y)
    assert done.unknown == [7]
    assert done.by_class[7].share == 0
    assert done.confidence == pytest.approx(model.predict_proba(x).max(1).mean())
    with pytest.raises(InputError, match="y has strings as labels, but this model has learned numbers"):
        model.evaluate(x, y.astype(str))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.evaluate(x, y[1:])


def test_in_task_il_the_task_is_given() -> None:
    model = ContinualClassifier(scenario="task").partial_fit(*rows(0, 1)).partial_fit(*rows(2, 3))
    x, y = rows(0, 1)
    assert model.evaluate(x, y, task=0).overall.share > 0.9
    assert model.evaluate(x, y, task=1).overall.share == 0
