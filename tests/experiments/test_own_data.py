"""Runs on user-defined data sets and protocols: bit-identical anywhere, and never on data changed meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive._util.errors import InputError
from relive.core.learner import Learner
from relive.experiments import ledger
from relive.experiments.compare import side_by_side
from relive.experiments.execute import run
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.store import Store
from relive.experiments.sweep import Sweep
from tests.experiments.small import FORKS, InProcess, bits, drive

SMALL: dict[str, Any] = {"tasks": 2, "iters": 6, "hidden": 10, "latent": 4, "batch_size": 8}
PROTOCOL = """
from relive import Protocol
from relive.data.protocols import transformed

def make(data, n_tasks, seed, fidelity):
    return transformed(data, [lambda x, k=k: x.roll(k, 1) for k in range(n_tasks)], [str(k) for k in range(n_tasks)])

ROLLED = Protocol("rolled", make, title="Rolled")
"""


def npz(path: Path, shape: tuple[int, ...] = (4, 6, 3), scale: float = 1, seed: int = 0) -> Path:
    """Write a data set of four classes."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(4), 10)
    x = rng.integers(0, 200, (4, *shape))[y] + rng.integers(0, 50, (40, *shape))
    np.savez(path, X=x.astype(np.uint8) if scale == 1 else x * scale, y=y)
    return path


def test_colour_pictures_are_replayed_in_their_own_shape(tmp_path: Path) -> None:
    outcome = run(make_spec("split", "class", "rtf", dataset=npz(tmp_path / "my.npz"), **SMALL))
    assert [samples.shape for samples in outcome.samples] == [(100, 4, 6, 3)] * 2
    assert len(outcome.result.accuracy_matrix) == 2


@pytest.mark.parametrize("shape", [(5,), (4, 6)])
def test_standardised_features_have_a_gaussian_generator_and_no_pictures(
    tmp_path: Path, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def learner(*arguments: Any, **options: Any) -> Learner:
        made.append(options)
        return Learner(*arguments, **options)

    monkeypatch.setattr("relive.experiments.execute.Learner", learner)
    outcome = run(make_spec("split", "class", "rtf", dataset=npz(tmp_path / "my.npz", shape, scale=0.37), **SMALL))
    assert made[0]["likelihood"] == "gaussian"
    assert outcome.samples == []


@pytest.mark.parametrize("method", ["none", "xdg", "ewc", "si", "lwf", "dgr", "offline"])
def test_every_kind_of_method_learns_features(tmp_path: Path, method: str) -> None:
    spec = make_spec("permuted", "task", method, dataset=npz(tmp_path / "my.npz", (5,), scale=0.37), **SMALL)
    assert 0 <= run(spec).result.average_accuracy <= 1


def test_the_digest_of_the_data_is_in_the_spec_and_its_name_is_readable(tmp_path: Path) -> None:
    path = npz(tmp_path / "my data.npz")
    spec = make_spec("split", "class", "none", dataset=path)
    assert list(spec.sources) == [spec.dataset] == [str(path)]
    assert spec.name == f"split-class-none-my-data.npz-seed0-{spec.digest}"
    assert RunSpec.from_json(spec.to_json()) == spec
    npz(path, seed=1)
    assert make_spec("split", "class", "none", dataset=path).digest != spec.digest


def test_data_in_the_catalogue_are_in_the_spec_by_name_alone() -> None:
    assert "sources" not in make_spec("rotated", dataset="digits").to_json()


def test_a_run_refuses_data_that_changed(tmp_path: Path) -> None:
    path = npz(tmp_path / "my.npz")
    spec = make_spec("split", "class", "none", dataset=path, **SMALL)
    npz(path, seed=1)
    with pytest.raises(
        InputError,
        match=r"my.npz has changed since the run was requested \(.{12}, now .{12}\): start the command again",
    ):
        run(spec)


def test_a_run_refuses_a_protocol_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PROTOCOL)
    spec = make_spec(f"{path}:ROLLED", "class", "none", dataset="digits", **SMALL)
    assert list(spec.sources) == [spec.protocol]
    path.write_text(PROTOCOL + "\n")
    with pytest.raises(InputError, match=r"mine\.py:ROLLED has changed since"):
        run(spec)


@pytest.mark.slow
def test_workers_do_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROTOCOL)
    path = npz(tmp_path / "my.npz")
    specs = [
        make_spec(protocol, "class", method, dataset=path, **SMALL)
        for protocol in ("rotated", f"{tmp_path}/mine.py:ROLLED")
        for method in ("none", "rtf")
    ]
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    Sweep(specs, here, InProcess()).run()
    from relive.experiments.worker import work

    driver = FORKS.Process(target=drive, args=(there.root, specs, work, 2))
    driver.start()
    driver.join(120)
    assert driver.exitcode == 0
    assert bits(here) == bits(there)
    assert len(bits(here)) == 4


def test_a_protocol_of_one_s_own_is_shown_by_its_title_and_kept_in_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROTOCOL)
    result = run(make_spec(f"{tmp_path}/mine.py:ROLLED", "class", "none", dataset="digits", **SMALL)).result
    assert result.protocol_title == "Rolled"
    assert result.spec.name.startswith("mine.ROLLED-class-none-digits-seed0-")
    (group,) = side_by_side([result])
    assert group.title == "digits, Rolled, 2 tasks of 6 iterations"
    ledger.add(tmp_path / "ledger", [result])
    assert (tmp_path / "ledger" / "mine.ROLLED.jsonl").exists()
    assert list(ledger.results(tmp_path / "ledger").values()) == [result]


def test_runs_on_other_contents_are_not_compared(tmp_path: Path) -> None:
    path = npz(tmp_path / "my.npz")
    first = run(make_spec("split", "class", "none", dataset=path, **SMALL)).result
    npz(path, seed=1)
    second = run(make_spec("split", "class", "none", dataset=path, **SMALL)).result
    other_seed = replace(first, spec=replace(first.spec, seed=1))
    assert sorted(len(group.entries[0].runs) for group in side_by_side([first, second, other_seed])) == [1, 2]
