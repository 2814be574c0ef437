"""A run's state at the end of a task, in one safetensors file: to go on from there with the same bits."""

from __future__ import annotations

import json
from collections.abc import Callable

import torch
from torch import Tensor

from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.experiments.execute import Checkpoint, PartialResult
from relive.experiments.spec import RunSpec
from relive.experiments.store import CHECKPOINT, Store

KIND, VERSION = "relive checkpoint", 1


class FileCheckpoint(Checkpoint):
    """Keeps the state in a file; a file of another spec or version, or a damaged one, is not used.

    Parameters
    ----------
    store
        Where runs live; the run's directory is made when the state is first asked for.
    spec
        Whose state it is.
    versions
        What runs it: only the same versions promise the same bits.
    warn
        Is told why a file that is there is not used.
    """

    def __init__(
        self,
        store: Store,
        spec: RunSpec,
        versions: dict[str, str],
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.warn = warn
        self.store = store
        self.spec = spec
        self.path = store.directory(spec) / CHECKPOINT
        self.identity = {"spec": spec.to_json(), "versions": versions}

    def load(self) -> tuple[dict[str, Tensor], PartialResult] | None:
        self.store.prepare(self.spec)
        try:
            header, tensors = read_tensors(self.path, KIND, VERSION)
        except FileNotFoundError:
            return None
        except (OSError, FileError) as error:
            self.warn(f"{error}: the run starts over")
            return None
        if header.pop("identity") != json.loads(json.dumps(self.identity)):
            self.warn(f"{self.path} was made by other versions of relive, torch, numpy or Python: the run starts over")
            return None
        samples = [tensors.pop(f"samples.{k}").numpy() for k in range(header.pop("n_samples"))]
        curve = [(task, step, row) for task, step, row in header.pop("curve")]
        return tensors, PartialResult(**header, curve=curve, samples=samples)

    def save(self, state: dict[str, Tensor], progress: PartialResult) -> None:
        header = {
            "identity": self.identity,
            "matrix": progress.matrix,
            "curve": progress.curve,
            "train_seconds": progress.train_seconds,
            "cpu_seconds": progress.cpu_seconds,
            "n_samples": len(progress.samples),
        }
        samples = {f"samples.{k}": torch.from_numpy(a) for k, a in enumerate(progress.samples)}
        with self.store.writable():
            write_tensors(self.path, KIND, VERSION, header, state | samples)
