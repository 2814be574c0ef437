"""Your own data set and protocol: coloured shapes in an NPZ file, learned under a different light in every task.

relive run --dataset my.npz --tasks 3
relive run --dataset examples/own_data.py:load --protocol examples/own_data.py:LIGHTS --scenario domain
relive compare --dataset examples/own_data.py:load --tasks 3 --method none --method rtf
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from relive import Dataset, Fidelity, Protocol, Task, make_spec, run
from relive.data.protocols import transformed

SHAPES = ("disc", "ring", "bar", "cross", "frame", "corner")
HEIGHT, WIDTH = 12, 16


def draw(shape: str, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return a picture (height, width, 3) of a shape somewhere, in some colour, with noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] - np.array([5.5, 7.5])[:, None, None] - rng.uniform(-2, 2, (2, 1, 1))
    r, larger = np.hypot(y, x), np.maximum(abs(y), abs(x))
    inside = {
        "disc": r < 4,
        "ring": (r > 3) & (r < 5),
        "bar": abs(y) < 1.5,
        "cross": (abs(y) < 1) | (abs(x) < 1),
        "frame": (larger > 3) & (larger < 5),
        "corner": (y > 0) & (x > 0),
    }[shape]
    picture: npt.NDArray[np.float64] = inside[..., None] * rng.uniform(0, 120, 3) + rng.uniform(0, 120, (*r.shape, 3))
    return picture.astype(np.uint8)


def load(per_class: int = 150) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.str_]]:
    """Return pictures and their classes: what a loader returns."""
    rng = np.random.default_rng(0)
    y = np.repeat(SHAPES, per_class)
    return np.stack([draw(shape, rng) for shape in y.tolist()]), y


def lights(data: Dataset, n_tasks: int, seed: int, fidelity: Fidelity) -> list[Task]:
    """Return the tasks of a protocol: all classes, the colours of each task dimmed in another way."""
    rng = torch.Generator().manual_seed(seed)
    filters = [torch.rand(3, generator=rng).square().repeat(HEIGHT * WIDTH) for _ in range(n_tasks)]
    return transformed(data, [partial(torch.mul, f) for f in filters], [f"light {k + 1}" for k in range(n_tasks)])


LIGHTS = Protocol("lights", lights, title="Lights", preset={"tasks": 3, "iters": 300, "hidden": 100})


if __name__ == "__main__":
    iters = 20 if "--quick" in sys.argv else 300
    sizes: dict[str, Any] = {"tasks": 3, "iters": iters, "hidden": 100, "latent": 20}
    x, y = load()
    test = np.arange(len(y)) % 3 == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shapes.npz"
        np.savez(path, X_train=x[~test], y_train=y[~test], X_test=x[test], y_test=y[test])
        for method in ("none", "rtf"):
            result = run(make_spec("split", "class", method, dataset=path, **sizes)).result
            print(f"split, Class-IL, {method:<4}   {100 * result.average_accuracy:.1f} %")
        result = run(make_spec(f"{__file__}:LIGHTS", "domain", "none", dataset=path, **sizes)).result
        print(f"lights, Domain-IL, none {100 * result.average_accuracy:.1f} %")
