"""A data set small enough to make, damage and serve many times."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np

from relive.data import Recipe, idx
from relive.data.fetchers import Source

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


def recipes(*sources: Source) -> dict[str, Recipe]:
    images, labels, test_images, test_labels = map(sha256, RAW.values())
    return {"tiny": Recipe("tiny", 20, 10, 4, (images, labels, test_images, test_labels), sources)}


FILES = recipes()["tiny"].files


def put(folder: Path, *, packed: bool = False) -> Path:
    """Put the four files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in RAW.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(PACKED[f"/{name}.gz"])
        else:
            (folder / name).write_bytes(raw)
    return folder
