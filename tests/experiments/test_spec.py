"""Specs and results as JSON, and the digest that names a run."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relive._util.errors import InputError
from relive._util.fidelity import AS_RUN, AS_WRITTEN, CHOICES
from relive.experiments.spec import RunResult, RunSpec, make_spec
from relive.paper.published import PRESETS

SPEC = make_spec("split", "class", "si", seed=3)
CHANGES: dict[str, Any] = {
    "protocol": "permuted",
    "scenario": "task",
    "method": "none",
    "dataset": "digits",
    "seed": 4,
    "tasks": 2,
    "iters": 7,
    "learning_rate": 0.002,
    "batch_size": 64,
    "hidden": 401,
    "latent": 99,
    "settings": {"c": 0.2, "xi": 0.1},
    "fidelity": AS_WRITTEN,
    "threads": 2,
    "sources": {"my_file.py:Mine": "0123456789ab"},
    "encoder": "conv",
    "optimizer": "sgd",
    "device": "cuda",
}


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    whole = st.integers(1, 10**6)
    return RunSpec(
        protocol=draw(st.sampled_from(["split", "permuted"])),
        scenario=draw(st.sampled_from(["task", "domain", "class"])),
        method=draw(st.sampled_from(["none", "si", "rtf"])),
        dataset=draw(st.sampled_from(["mnist", "digits"])),
        seed=draw(st.integers(0, 2**40)),
        tasks=draw(whole),
        iters=draw(whole),
        learning_rate=draw(st.floats(1e-12, 10)),
        batch_size=draw(whole),
        hidden=draw(whole),
        latent=draw(whole),
        settings=draw(st.dictionaries(st.sampled_from(["c", "xi", "lam"]), st.floats(0, 1e12))),
        fidelity=AS_RUN.choose({name: draw(st.sampled_from(options)) for name, options in CHOICES.items()}),
        threads=draw(whole),
    )


@given(specs())
def test_json_round_trip(spec: RunSpec) -> None:
    again = RunSpec.from_json(through_json(spec.to_json()))
    assert again == spec
    assert (again.digest, again.name) == (spec.digest, spec.name)


def test_changes_cover_every_field() -> None:
    assert set(CHANGES) == {field.name for field in fields(RunSpec)}


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_is_in_the_digest(name: str) -> None:
    assert replace(SPEC, **{name: CHANGES[name]}).digest != SPEC.digest


@pytest.mark.parametrize("name", CHOICES)
def test_every_fidelity_choice_is_in_the_digest(name: str) -> None:
    options = CHOICES[name]
    assert len({replace(SPEC, fidelity=AS_RUN.choose({name: option})).digest for option in options}) == len(options)


def test_the_digest_does_not_depend_on_the_process_or_the_order() -> None:
    code = (
        "import json, sys; from relive.experiments.spec import RunSpec; "
        "print(RunSpec.from_json(json.load(sys.stdin)).digest)"
    )
    for hash_seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        told = json.dumps(SPEC.to_json())
        out = subprocess.run(
            [sys.executable, "-c", code], env=environment, input=told, capture_output=True, check=True, text=True
        )
        assert out.stdout.strip() == SPEC.digest
    other_order = dict(reversed(list(SPEC.settings.items())))
    assert list(other_order) != list(SPEC.settings)
    assert replace(SPEC, settings=other_order).digest == SPEC.digest
    assert RunSpec.from_json(dict(reversed(SPEC.to_json().items()))).digest == SPEC.digest


def test_equal_specs_have_one_digest() -> None:
    """9 and 9.0 are the same strength, and the command line always gives 9.0."""
    whole = make_spec("split", "task", "ewc", settings={"lam": 9}, learning_rate=1)
    real = make_spec("split", "task", "ewc", settings={"lam": 9.0}, learning_rate=1.0)
    assert whole == real
    assert whole.digest == real.digest


def test_the_name_can_be_a_directory_s() -> None:
    assert SPEC.name == f"split-class-si-mnist-seed3-{SPEC.digest}"
    assert "/" not in SPEC.name


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("iter", "iters"), ("learningrate", "learning_rate"), ("protocl", "protocol"), ("Seed", "seed")],
)
def test_an_unknown_key(key: str, nearest: str) -> None:
    with pytest.raises(InputError, match=f"unknown key of RunSpec '{key}': did you mean '{nearest}'"):
        RunSpec.from_json(SPEC.to_json() | {key: 1})


@pytest.mark.parametrize("key", SPEC.to_json())
def test_a_missing_key(key: str) -> None:
    values = SPEC.to_json()
    del values[key]
    with pytest.raises(InputError, match=f"RunSpec lacks {key}"):
        RunSpec.from_json(values)


def test_an_unknown_fidelity_choice() -> None:
    values = SPEC.to_json()
    with pytest.raises(InputError, match="did you mean 'fisher_labels'"):
        RunSpec.from_json(values | {"fidelity": values["fidelity"] | {"fisher_label": "true"}})
    with pytest.raises(InputError, match="choose one of predicted, true, expected"):
        RunSpec.from_json(values | {"fidelity": values["fidelity"] | {"fisher_labels": "False"}})


def test_a_missing_fidelity_choice() -> None:
    """A missing choice must not be guessed."""
    values = SPEC.to_json()
    some = {name: value for name, value in values["fidelity"].items() if name != "fisher_labels"}
    with pytest.raises(InputError, match="fisher_labels"):
        RunSpec.from_json(values | {"fidelity": some})


WHOLE = ("tasks", "iters", "batch_size", "hidden", "latent", "threads")


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in WHOLE for value in (0, 1.5, True, "3")]
    + [("seed", -1), ("seed", 0.0)]
    + [("learning_rate", value) for value in (0, -1, math.nan, math.inf, "0.1", True)],
)
def test_values_out_of_range(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        replace(SPEC, **{name: value})


@pytest.mark.parametrize(("name", "value", "nearest"), [("protocol", "splitt", "split"), ("scenario", "clas", "class")])
def test_names_with_a_hint(name: str, value: Any, nearest: str) -> None:
    with pytest.raises(InputError, match=f"did you mean '{nearest}'"):
        make_spec(**{name: value})


def test_a_stored_spec_may_name_what_is_not_installed_here() -> None:
    """Results from other machines, with methods, protocols and data sets of their own, are still results."""
    values = SPEC.to_json() | {"protocol": "theirs", "method": "their.module:Method", "dataset": "their data"}
    spec = RunSpec.from_json(values)
    assert spec.name.startswith("theirs-class-Method-their-data-seed")
    for name in ("protocol", "method", "dataset"):
        with pytest.raises(InputError, match=f"{name} = ''"):
            RunSpec.from_json(values | {name: ""})


def test_make_spec_with_unknown_names() -> None:
    with pytest.raises(InputError, match="did you mean 'rtf'"):
        make_spec(method="rtff")
    with pytest.raises(InputError, match="did you mean 'digits'"):
        make_spec(dataset="digit")


def test_make_spec_with_an_unknown_field() -> None:
    with pytest.raises(InputError, match="did you mean 'iters'"):
        make_spec(iter=100)


@pytest.mark.parametrize(("protocol", "values"), PRESETS.items())
def test_make_spec_starts_from_the_paper_s_preset(protocol: str, values: dict[str, Any]) -> None:
    spec = make_spec(protocol, "class", "rtf")
    assert {name: getattr(spec, name) for name in values} == values
    assert (spec.seed, spec.fidelity, spec.dataset, spec.threads) == (0, AS_RUN, "mnist", 1)
    assert make_spec(protocol, "class", "rtf", hidden=12, seed=5) == replace(spec, hidden=12, seed=5)


def test_the_paper_s_presets() -> None:
    split, permuted = make_spec("split"), make_spec("permuted")
    got = [(s.tasks, s.iters, s.learning_rate, s.hidden, s.batch_size, s.latent) for s in (split, permuted)]
    assert got == [(5, 2000, 0.001, 400, 128, 100), (10, 5000, 0.0001, 1000, 128, 100)]


def test_a_spec_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        SPEC.seed = 1  # type: ignore[misc]


def test_a_spec_keeps_its_settings_whatever_happens_to_the_dictionary() -> None:
    settings = {"c": 0.1, "xi": 0.1}
    spec = replace(SPEC, settings=settings)
    digest = spec.digest
    settings["c"] = 7.0
    assert spec.digest == digest


def test_the_settings_of_a_spec_are_frozen_too() -> None:
    """Otherwise a run could use other settings than its digest and its directory."""
    spec = make_spec("split", "class", "si")
    settings: Any = spec.settings
    with pytest.raises(TypeError):
        settings["c"] = 7.0


def test_a_spec_can_be_copied_and_be_a_key() -> None:
    copied = copy.deepcopy(SPEC)
    assert copied == SPEC
    assert {SPEC: 1}[copied] == 1


@pytest.mark.parametrize("value", ["much", None, True])
def test_settings_in_a_file_that_are_no_numbers(value: Any) -> None:
    with pytest.raises(InputError, match=r"\bc\b"):
        RunSpec.from_json(SPEC.to_json() | {"settings": {"c": value, "xi": 0.1}})


@pytest.mark.parametrize("key", ["fidelity", "settings"])
@pytest.mark.parametrize("value", ["as_run", None])
def test_a_file_with_another_kind_of_value(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=key):
        RunSpec.from_json(SPEC.to_json() | {key: value})


def result() -> RunResult:
    values: dict[str, Any] = {
        "spec": replace(SPEC, tasks=2),
        "average_accuracy": 0.1 + 0.2,
        "accuracy_matrix": [[1 / 3, 0.0], [0.5, 2 / 3]],
        "forgetting": -0.1,
        "backward_transfer": 1e-17,
        "curve": [(0, 1, [0.25]), (1, 1, [0.125, 1 / 7])],
        "train_seconds": 12.34,
        "shown": {"title": "Mine"},
        "parameters": 10,
        "stored_numbers": 0,
        "versions": {"torch": "2"},
    }
    rest = {field.name: 0.5 for field in fields(RunResult) if field.name not in values}
    return RunResult(**values | rest)


def test_a_result_as_json() -> None:
    again = RunResult.from_json(through_json(result().to_json()))
    assert again == result()
    with pytest.raises(InputError, match="unknown key of RunResult 'curv': did you mean 'curve'"):
        RunResult.from_json(result().to_json() | {"curv": []})
    values = result().to_json()
    del values["forgetting"]
    with pytest.raises(InputError, match="RunResult lacks forgetting"):
        RunResult.from_json(values)


def test_the_encoder_came_later() -> None:
    """A spec of the paper's encoder is written as before encoders could be chosen, so its digest stays."""
    assert "encoder" not in SPEC.to_json()
    other = make_spec("split", "class", "si", seed=3, encoder="conv")
    assert other.to_json() == SPEC.to_json() | {"encoder": "conv"}
    assert other.digest != SPEC.digest
    assert RunSpec.from_json(through_json(other.to_json())) == other


