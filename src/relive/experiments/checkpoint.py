"""A run's state at the end of a task, in one safetensors file, to resume from bit-identically."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relive._util import schema
from relive._util.errors import InputError, ReliveError
from relive._util.tensorfile import FileError, read_tensors, write_tensors
from relive.experiments.execute import Checkpoint, PartialResult
from relive.experiments.spec import RunSpec, curve_of, matrix_of
from relive.experiments.store import CHECKPOINT, Store

KIND, VERSION = "relive checkpoint", 1


class FileCheckpoint(Checkpoint):
    """Keeps the state in a file; a file of another spec or version, or a damaged one, is not used.

    Parameters
    ----------
    store
        Where runs are stored; the run's directory is created when the state is first requested.
    spec
        The run's spec.
    versions
        What runs it: only the same versions give the same bits.
    warn
        Called with the reason if an existing file is not used.
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
            return self._read(self.path)
        except FileNotFoundError:
            return None
        except (OSError, ReliveError) as error:
            self.warn(f"{error}: the run starts over")
            return None

    def _read(self, path: Path) -> tuple[dict[str, Tensor], PartialResult]:
        """Return a file's contents, all checked; whether the numbers fit is for the learner to check."""
        header, tensors = read_tensors(path, KIND, VERSION)
        if header.get("identity") != json.loads(json.dumps(self.identity)):
            raise FileError(f"{path} was made with other versions of relive, torch, numpy or Python")
        try:
            progress = self._progress(header, tensors)
        except (ReliveError, LookupError, TypeError, ValueError) as error:
            raise FileError(f"{path} is not a valid checkpoint: {error}") from error
        return tensors, progress

    def _progress(self, header: dict[str, Any], tensors: dict[str, Tensor]) -> PartialResult:
        """Return the run's results so far, and move its images out of the tensors."""
        tasks = self.spec.tasks
        matrix = matrix_of(header["matrix"], tasks)
        schema.whole(len(matrix), "rows of the matrix", 1, tasks - 1)
        n = schema.whole(header["n_samples"], "n_samples", 0, tasks)
        samples = [tensors.pop(f"samples.{k}").numpy() for k in range(n)]
        if any(pictures.dtype != np.uint8 or pictures.ndim not in (3, 4) for pictures in samples):
            raise InputError("its samples are not images")
        seconds, cpu_seconds = (schema.number(header[name], name, low=0) for name in ("train_seconds", "cpu_seconds"))
        return PartialResult(matrix, curve_of(header["curve"], tasks), seconds, cpu_seconds, samples)

    def refused(self, error: Exception) -> None:
        self.warn(f"{self.path} does not fit this run ({error}): the run starts over")

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
            write_tensors(self.path, KIND, VERSION, header, state | samples, check=self._read)
