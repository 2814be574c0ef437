"""A run is a function of its spec: bit-identical whatever else happens, and whenever it is interrupted."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from relive._util.errors import InputError
from relive._util.versions import processor, provenance, versions
from relive.core.learner import Learner
from relive.data.datasets.dataset import Dataset
from relive.experiments.checkpoint import FileCheckpoint
from relive.experiments.execute import run
from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.store import Store
from relive.methods import METHODS
from tests import plain
from tests.plain import tiny_dataset

TINY = tiny_dataset()
NOT_BITS = {"train_seconds", "cpu_seconds"}  # how long it took


def spec_of(method: str, scenario: str = "task", **changes: Any) -> RunSpec:
    small: dict[str, Any] = {"tasks": 3, "iters": 4, "hidden": 10, "latent": 4, "batch_size": 8, "seed": 2}
    return make_spec("split", scenario, method, **{"dataset": TINY} | small | changes)


class Recorder(Observer):
    """Records what was done, and stops a run as Ctrl-C does: when a task begins (iteration 0) or within it."""

    def __init__(self, task: int = -1, iteration: int = 0) -> None:
        self.at = task, iteration
        self.started: list[int] = []
        self.losses: dict[tuple[int, int], float] = {}

    def task_started(self, task: int) -> None:
        self.started.append(task)
        if (task, 0) == self.at:
            raise KeyboardInterrupt

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        self.losses[task, iteration] = loss
        if (task, iteration) == self.at:
            raise KeyboardInterrupt


@dataclass
class Bits:
    """What must not differ between two runs of one spec; accuracies alone would be too coarse to tell."""

    result: dict[str, Any]
    samples: list[bytes]
    losses: dict[tuple[int, int], float]

    def goes_on_as(self, whole: Bits, first: int) -> bool:
        """Whether this is the same run, resumed at task ``first``."""
        losses = {step: loss for step, loss in whole.losses.items() if step[0] >= first}
        return (self.result, self.samples, self.losses) == (whole.result, whole.samples, losses)


def bits_of(spec: RunSpec, data: Dataset | None, checkpoint: FileCheckpoint | None = None) -> Bits:
    watch = Recorder()
    outcome = run(spec, data=data, observer=watch, checkpoint=checkpoint)
    values = {name: v for name, v in outcome.result.to_json().items() if name not in NOT_BITS}
    assert watch.started == sorted({task for task, _ in watch.losses})
    return Bits(values, [picture.tobytes() for picture in outcome.samples], watch.losses)


def disturb(tiny: Dataset) -> None:
    """Change global state that must not matter."""
    torch.manual_seed(int(np.random.default_rng().integers(1000)))
    torch.rand(3)
    np.random.seed(7)  # noqa: NPY002
    random.seed(7)
    run(spec_of("dgr", "class", seed=9), data=tiny)


@pytest.mark.parametrize("method", sorted({name for name, _ in plain.CELLS}))
def test_the_same_spec_gives_the_same_bits(method: str, tiny: Dataset) -> None:
    first = bits_of(spec_of(method), tiny)
    disturb(tiny)
    assert bits_of(spec_of(method), tiny) == first
    assert not set(bits_of(spec_of(method, seed=3), tiny).losses.values()) & set(first.losses.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_run_does_not_touch_the_global_generators(method: str, tiny: Dataset) -> None:
    def generators() -> tuple[bytes, str, str]:
        return bytes(torch.get_rng_state().tolist()), repr(np.random.get_state()), repr(random.getstate())  # noqa: NPY002

    before = generators()
    run(spec_of(method), data=tiny)
    assert generators() == before


def test_a_run_gives_the_threads_back(tiny: Dataset) -> None:
    seen = []

    class Threads(Observer):
        def task_started(self, task: int) -> None:
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    run(spec_of("none", threads=2), data=tiny, observer=Threads())
    assert seen == [2, 2, 2]
    assert torch.get_num_threads() == before


def test_looking_does_not_change_the_run(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = run(spec_of("rtf", "class"), data=tiny).result.accuracy_matrix
    monkeypatch.setattr("relive.experiments.execute.PROBES_PER_TASK", 1)
    monkeypatch.setattr("relive.experiments.execute.PROBE_ROWS", 2)
    again = run(spec_of("rtf", "class"), data=tiny).result
    assert again.accuracy_matrix == matrix
    assert len(again.curve) == 6  # the first step, and the last


def file_checkpoint(root: Path, spec: RunSpec) -> FileCheckpoint:
    return FileCheckpoint(Store(root), spec, versions())


@pytest.mark.parametrize("method", sorted({name for name, _ in plain.CELLS}))
def test_an_interrupted_run_goes_on_to_the_same_bits(method: str, tiny: Dataset, tmp_path: Path) -> None:
    spec = spec_of(method)
    whole = bits_of(spec, tiny)
    for task, iteration, first in ((0, 2, 0), (1, 0, 1), (1, 3, 1), (2, 0, 2), (2, 4, 2)):
        root = tmp_path / f"{task}-{iteration}"
        with pytest.raises(KeyboardInterrupt):
            run(spec, data=tiny, observer=Recorder(task, iteration), checkpoint=file_checkpoint(root, spec))
        assert bits_of(spec, tiny, file_checkpoint(root, spec)).goes_on_as(whole, first)


def test_a_run_interrupted_again_and_again(tiny: Dataset, tmp_path: Path) -> None:
    spec = spec_of("ewc", "class")
    for task in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            run(spec, data=tiny, observer=Recorder(task), checkpoint=file_checkpoint(tmp_path, spec))
    assert bits_of(spec, tiny, file_checkpoint(tmp_path, spec)).goes_on_as(bits_of(spec, tiny), first=2)


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Write the checkpoint again with another header."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    header = json.loads(metadata["header"])
    save_file(load_file(path), path, metadata=metadata | {"header": json.dumps(change(header))})


def flip_a_bit_of_a_weight(path: Path) -> None:
    content = bytearray(path.read_bytes())
    header_length = int.from_bytes(content[:8], "little")
    start, end = json.loads(content[8 : 8 + header_length])["net.encoder.layer1.weight"]["data_offsets"]
    for byte in range(8 + header_length + start + 2, 8 + header_length + end, 4):
        content[byte] ^= 0x40  # the upper bits of every mantissa
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "only the beginning": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "other bytes": lambda path: path.write_bytes(b"\x00\xff" * 500),
    "text": lambda path: path.write_text("{}"),
    "no header": lambda path: save_file(load_file(path), path),
    "a header that is not an object": lambda path: rewrite(path, lambda header: [1]),
    "a header without identity": lambda path: rewrite(
        path, lambda header: {name: v for name, v in header.items() if name != "identity"}
    ),
    "a header without the matrix": lambda path: rewrite(
        path, lambda header: {name: v for name, v in header.items() if name != "matrix"}
    ),
    "a missing tensor": lambda path: save_file(
        {name: t for name, t in load_file(path).items() if name != "rng.noise"},
        path,
        metadata=metadata(path),
    ),
    "flipped bits": flip_a_bit_of_a_weight,
}


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        found: dict[str, str] = file.metadata()
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_not_used(damage: str, tiny: Dataset, tmp_path: Path) -> None:
    spec = spec_of("rtf", "class")
    with pytest.raises(KeyboardInterrupt):
        run(spec, data=tiny, observer=Recorder(1), checkpoint=file_checkpoint(tmp_path, spec))
    path = file_checkpoint(tmp_path, spec).path
    assert path.exists()
    DAMAGES[damage](path)
    assert bits_of(spec, tiny, file_checkpoint(tmp_path, spec)) == bits_of(spec, tiny)


def test_a_checkpoint_of_another_spec_is_not_used(tiny: Dataset, tmp_path: Path) -> None:
    spec, other = spec_of("rtf", "class"), spec_of("rtf", "class", iters=5)
    with pytest.raises(KeyboardInterrupt):
        run(other, data=tiny, observer=Recorder(2), checkpoint=file_checkpoint(tmp_path, other))
    mine = file_checkpoint(tmp_path, spec)
    assert mine.load() is None
    shutil.copy(file_checkpoint(tmp_path, other).path, mine.path)
    assert mine.load() is None
    assert file_checkpoint(tmp_path, other).load() is not None
    assert bits_of(spec, tiny, mine) == bits_of(spec, tiny)


def test_a_checkpoint_of_other_versions_is_not_used(tiny: Dataset, tmp_path: Path) -> None:
    spec = spec_of("none")
    with pytest.raises(KeyboardInterrupt):
        run(spec, data=tiny, observer=Recorder(2), checkpoint=file_checkpoint(tmp_path, spec))
    assert file_checkpoint(tmp_path, spec).load() is not None
    later = FileCheckpoint(Store(tmp_path), spec, versions() | {"torch": "99"})
    assert later.load() is None


def test_the_observer_is_told_everything(tiny: Dataset) -> None:
    told: list[tuple[Any, ...]] = []

    class Listener(Observer):
        def task_started(self, task: int) -> None:
            told.append(("started", task))

        def stepped(self, task: int, iteration: int, loss: float) -> None:
            told.append(("stepped", task, iteration))

        def probed(self, task: int, accuracies: list[float]) -> None:
            told.append(("probed", task, len(accuracies)))

        def task_finished(self, task: int, accuracies: list[float]) -> None:
            told.append(("finished", task, len(accuracies)))

    run(spec_of("none", tasks=2, iters=2), data=tiny, observer=Listener())
    assert told == [
        event
        for k in range(2)
        for event in [
            ("started", k),
            ("stepped", k, 1),
            ("probed", k, k + 1),
            ("stepped", k, 2),
            ("probed", k, k + 1),
            ("finished", k, 2),
        ]
    ]


def test_the_default_data_set_is_the_spec_s(digits: Dataset) -> None:
    spec = spec_of("none", dataset="digits", tasks=2, iters=1)
    assert bits_of(spec, None) == bits_of(spec, digits)


def test_data_that_are_not_the_spec_s_are_refused(digits: Dataset) -> None:
    spec = spec_of("none", dataset="digits", tasks=2, iters=1)
    for other in (TINY, replace(digits, train_inputs=digits.train_inputs[::-1])):  # by name, and by contents
        with pytest.raises(InputError, match=rf"is for the data set 'digits'.* named '{other.name}'.*dataset=data"):
            run(spec, data=other)


def test_data_made_in_python_are_known_by_their_contents(digits: Dataset) -> None:
    mine = replace(digits, name="mine")
    spec = spec_of("none", dataset=mine, tasks=2, iters=1)
    assert run(spec, data=mine).result.spec.to_json()["sources"] == {"mine": mine.sha256[:12]}
    with pytest.raises(InputError, match=r"mine has changed since the run was requested"):
        run(spec, data=replace(mine, train_inputs=mine.train_inputs[::-1]))
    with pytest.raises(InputError, match="unknown data set 'mine'"):
        run(spec)


def test_time_spent_waiting_is_not_processor_time(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Learner.learn

    def wait_and_learn(*args: Any) -> None:
        time.sleep(0.2)
        learn(*args)

    monkeypatch.setattr(Learner, "learn", wait_and_learn)
    result = run(spec_of("none", tasks=2), data=tiny).result
    assert result.cpu_seconds is not None
    assert 0 < result.cpu_seconds < result.train_seconds - 0.3


def test_looking_at_how_it_goes_is_not_training_time(tiny: Dataset) -> None:
    class Slow(Observer):
        def stepped(self, task: int, iteration: int, loss: float) -> None:
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass

    result = run(spec_of("none", tasks=2), data=tiny, observer=Slow()).result  # 8 steps
    assert result.cpu_seconds is not None
    assert result.cpu_seconds < 0.35
    assert result.train_seconds < 0.35


def test_a_result_names_the_processor_that_its_time_depends_on(tiny: Dataset) -> None:
    result = run(spec_of("none", tasks=2), data=tiny).result
    assert result.versions == provenance() == versions() | {"processor": processor()}
    assert processor()


def test_a_result_says_if_pytorch_is_held_to_part_of_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    free = processor.__wrapped__()
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert processor.__wrapped__() == f"{free}, held to avx2"


@pytest.mark.slow
def test_no_run_loads_pytorchs_compiler_or_sympy() -> None:
    """Each takes as long as importing PyTorch, or much longer, and PyTorch loads them where one does not expect it."""
    code = """
import sys
from relive import make_spec, run
for method in ("none", "ewc", "si", "lwf", "dgr-distill", "rtf"):
    run(make_spec("split", "task", method, dataset="digits", seed=1, iters=2))
    print(method, *sorted({"sympy", "torch._dynamo"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["none", "ewc", "si", "lwf", "dgr-distill", "rtf"]
