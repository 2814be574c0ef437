"""Predictions without torch equal the estimator's, for every method, scenario, likelihood and encoder."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive._util.errors import InputError
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.classifier import parameters
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelheader import KIND, VERSION
from relive.inference.predictor import NeedsTorchError, predictor_of
from relive.networks import likelihoods
from relive.networks.catalogue import LIKELIHOODS
from tests.inference.models import CELLS, CLOSED_FORMS, PIXELS, TORCH_ONLY, learned, questions, rounding, saved

SUPPORTED = [(m, s) for m, s in CELLS if m not in TORCH_ONLY]


def assert_same_answers(model: ContinualClassifier, path: Path) -> None:
    x, task = questions(model)
    predictor = predictor_of(saved(model, path))
    expected, found = model.predict_proba(x, task), predictor.predict_proba(x, task)
    assert (abs(found - expected) <= 1e-5 + rounding(model, x, task)).all()
    assert predictor.classes_.tolist() == model.classes_.tolist()
    assert predictor.classes_[found.argmax(1)].tolist() == model.predict(x, task).tolist()


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(("method", "scenario"), SUPPORTED)
def test_every_method_answers_as_with_torch(method: str, scenario: str, likelihood: str, tmp_path: Path) -> None:
    assert_same_answers(learned(method, scenario, likelihood), tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [None, (8, 8)])
@pytest.mark.parametrize("encoder", ["mlp", "inputs", "conv", "random", "random-flat"])
@pytest.mark.parametrize(
    ("method", "scenario"), [(m, s) for m, s in SUPPORTED if m in ("none", "icarl", *CLOSED_FORMS)]
)
def test_every_encoder_gives_the_same_features(
    method: str, scenario: str, encoder: str, shape: Any, tmp_path: Path
) -> None:
    if encoder == "conv" and shape is None:
        pytest.skip("conv is for pictures")
    iterations = 8 if encoder == "inputs" else 30
    assert_same_answers(
        learned(method, scenario, "gaussian", encoder, shape, iterations=iterations), tmp_path / "model"
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(17, 20), (8, 8, 3), (3, 9, 11), (20, 17, 3)])
@pytest.mark.parametrize(("method", "encoder"), [("none", "conv"), ("analytic", "random"), ("discriminant", None)])
def test_pictures_of_any_size_and_in_colour(method: str, encoder: str | None, shape: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    patterns = rng.integers(60, 196, (3, int(np.prod(shape))))
    y = np.arange(150) % 3
    x = (patterns[y] + rng.integers(-60, 60, (150, patterns.shape[1]))).astype(np.uint8)
    model = ContinualClassifier(method, encoder=encoder, shape=shape, hidden=1100, iterations=5).partial_fit(x, y)
    predictor = predictor_of(saved(model, tmp_path / "model"))
    off = abs(predictor.predict_proba(x) - model.predict_proba(x))
    assert (off <= 1e-5 + rounding(model, x, None)).all()


@pytest.mark.parametrize("method", ["analytic", "discriminant", "domains"])
def test_wide_rows_go_along_their_axes(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = rng.normal(0, 1, (3, 600))[y] + rng.normal(0, 9, (300, 600))
    model = ContinualClassifier(method, settings={"numbers": 1.5e5}).partial_fit(x, y)
    assert "encoder.axes" in " ".join(model.learner_.state())
    x = rng.normal(0, 9, (200, 600))  # of no class: predictions are uncertain
    found = predictor_of(saved(model, tmp_path / "model")).predict_proba(x)
    assert (found.max(1) < 0.9).any()
    assert (abs(found - model.predict_proba(x)) <= 1e-5 + rounding(model, x, None)).all()


@pytest.mark.parametrize("scenario", ["domain", "class", "task"])
def test_domains_that_are_told_apart_answer_as_with_torch(scenario: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model, y = ContinualClassifier("domains", scenario, settings={"numbers": 2e4}), np.arange(700) % 2
    patterns = rng.normal(0, 1, (3, 2, 30))
    asked = []
    for k, pattern in enumerate((patterns[0], patterns[1], patterns[0])):  # the third belongs to the first's domain
        x = pattern[y] + rng.normal(0, 0.3, (700, 30))
        model.partial_fit(x, y + 2 * k * (scenario == "class"), task=k)
        asked.append(x[:40])
    assert len(model.learner_.method.domains_) == 2  # type: ignore[attr-defined]
    share = np.linspace(0, 1, 40)[:, None]
    asked.append(share * asked[0] + (1 - share) * asked[1])  # somewhere between two domains
    task = np.repeat([0, 1, 2, 1], 40) if scenario == "task" else None
    x = np.concatenate(asked)
    found = predictor_of(saved(model, tmp_path / "model")).predict_proba(x, task)
    assert (abs(found - model.predict_proba(x, task)) <= 1e-5 + rounding(model, x, task)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "scenario"), SUPPORTED)
def test_classes_that_were_changed_answer_as_with_torch(method: str, scenario: str, tmp_path: Path) -> None:
    model = copy.copy(learned(method, scenario)).rename("digit 0", "zero").merge(["digit 1", "digit 2"], "one or two")
    assert_same_answers(model, tmp_path / "merged")
    assert_same_answers(model.forget("digit 3"), tmp_path / "forgotten")


def test_samples_that_wait_are_counted_and_change_no_answer(tmp_path: Path) -> None:
    model = ContinualClassifier("none", consolidate_every=100, allow_stored_data=True, hidden=9, iterations=5)
    x, y = PIXELS[:150] / 16, np.arange(150) % 2
    model.partial_fit(x[:100], y[:100]).partial_fit(x[100:], y[100:])
    predictor = predictor_of(saved(model, tmp_path / "model"))
    assert predictor.pending_ == model.pending_ == 50
    np.testing.assert_allclose(predictor.predict_proba(x), model.predict_proba(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("fidelity", ["as_run", "as_written"])
def test_xdg_gates_as_its_fidelity_says(fidelity: str, tmp_path: Path) -> None:
    assert_same_answers(learned("xdg", "task", fidelity=fidelity), tmp_path / "model")


@pytest.mark.parametrize("labels", [np.array([True, False]), np.array([2**62, -5]), np.array([3.0, 1.0])])
def test_labels_of_every_kind(labels: Any, tmp_path: Path) -> None:
    x, y = PIXELS[:60] / 16, labels[np.arange(60) % 2]
    model = ContinualClassifier("slda").partial_fit(x, y)
    predictor = predictor_of(saved(model, tmp_path / "model"))
    assert predictor.classes_.dtype == model.classes_.dtype
    assert predictor.classes_[predictor.predict_proba(x).argmax(1)].tolist() == model.predict(x).tolist()


@pytest.mark.parametrize("name", ["ewc", "si", "rtf"])
def test_files_of_before_are_read(name: str) -> None:
    import relive

    path = Path(__file__).parents[1] / "files" / f"{name}-0.1.safetensors"
    model, predictor = relive.load(path), predictor_of(path)
    x = np.random.default_rng(0).random((50, model.n_features_in_))
    task = model.lessons_[0].name if model.scenario == "task" else None
    np.testing.assert_allclose(predictor.predict_proba(x, task), model.predict_proba(x, task), rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", sorted(TORCH_ONLY))
def test_what_only_torch_can_compute_says_so(method: str, tmp_path: Path) -> None:
    with pytest.raises(NeedsTorchError, match=f"method '{method}' .* needs torch to predict"):
        predictor_of(saved(learned(method, "class"), tmp_path / "model"))


def test_code_of_ones_own_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('this was run')\n")
    path = saved(learned("none", "class"), tmp_path / "model")
    header, tensors = read_tensors(path, KIND, VERSION)
    header["parameters"]["encoder"] = f"{tmp_path}/mine.py:make"
    write_tensors(path, KIND, VERSION, header, tensors)
    with pytest.raises(InputError, match=r"refers to user code, .*mine.py:make"):
        predictor_of(path)


def test_what_is_known_without_torch_is_what_torch_has() -> None:
    assert ContinualClassifier().get_params() == parameters.DEFAULTS
    assert tuple(likelihoods.LIKELIHOODS) == LIKELIHOODS


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"method": "offline"}},
        {"parameters": {"method": "slda"}},
        {"parameters": {"surprise": 1}},
        {"parameters": {"encoder": "conv", "shape": [8, 8]}},
        {"n_features": 10**12},
        {"lessons": []},
        {"likelihood": "magic"},
        {"labels": {"dtype": "O", "values": ["x"]}},
        {"labels": {"dtype": "<U20000000", "values": ["a", "b", "c"]}},
        {"declared": {"dtype": "int64", "values": list(range(3000))}},
        {"notes": []},
        {"versions": 3},
        {"dreamt": {"7": 0.5}},
        {"dreamt": {"0": 2}},
        {"feature_names": ["one"]},
    ],
)
def test_a_header_that_lies_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = saved(learned("none", "class"), tmp_path / "model")
    header, tensors = read_tensors(path, KIND, VERSION)
    for name, value in change.items():
        header[name] = header[name] | value if name == "parameters" else value
    header["choice"] = {"method": header["parameters"]["method"], "reason": ""}
    write_tensors(path, KIND, VERSION, header, tensors)
    with pytest.raises(FileError, match="is not a valid model"):
        predictor_of(path)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("none", "learner.net.head.bias"),
        ("none", "learner.net.encoder.layer2.weight"),
        ("none", "learner.seen"),
        ("none", "features.mean"),
        ("xdg", "learner.method.gates"),
        ("discriminant", "learner.method.squares"),
        ("discriminant", "learner.method.count"),
        ("discriminant", "learner.method.total"),
        ("discriminant", "learner.net.encoder.spread"),
        ("icarl", "learner.method.x"),
        ("icarl", "learner.method.unit"),
        ("icarl", "learner.method.number"),
    ],
)
def test_arrays_that_lie_are_refused(method: str, name: str, tmp_path: Path) -> None:
    """Impossible shapes, types or values, or missing arrays: never a prediction, never another error."""
    import torch

    path = saved(learned(method, "task"), tmp_path / "model")
    header, tensors = read_tensors(path, KIND, VERSION)
    right = tensors[name]
    wrong = [right.to(torch.float16), right.unsqueeze(0), torch.cat([right.reshape(-1), right.reshape(-1)])]
    wrong += [
        torch.full_like(right, value) for value in ((torch.nan, torch.inf) if right.is_floating_point() else (99,))
    ]
    wrong += [torch.full_like(right, -7)] if name.endswith(("count", "gates", "unit", "number", "seen")) else []
    wrong += [torch.zeros_like(right)] if name.endswith(("spread", "count")) else []
    for tensor in wrong:
        write_tensors(path, KIND, VERSION, header, tensors | {name: tensor})
        with pytest.raises(FileError, match="is not a valid model"):
            predictor_of(path)
    write_tensors(path, KIND, VERSION, header, {n: t for n, t in tensors.items() if n != name})
    with pytest.raises(FileError, match="is not a valid model"):
        predictor_of(path)


def test_damaged_files_are_refused_as_by_load(tmp_path: Path) -> None:
    path = saved(learned("none", "class"), tmp_path / "model")
    raw = path.read_bytes()
    for damaged in (b"", b"hello, no model", raw[:100], raw[:-1], raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            predictor_of(path)
    with pytest.raises(InputError, match="there is no model"):
        predictor_of(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("x", "task", "why"),
    [
        (np.zeros((2, 5)), "t0", "have 5 features, but this model was trained on 64"),
        (np.zeros(64), "t0", r"have shape \(64,\)"),
        (np.zeros((0, 64)), "t0", r"have shape \(0, 64\)"),
        (np.full((1, 64), np.nan), "t0", "sample 1 has a missing or infinite value in feature 1"),
        ([["x"] * 64], "t0", "not a table of numbers"),
        (np.zeros((1, 64)), None, "Task-IL needs the task"),
        (np.zeros((1, 64)), "t7", "task 't7' was never learned"),
    ],
)
def test_questions_that_cannot_be_answered_say_why(x: Any, task: Any, why: str, tmp_path: Path) -> None:
    predictor = predictor_of(saved(learned("none", "task"), tmp_path / "model"))
    with pytest.raises(InputError, match=why):
        predictor.predict_proba(x, task)


HEAVY = """
import atexit, resource, sys
def told():
    used = resource.getrusage(resource.RUSAGE_SELF)
    heavy = sorted({"torch", "sklearn", "pandas"} & set(sys.modules))
    sys.stderr.write(f"{heavy} {used.ru_utime + used.ru_stime}")
atexit.register(told)
from relive.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["predict", "model", "one.csv", "--proba"],
        ["predict", "model", "labelled.csv"],
        ["inspect", "model"],
        ["inspect", "model", "--json"],
        ["methods"],
        ["table", "--runs-dir", str(Path(__file__).parents[2] / "reproduction")],
    ],
)
@pytest.mark.parametrize("method", ["discriminant", "rtf"])
def test_commands_that_need_no_torch_import_none(words: list[str], method: str, tmp_path: Path) -> None:
    saved(learned(method, "class"), tmp_path / "model")
    names = ",".join(f"f{i}" for i in range(64))
    row = ",".join(map(str, PIXELS[0] / 16))
    (tmp_path / "one.csv").write_text(f"{names}\n{row}\n")
    (tmp_path / "labelled.csv").write_text(f"{names},label\n{row},digit 0\n")
    done = subprocess.run(
        [sys.executable, "-c", HEAVY, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    heavy, _, seconds = done.stderr.splitlines()[-1].partition("] ")
    assert (done.returncode, heavy) == (0, "["), done.stderr
    assert words[0] == "table" or float(seconds) < 1
