"""Three tasks of digits, a small model to learn them, and commands in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

SMALL = ["--method", "rtf", "--hidden", "16", "--latent", "4", "--iterations", "10", "--learning-rate", "0.01"]
PARAMETERS: dict[str, Any] = {"method": "rtf", "hidden": 16, "latent": 4, "iterations": 10, "learning_rate": 0.01}
TASKS = {"a": (0, 1), "b": (2, 3), "c": (4, 5)}
M = "m.safetensors"


def digits(*classes: int, n: int = 20) -> tuple[Any, Any]:
    """Some digits as bytes, and their labels."""
    x, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:n] for c in classes])
    return (x[rows] / 16 * 255).round().astype(np.uint8), y[rows]


def process(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "relive", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
