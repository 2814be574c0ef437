"""Fine-tuning against plain cross entropy, and how settings are checked."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

from relive._util.errors import InputError
from relive.core.facts import facts_of
from relive.methods import METHODS, make_method, method_class
from relive.methods.none import FineTuning
from tests import plain

SCENARIOS = ["task", "domain", "class"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_loss_and_gradient(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("none", scenario, tasks)
    for k, task in enumerate(tasks):
        for step in plain.record(learner, tasks[: k + 1], 3):
            assert len(step.batch.x) == 8
            theta = plain.double(step.theta)
            labels = plain.labels_of(task, step.batch.x)
            plain.check(step, theta, layout.current_loss(plain.logits(theta, step.batch.x), k, labels, seen=k + 1))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_inactive_units_do_not_learn(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("none", scenario, tasks)
    before = plain.parameters(learner.net)["head.weight"]
    learner.learn(tasks[:1], 4)
    moved = (plain.parameters(learner.net)["head.weight"] != before).any(1).nonzero().flatten().tolist()
    assert moved == layout.columns(0, seen=1)


def test_keeps_nothing() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("none", "class", tasks)
    learner.learn(tasks[:1], 2)
    assert learner.method.state() == {}
    assert learner.method.stored_numbers(tasks) == 0


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_the_constructor_s(name: str) -> None:
    facts, cls = METHODS[name], method_class(name)
    assert facts_of(cls) is facts
    arguments = inspect.signature(cls).parameters.values()
    assert facts.defaults == {argument.name: argument.default for argument in arguments}
    made = cls(**facts.defaults)
    assert {key: getattr(made, key) for key in facts.defaults} == facts.defaults  # stored unchanged
    for setting in facts.settings:
        assert setting.low <= setting.default <= setting.high
        assert setting.explain


def test_settings_are_passed_on() -> None:
    made: Any = make_method("online-ewc", gamma=0.5, lam=3)
    assert (made.gamma, made.lam) == (0.5, 3)


@pytest.mark.parametrize(
    ("method", "setting", "value"),
    [
        ("si", "c", -0.1),
        ("si", "c", math.nan),
        ("si", "c", math.inf),
        ("si", "xi", 0.0),
        ("si", "c", "0.1"),
        ("si", "c", True),
        ("ewc", "lam", -1),
        ("online-ewc", "gamma", 1.01),
        ("xdg", "proportion", 1.0),
        ("xdg", "proportion", -0.01),
    ],
)
def test_out_of_range(method: str, setting: str, value: Any) -> None:
    title, (low, high) = METHODS[method].title, METHODS[method].limits[setting]
    with pytest.raises(InputError) as caught:
        make_method(method, **{setting: value})
    message = str(caught.value)
    assert setting in message
    assert title in message
    assert f"at least {low:g} and at most {high:g}" in message


@pytest.mark.parametrize(
    ("method", "setting", "hint"),
    [("si", "cc", "'c'"), ("ewc", "lamb", "'lam'"), ("online-ewc", "gama", "'gamma'"), ("xdg", "proprtion", "'propo")],
)
def test_unknown_setting(method: str, setting: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"did you mean {hint}"):
        make_method(method, **{setting: 0.5})


def test_setting_of_a_method_without_any() -> None:
    with pytest.raises(InputError, match="RtF has no settings"):
        make_method("rtf", lam=1)


def test_unknown_method() -> None:
    with pytest.raises(InputError, match="did you mean 'dgr-distill'"):
        method_class("dgr-distil")
    assert method_class("none") is FineTuning
