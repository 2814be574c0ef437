"""A ledger returns what was stored, counts each run once, and never reads a damaged line as a result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relive._util.files import acquire, release
from relive.experiments import ledger
from relive.experiments.resultfile import DamagedResult, StoreError
from relive.experiments.store import RESULT, Store
from tests.experiments.small import result_of, specs

RUNS = [result_of(spec) for spec in specs(3)]


def pictures(k: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.full((2, 3, 3), k, np.uint8)


def test_what_was_added_is_read_like_a_runs_directory(tmp_path: Path) -> None:
    added = ledger.add(tmp_path, RUNS)
    assert added == ledger.Added(sorted((run.spec for run in RUNS), key=lambda spec: spec.name), [], [], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["split.jsonl"]
    results, damaged = Store(tmp_path).scan()
    assert (results, damaged) == (sorted(RUNS, key=lambda run: run.spec.name), [])
    assert Store(tmp_path).load(RUNS[1].spec) == RUNS[1]
    assert Store(tmp_path).load(specs(4)[3]) is None


def test_a_line_has_the_digest_of_the_run_s_own_file(tmp_path: Path) -> None:
    Store(tmp_path / "runs").save(RUNS[0], [])
    ledger.add(tmp_path / "ledger", RUNS[:1])
    line = json.loads((tmp_path / "ledger" / "split.jsonl").read_text())
    own = json.loads((tmp_path / "runs" / RUNS[0].spec.name / RESULT).read_text())
    assert line == own


def test_a_run_is_added_once_and_replaced_only_if_asked(tmp_path: Path) -> None:
    ledger.add(tmp_path, RUNS[:2])
    before = (tmp_path / "split.jsonl").read_bytes()
    assert ledger.add(tmp_path, RUNS[:2]) == ledger.Added([], [], [RUNS[0].spec, RUNS[1].spec], [])
    newer = replace(RUNS[0], train_seconds=99.0)
    assert ledger.add(tmp_path, [newer, RUNS[1]]) == ledger.Added([], [], [RUNS[1].spec], [newer.spec])
    assert (tmp_path / "split.jsonl").read_bytes() == before
    assert ledger.add(tmp_path, [newer, RUNS[1]], replace=True) == ledger.Added([], [newer.spec], [RUNS[1].spec], [])
    assert Store(tmp_path).load(newer.spec) == newer
    assert Store(tmp_path).load(RUNS[1].spec) == RUNS[1]


def test_the_order_of_adding_makes_no_difference(tmp_path: Path) -> None:
    for name, runs in (("a", RUNS), ("b", RUNS[::-1])):
        for run in runs:
            ledger.add(tmp_path / name, [run])
    assert (tmp_path / "a" / "split.jsonl").read_bytes() == (tmp_path / "b" / "split.jsonl").read_bytes()


@pytest.mark.parametrize("damage", [b"0.4", b"\xff", b"null", b""], ids=["a digit", "no text", "no number", "cut"])
def test_a_damaged_line_is_named_and_the_others_are_read(tmp_path: Path, damage: bytes) -> None:
    ledger.add(tmp_path, RUNS)
    path = tmp_path / "split.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    at = lines[1].index(b"0.2")
    lines[1] = lines[1][:at] + damage + (lines[1][at + 3 :] if damage else b"\n")
    path.write_bytes(b"".join(lines))
    results, damaged = Store(tmp_path).scan()
    assert len(results) == 2
    assert [str(error).startswith(f"{path}, line 2, is damaged") for error in damaged] == [True]
    with pytest.raises(DamagedResult, match="nothing was added"):
        ledger.add(tmp_path, [result_of(specs(4)[3])])
    assert path.read_bytes() == b"".join(lines)


def test_a_directory_and_a_ledger_count_once_and_the_directory_is_first(tmp_path: Path) -> None:
    newer = replace(RUNS[0], train_seconds=99.0)
    ledger.add(tmp_path / "ledger", RUNS[:2])
    Store(tmp_path / "runs").save(newer, [])
    store = Store(tmp_path / "runs", (tmp_path / "ledger",))
    assert store.load(newer.spec) == newer
    assert store.load(RUNS[1].spec) == RUNS[1]
    results, damaged = store.scan()
    assert {run.spec.name: run for run in results} == {newer.spec.name: newer, RUNS[1].spec.name: RUNS[1]}
    assert not damaged


def test_a_damaged_copy_elsewhere_is_no_obstacle(tmp_path: Path) -> None:
    path = Store(tmp_path / "old").save(RUNS[0], []) / RESULT
    path.write_bytes(path.read_bytes()[:-5])
    store = Store(tmp_path / "runs", (tmp_path / "old",))
    assert store.load(RUNS[0].spec) is None  # so that it is repeated
    assert len(store.scan()[1]) == 1


def test_pictures_are_kept_by_run_and_task(tmp_path: Path) -> None:
    for run, k in zip(RUNS, (0, 10, 20), strict=True):
        taken = {f"{run.spec.name}/task{j}": pictures(k + j) for j in range(run.spec.tasks)} if k else {}
        ledger.add(tmp_path, [run], taken)
    store = Store(tmp_path)
    assert store.samples(RUNS[0].spec) == []
    for run, k in zip(RUNS[1:], (10, 20), strict=True):
        assert [int(array[0, 0, 0]) for array in store.samples(run.spec)] == [k + j for j in range(run.spec.tasks)]


def test_images_stay_with_the_result_that_they_belong_to(tmp_path: Path) -> None:
    run, other = RUNS[0], replace(RUNS[0], train_seconds=99.0)
    images = {k: {f"{run.spec.name}/task{j}": pictures(k) for j in range(run.spec.tasks)} for k in (1, 2)}

    def stored() -> list[int]:
        return sorted({int(array[0, 0, 0]) for array in Store(tmp_path).samples(run.spec)})

    ledger.add(tmp_path, [run])
    ledger.add(tmp_path, [run], images[1])  # the same result, now with its images
    assert stored() == [1]
    ledger.add(tmp_path, [other], images[2])
    assert stored() == [1]
    ledger.add(tmp_path, [other], images[2], replace=True)
    assert stored() == [2]
    ledger.add(tmp_path, [run], replace=True)  # its images were not given
    assert stored() == []


def test_one_process_at_a_time_adds_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    ledger.add(tmp_path, RUNS[:1])
    leftover = tmp_path / ".split.jsonl.0123456789abcdef.tmp"
    leftover.write_bytes(b"half")
    handle = acquire(tmp_path / ledger.LEASE)
    assert handle is not None
    with pytest.raises(StoreError, match="another process is adding runs"):
        ledger.add(tmp_path, RUNS[1:])
    assert leftover.exists()  # it may be that process's
    release(tmp_path / ledger.LEASE, handle)
    ledger.add(tmp_path, RUNS[1:])
    assert len(Store(tmp_path).scan()[0]) == len(RUNS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["split.jsonl"]


@pytest.mark.parametrize("name", ["split.jsonl", "zz.jsonl"])
def test_two_different_results_of_a_run_are_an_error_and_equal_ones_count_once(tmp_path: Path, name: str) -> None:
    ledger.add(tmp_path, RUNS)
    ledger.add(tmp_path / "other", [replace(RUNS[0], train_seconds=99.0)])
    ledger.add(tmp_path / "same", RUNS[:1])
    path, second = tmp_path / name, (tmp_path / "other" / "split.jsonl").read_bytes()
    before = path.read_bytes() if path.exists() else b""
    path.write_bytes(before + b"\n" + (tmp_path / "same" / "split.jsonl").read_bytes())
    assert [len(found) for found in Store(tmp_path).scan()] == [3, 0]
    path.write_bytes(before + second)
    results, damaged = Store(tmp_path).scan()
    assert [str(path) in str(error) and "different result" in str(error) for error in damaged] == [True]
    assert RUNS[0] in results
    with pytest.raises(DamagedResult, match="nothing was added"):
        ledger.add(tmp_path, [result_of(specs(4)[3])])