def test_an_encoder_at_an_address(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def make(shape, hidden, rng): ...")
    spec = make_spec(encoder=f"{path}:make")
    assert list(spec.sources) == [f"{path}:make"]
    spec.check_sources()
    path.write_text("def make(shape, hidden, rng): ...  # otherwise")
    with pytest.raises(InputError, match="has changed since the run was requested"):
        spec.check_sources()
    assert make_spec(encoder=f"{path}:make").digest != spec.digest
    with pytest.raises(InputError, match="unknown encoder 'mpl': did you mean 'mlp'"):
        make_spec(encoder="mpl")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("average_accuracy", value) for value in ("x", math.inf, math.nan, -0.1, 1.1, True, None, 10**400)),
        *(("forgetting", value) for value in ("x", math.inf, 2.0)),
        *(("train_seconds", value) for value in (-1.0, math.inf, "x")),
        *(("cpu_seconds", value) for value in (math.nan, "x")),
        *(("parameters", value) for value in (1.5, -1, "x", True)),
        ("accuracy_matrix", [[0.5]]),
        ("accuracy_matrix", [[0.5, 0.5], [0.5, math.nan]]),
        ("accuracy_matrix", [[0.5, 0.5], [0.5, "x"]]),
        ("accuracy_matrix", {"0": 1}),
        ("curve", [[2, 1, [0.5]]]),
        ("curve", [[0, 1.5, [0.5]]]),
        ("curve", [[0, 1, [None]]]),
        ("versions", [1]),
        ("versions", {"torch": 2}),
        ("shown", {"title": []}),
    ],
)
def test_a_result_is_what_it_says_or_is_refused_by_the_field(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=key):
        RunResult.from_json(result().to_json() | {key: value})
