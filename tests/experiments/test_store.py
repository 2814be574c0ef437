"""Run directories: complete or absent, never a damaged number, one owner at a time."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relive.experiments.resultfile import DamagedResult, StoreError, signed, to_bytes
from relive.experiments.store import (
    CHECKPOINT,
    LEASE,
    RESULT,
    SAMPLES,
    Store,
    read_samples,
)
from relive.experiments.sweep import Sweep
from tests.experiments.small import FORKS, SPEC, InProcess, quick, result_of, specs


def change_digit(raw: bytes) -> bytes:
    at = raw.index(b"0.3333") + 3
    return raw[:at] + b"4" + raw[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda raw: raw[: len(raw) // 2],
    "last byte gone": lambda raw: raw[:-1],
    "digit changed": change_digit,
    "signature changed": lambda raw: raw.replace(b'"sha256": "', b'"sha256": "0'),
    "unsigned": lambda raw: raw[: raw.rindex(b",\n")] + b"\n}\n",
    "empty": lambda raw: b"",
    "zeros": lambda raw: bytes(len(raw)),
    "foreign JSON": lambda raw: b'{"accuracy": 0.99}\n',
    "a list": lambda raw: b"[0.99]",
    "no text": lambda raw: b"\xff\xfe" + raw,
}


class TestResults:
    def test_what_is_saved_is_loaded(self, store: Store) -> None:
        samples = [np.arange(400, dtype=np.uint8).reshape(100, 2, 2), np.zeros((100, 2, 2), np.uint8)]
        path = store.save(result_of(SPEC), samples)
        assert store.load(SPEC) == result_of(SPEC)
        assert store.scan() == ([result_of(SPEC)], [])
        np.testing.assert_array_equal(read_samples(path), samples)
        assert sorted(p.name for p in path.iterdir()) == [RESULT, SAMPLES, "spec.json"]

    def test_what_is_not_there_is_none(self, store: Store) -> None:
        assert store.load(SPEC) is None
        assert store.scan() == ([], [])
        store.prepare(SPEC)
        assert store.load(SPEC) is None
        assert store.scan() == ([], [])

    @pytest.mark.parametrize("kind", DAMAGE)
    def test_damage_is_reported_by_name_and_never_read(self, store: Store, kind: str) -> None:
        good = replace(SPEC, seed=1)
        store.save(result_of(good), [])
        path = store.save(result_of(SPEC), []) / RESULT
        path.write_bytes(DAMAGE[kind](path.read_bytes()))
        with pytest.raises(DamagedResult, match=SPEC.name):
            store.load(SPEC)
        results, damaged = store.scan()
        assert results == [result_of(good)]
        assert [str(path) in str(error) for error in damaged] == [True]

    @pytest.mark.parametrize("kind", ["truncated", "digit changed", "empty", "foreign JSON"])
    def test_a_sweep_sets_damage_aside_and_runs_again(self, store: Store, kind: str) -> None:
        path = store.save(result_of(SPEC), []) / RESULT
        broken = DAMAGE[kind](path.read_bytes())
        path.write_bytes(broken)
        notes: list[str] = []
        status = Sweep([SPEC], store, InProcess(), work=quick, note=notes.append).run()
        assert (status.done, status.failures) == (1, [])
        assert [SPEC.name in note for note in notes] == [True]
        assert path.with_name("result.json.damaged").read_bytes() == broken
        assert store.load(SPEC) is not None

    def test_what_was_set_aside_before_is_kept(self, store: Store) -> None:
        for k in range(3):
            path = store.save(result_of(SPEC), []) / RESULT
            path.write_bytes(b"%d" % k)
            assert store.load_or_set_aside(SPEC, lambda text: None) is None
        assert sorted(p.read_bytes() for p in path.parent.glob("*.damaged*")) == [b"0", b"1", b"2"]

    def test_a_result_of_another_version_is_neither_read_nor_touched(self, store: Store) -> None:
        path = store.save(result_of(SPEC), []) / RESULT
        path.write_bytes(to_bytes(signed(result_of(SPEC).to_json() | {"machine_load": 1.0})))
        before = path.read_bytes()
        with pytest.raises(StoreError, match=r"intact, but from another version of relive .*machine_load.* left alone"):
            Sweep([SPEC], store, InProcess(), work=quick).run()
        assert path.read_bytes() == before
        assert sorted(p.name for p in path.parent.iterdir()) == [RESULT, "spec.json"]
        assert [len(part) for part in store.scan()] == [0, 1]

    @pytest.mark.parametrize("change", [{"spec": 5}, {"spec": {}}, {"curve": 7}, {"curve": [[1]]}])
    def test_nor_one_whose_parts_are_of_another_kind(self, store: Store, change: dict[str, Any]) -> None:
        path = store.save(result_of(SPEC), []) / RESULT
        path.write_bytes(to_bytes(signed(result_of(SPEC).to_json() | change)))
        with pytest.raises(StoreError, match="intact, but from another version of relive"):
            store.load(SPEC)

    def test_results_come_by_name_and_other_things_are_left_alone(self, store: Store) -> None:
        for seed in (3, 1, 2):
            store.save(result_of(replace(SPEC, seed=seed)), [])
        (store.root / "notes.txt").write_text("mine")
        (store.root / "pictures").mkdir()
        (store.root / "loop").symlink_to("loop")
        results, damaged = store.scan()
        names = [result.spec.name for result in results]
        assert (len(names), names) == (3, sorted(names))
        assert [str(error) for error in damaged] == [
            f"{store.root / 'loop' / RESULT} cannot be read: Too many levels of symbolic links"
        ]

    def test_a_result_that_cannot_be_read_is_not_damaged(self, store: Store) -> None:
        path = store.save(result_of(SPEC), []) / RESULT
        path.unlink()
        path.mkdir()  # reading it is an error, even for root
        with pytest.raises(StoreError, match=r"result.json cannot be read: Is a directory"):
            Sweep([SPEC], store, InProcess(), work=quick).run()
        assert path.is_dir()
        assert [len(part) for part in store.scan()] == [0, 1]

    def test_a_spec_file_that_says_something_else_is_written_again(self, store: Store) -> None:
        path = store.prepare(SPEC) / "spec.json"
        good = path.read_bytes()
        path.write_text("garbage")
        store.prepare(SPEC)
        assert path.read_bytes() == good

    def test_every_changed_digit_shows(self, store: Store) -> None:
        path = store.save(result_of(SPEC), []) / RESULT
        raw = path.read_bytes()
        for i in (i for i, byte in enumerate(raw) if chr(byte).isdigit()):
            path.write_bytes(raw[:i] + (b"1" if raw[i : i + 1] != b"1" else b"2") + raw[i + 1 :])
            assert [len(part) for part in store.scan()] == [0, 1]

    def test_damaged_samples_are_reported(self, store: Store) -> None:
        path = store.save(result_of(SPEC), [np.zeros((100, 2, 2), np.uint8)])
        raw = (path / SAMPLES).read_bytes()
        at = raw.index(b"PK\x01\x02") + 8  # the flags of the first entry in the directory
        encrypted = raw[:at] + bytes([raw[at] | 1]) + raw[at + 1 :]
        for broken in (raw[:50], b"", raw.replace(b"task0.npy", b"task9.npy"), encrypted):
            (path / SAMPLES).write_bytes(broken)
            with pytest.raises(DamagedResult, match=r"samples\.npz is damaged"):
                read_samples(path)


class TestMerging:
    def test_by_copying(self, tmp_path: Path) -> None:
        for machine, seeds in (("a", [0, 1]), ("b", [1, 2])):
            for seed in seeds:
                Store(tmp_path / machine).save(result_of(replace(SPEC, seed=seed)), [])
            shutil.copytree(tmp_path / machine, tmp_path / "both", dirs_exist_ok=True)
        results, damaged = Store(tmp_path / "both").scan()
        assert sorted(result.spec.seed for result in results) == [0, 1, 2]
        assert not damaged

    def test_a_copy_beside_the_original_does_not_count_twice(self, store: Store) -> None:
        path = store.save(result_of(SPEC), [])
        shutil.copytree(path, path.with_name(f"{path.name} (copy)"))
        results, damaged = store.scan()
        assert len(results) == 1
        assert "is in the wrong place" in str(damaged[0])

    def test_a_result_in_anothers_directory_is_not_that_run(self, store: Store) -> None:
        other = replace(SPEC, seed=1)
        shutil.copy(store.save(result_of(SPEC), []) / RESULT, store.prepare(other) / RESULT)
        with pytest.raises(DamagedResult, match="is in the wrong place"):
            store.load(other)


class TestWriting:
    def test_what_a_killed_writer_left_is_removed(self, store: Store) -> None:
        path = store.prepare(SPEC)
        for name in (RESULT, CHECKPOINT, SAMPLES, "spec.json"):
            (path / f".{name}.abc.tmp").touch()
        (path / CHECKPOINT).touch()
        store.tidy(SPEC)
        assert sorted(p.name for p in path.iterdir()) == [CHECKPOINT, "spec.json"], "the run is not done: it resumes"
        store.save(result_of(SPEC), [])
        assert sorted(p.name for p in path.iterdir()) == [RESULT, "spec.json"]

    def test_a_full_disk_is_said_clearly_and_leaves_nothing_half_written(self, store: Store) -> None:
        path = store.prepare(SPEC)
        with disk_full_after(400), pytest.raises(StoreError, match=r"cannot write to the runs directory .*: File too"):
            store.save(result_of(SPEC), [])
        assert [p.name for p in path.iterdir()] == ["spec.json"]
        assert store.load(SPEC) is None
        store.save(result_of(SPEC), [])
        with disk_full_after(400), pytest.raises(StoreError):
            store.save(replace(result_of(SPEC), average_accuracy=0.0), [])
        assert store.load(SPEC) == result_of(SPEC), "the old one is still whole"

    def test_a_directory_that_cannot_be_made_is_said_clearly(self, tmp_path: Path) -> None:
        (tmp_path / "runs").write_text("a file")
        store = Store(tmp_path / "runs")
        with pytest.raises(StoreError, match="Choose another with --runs-dir"):
            store.prepare(SPEC)
        with pytest.raises(StoreError), store.lease(SPEC):
            pass

    def test_a_sweep_stops_at_a_full_disk(self, store: Store) -> None:
        engine = InProcess()
        with disk_full_after(700), pytest.raises(StoreError):
            Sweep(specs(3), store, engine, work=quick).run()
        assert engine.ended
        with store.lease(specs(3)[2]) as mine:
            assert mine, "it has released its leases"


@contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: writes fail as on a full disk, with another error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def hold(root: Path, pipe: Connection) -> None:
    """Try to take the lease, report whether it was free, and wait to be killed."""
    with Store(root).lease(SPEC) as mine:
        pipe.send(mine)
        pipe.recv()


class TestLease:
    def test_one_owner_at_a_time(self, store: Store) -> None:
        with store.lease(SPEC) as first:
            with store.lease(SPEC) as second, store.lease(replace(SPEC, seed=1)) as other:
                assert (first, second, other) == (True, False, True)
            with store.lease(SPEC) as third:
                assert not third, "a process that did not get it has not released it either"
        with store.lease(SPEC) as fourth:
            assert fourth
        assert not (store.directory(SPEC) / LEASE).exists()

    def test_an_error_gives_it_back(self, store: Store) -> None:
        with pytest.raises(KeyboardInterrupt), store.lease(SPEC):
            raise KeyboardInterrupt
        with store.lease(SPEC) as mine:
            assert mine

    def test_it_leaks_no_handles(self, store: Store) -> None:
        def handles() -> int:
            return len(list(Path("/proc/self/fd").iterdir()))

        before = handles()
        with store.lease(SPEC):
            for _ in range(50):
                with store.lease(SPEC), store.lease(replace(SPEC, seed=1)):
                    pass
        assert handles() == before

    def test_a_dead_owner_loses_it_at_once(self, store: Store) -> None:
        ours, theirs = multiprocessing.Pipe()
        owner = FORKS.Process(target=hold, args=(store.root, theirs))
        owner.start()
        assert ours.recv() is True
        with store.lease(SPEC) as mine:
            assert not mine
        assert owner.pid is not None
        os.kill(owner.pid, signal.SIGKILL)
        owner.join()
        with store.lease(SPEC) as mine:
            assert mine


def test_many_results_load_quickly(store: Store) -> None:
    """Ten thousand in 3 s is 0.3 ms each; benchmarks/sweep_overhead.py measures ten thousand."""
    for spec in specs(1000):
        path = store.directory(spec)
        path.mkdir(parents=True)
        (path / RESULT).write_bytes(to_bytes(signed(result_of(spec).to_json())))
    times = []
    for _ in range(5):  # the fastest is the least disturbed
        start = time.process_time()
        results, damaged = store.scan()
        times.append(time.process_time() - start)
        assert (len(results), damaged) == (1000, [])
    assert min(times) < 0.3


def test_only_who_holds_a_run_writes_into_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.lease(SPEC) as mine:
        assert mine
        (store.directory(SPEC) / "spec.json").unlink()
        with Store(tmp_path).lease(SPEC) as theirs:
            assert not theirs
        assert not (store.directory(SPEC) / "spec.json").exists()
