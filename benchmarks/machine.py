"""The machine that figures were measured on: processor, what computes its products, and the commit measured."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import ROOT
from relive._util.versions import processor
from relive.networks.products import uses_onednn


def machine() -> dict[str, Any]:
    """Return the machine that the figures were measured on."""
    memory_kb = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory_kb) / 2**20, 1),
        "system": platform.platform(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "products": "oneDNN" if uses_onednn() else "MKL",
        "commit": commit.stdout.strip(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
