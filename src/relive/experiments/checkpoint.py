"""A run's state at the end of a task, in one safetensors file: to go on from there with the same bits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from relive.experiments.run import Checkpoint, Progress
from relive.experiments.spec import RunSpec
from relive.experiments.store import CHECKPOINT, Store
from relive.files import write_atomic


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

    def load(self) -> tuple[dict[str, Tensor], Progress] | None:
        self.store.prepare(self.spec)
        try:
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata["sha256"] != _digest(tensors, metadata["progress"]):
                raise ValueError("its digest is not that of its contents")
            header = json.loads(metadata["progress"])
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            self.warn(f"{self.path} is damaged ({error}): the run starts over")
            return None
        if header.pop("identity") != json.loads(json.dumps(self.identity)):
            self.warn(f"{self.path} was made by other versions of relive, torch, numpy or Python: the run starts over")
            return None
        samples = [tensors.pop(f"samples.{k}").numpy() for k in range(header.pop("n_samples"))]
        curve = [(task, step, row) for task, step, row in header.pop("curve")]
        return tensors, Progress(**header, curve=curve, samples=samples)

    def save(self, state: dict[str, Tensor], progress: Progress) -> None:
        header = {
            "identity": self.identity,
            "matrix": progress.matrix,
            "curve": progress.curve,
            "train_seconds": progress.train_seconds,
            "loads": progress.loads,
            "n_samples": len(progress.samples),
        }
        samples = {f"samples.{k}": torch.from_numpy(a) for k, a in enumerate(progress.samples)}
        tensors = {name: t.contiguous() for name, t in (state | samples).items()}
        text = json.dumps(header)
        with self.store.writable():
            write_atomic(self.path, save(tensors, metadata={"progress": text, "sha256": _digest(tensors, text)}))


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    """Return a digest of all that a checkpoint holds: the file format has none of its own."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
