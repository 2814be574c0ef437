"""A data set small enough to make, damage and serve many times."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np

from relive.data.catalogue import DatasetFacts
from relive.data.datasets import idx
from relive.data.datasets.fetchers import Source
from relive.data.datasets.recipes import Recipe

_random = np.random.default_rng(0)
RAW = {
    "train-images-idx3-ubyte": idx.to_bytes(_random.integers(0, 256, (20, 4, 4), np.uint8)),
    "train-labels-idx1-ubyte": idx.to_bytes(np.arange(20, dtype=np.uint8) % 10),
    "t10k-images-idx3-ubyte": idx.to_bytes(_random.integers(0, 256, (10, 4, 4), np.uint8)),
    "t10k-labels-idx1-ubyte": idx.to_bytes(np.arange(10, dtype=np.uint8)),
}
IMAGES, LABELS, TEST_IMAGES, TEST_LABELS = RAW
PACKED = {f"/{name}.gz": gzip.compress(raw) for name, raw in RAW.items()}


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def recipe(*sources: Source) -> Recipe:
    facts = DatasetFacts("tiny", "Tiny", "", 20, 10, (4, 4), tuple(map(sha256, RAW.values())))
    return Recipe(facts, sources)


FILES = recipe().files


def put(folder: Path, *, packed: bool = False) -> Path:
    """Put the four files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in RAW.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(PACKED[f"/{name}.gz"])
        else:
            (folder / name).write_bytes(raw)
    return folder
