"""The programs that the page offers to copy are run here, and do what the page did."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from relive import ContinualClassifier, RunSpec, load
from relive.cli import app as command_line
from relive.experiments.spec import make_spec
from relive.inference.opening import opened
from relive.studio.commands import as_python, words_of
from relive.studio.programs import Step
from tests.studio.served import Served, serving

pytestmark = pytest.mark.slow
LABELS = ("rose", "tulip", "0", "aster")


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("studio")) as served:
        yield served


def samples(first: int, n: int) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Two classes of six bytes, n samples each, the labels from ``first`` on."""
    rng = np.random.default_rng(first)
    x = np.concatenate([rng.integers(40 * k, 40 * k + 60, (n, 6)) for k in range(first, first + 2)])
    return x, [LABELS[k] for k in range(first, first + 2) for _ in range(n)]


def csv(folder: Path, first: int, n: int) -> str:
    x, y = samples(first, n)
    lines = [",".join(map(str, row)) + f",{label}" for row, label in zip(x, y, strict=True)]
    (folder / f"s{first}.csv").write_text("\n".join(["a,b,c,d,e,f,kind", *lines]) + "\n")
    return f"s{first}.csv"


def npz(folder: Path, first: int, n: int) -> str:
    x, y = samples(first, n)
    np.savez(folder / f"s{first}.npz", X=x / 255, kind=np.array(y))
    return f"s{first}.npz"


def pictures(folder: Path, first: int, n: int) -> str:
    x, y = samples(first, n)
    for i, (row, label) in enumerate(zip(x, y, strict=True)):
        (folder / f"s{first}" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(row.astype(np.uint8).reshape(2, 3)).save(folder / f"s{first}" / label / f"{i}.png")
    return f"s{first}.zip"


def sent(folder: Path, file: str) -> bytes:
    """Return a file, or a folder as an archive."""
    if (folder / file).exists():
        return (folder / file).read_bytes()
    made, top = io.BytesIO(), folder / Path(file).stem
    with zipfile.ZipFile(made, "w") as archive:
        for path in sorted(top.rglob("*.png")):
            archive.write(path, path.relative_to(top))
    return made.getvalue()


@pytest.mark.parametrize(
    ("write", "options"),
    [(csv, "label=kind&method=slda"), (npz, "y=kind&method=ncm&forgettable=yes"), (pictures, "method=slda")],
    ids=["csv", "npz", "pictures"],
)
def test_the_programs_make_the_same_model_and_give_the_same_answers(
    studio: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    write: Callable[[Path, int, int], str],
    options: str,
) -> None:
    first, second = write(tmp_path, 0, 150), write(tmp_path, 2, 20)  # with many samples, a part is held out
    monkeypatch.chdir(tmp_path)
    name, file = write.__name__, f"{write.__name__}.safetensors"
    how = options.split("&")[0] if "method" not in options.split("&")[0] else ""

    def done(what: str, data: str = "") -> tuple[dict[str, Any], list[str]]:
        """Do something on the page, then by its program; return the output of each."""
        status, said = studio.ask(f"/api/models/{name}/{what}", sent(tmp_path, data) if data else {})
        assert (status, said.get("error")) == (200, None)
        capsys.readouterr()
        exec(said["python"], {})
        return said, capsys.readouterr().out.split("\n")

    def same() -> bool:
        ours, theirs = (opened(folder / file, allow_code=False)[1] for folder in (studio.places.models, tmp_path))
        x = np.random.default_rng(0).random((9, ours.n_features_in_))
        return np.array_equal(ours.predict_proba(x, None), theirs.predict_proba(x, None))

    done(f"fit?file={first}&{options}", first)
    assert same()
    done(f"fit?file={second}&task=autumn", second)
    assert same()
    assert load(tmp_path / file).lessons_[1].name == "autumn"
    said, printed = done(f"evaluate?file={second}&{how}", second)
    assert printed[0] == f"{said['result']['accuracy']} {said['result']['n']}"
    said, printed = done(f"predict?file={second}&{how}", second)
    answers = [line.split() for line in printed[:-1]]
    assert [answer for answer, _ in answers] == [str(row["label"]) for row in said["result"]]
    assert len(answers) == 40
    told = [max(row["proba"].values()) for row in said["result"]]  # without torch: the tolerance of test_predictor
    assert [float(p) for _, p in answers] == pytest.approx(told, abs=1e-5)
    before = load(tmp_path / file).classes_.tolist()
    done("forget?class=rose")
    assert same()
    assert "rose" not in load(tmp_path / file).classes_
    done("rollback")
    assert same()
    assert load(tmp_path / file).classes_.tolist() == before
    said = studio.ask(f"/api/models/{name}")[1]
    capsys.readouterr()
    exec(said["python"], {})
    assert capsys.readouterr().out.count("Memory(label=") == 4


def test_a_model_of_small_pictures_goes_on_with_pictures_of_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path, 2, 5)
    x, y = samples(0, 9)
    model = ContinualClassifier("ncm", shape=(2, 3)).partial_fit(x / 255, y)
    model.notes_["image"] = [2, 3]
    model.save("small.safetensors")
    exec(Step("small.safetensors", data="s2", keep=1).fit(), {})
    assert load("small.safetensors").classes_.tolist() == sorted(LABELS)


def small(scenario: str, method: str, seed: int, **more: Any) -> RunSpec:
    return make_spec("split", scenario, method, dataset="digits", seed=seed, **{"tasks": 2, "iters": 3} | more)


@pytest.mark.parametrize(
    ("specs", "n_commands"),
    [
        ([small("class", method, seed) for method in ("none", "rtf") for seed in (1, 2)], 1),
        ([small(scenario, method, 1) for scenario in ("task", "class") for method in ("si", "none")], 1),
        ([small("class", method, seed) for method in ("none", "rtf") for seed in (3, 4)], 2 * 2),  # other seeds
        ([small("class", "none", 1), small("class", "none", 2), small("class", "rtf", 1)], 3),  # one is missing
        ([small("class", "si", seed, settings={"c": 2}) for seed in (1, 2)], 2),
        ([small("class", "none", 1), small("class", "rtf", 1, hidden=9)], 2),
        ([small("class", "none", seed, threads=2) for seed in (1, 2)], 2),
        ([small("class", "none", 1, fidelity="as_written"), small("class", "rtf", 1, fidelity="as_written")], 1),
    ],
)
def test_the_commands_and_the_program_of_some_runs_mean_these_runs(
    specs: list[RunSpec], n_commands: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[RunSpec] = []

    def instead(spec: RunSpec, *_: object) -> None:
        asked.append(spec)

    monkeypatch.setattr("relive.cli.sweeping.sweep", lambda specs, *_, **__: asked.extend(specs))
    monkeypatch.setattr("relive.cli.run._run", instead)
    monkeypatch.setattr("relive.cli.run._show", lambda *_: None)
    commands = words_of(specs)
    assert len(commands) == n_commands
    for words in commands:
        CliRunner().invoke(command_line, [*words, "--runs-dir", "/nonexistent"])
    names: dict[str, Any] = {}
    exec(as_python(*specs).partition("for spec in")[0], names)
    wanted = {spec.name for spec in specs}
    assert ({spec.name for spec in asked}, {spec.name for spec in names["specs"]}) == (wanted, wanted)


def test_the_program_of_some_runs_does_them(capsys: pytest.CaptureFixture[str]) -> None:
    specs = [small("class", "ncm", 1), small("task", "none", 2)]
    exec(as_python(*specs), {})
    first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (first[:3], second[:3]) == (["ncm", "class", "1"], ["none", "task", "2"])
    assert float(first[3]) > 0.8
