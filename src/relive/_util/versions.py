"""Versions of this code and of what runs it."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path


def versions() -> dict[str, str]:
    """Return the versions that the bits of a result depend on, besides its spec."""
    packages = {name: version(name) for name in ("relive", "torch", "numpy")}
    return packages | {"python": platform.python_version(), "machine": platform.machine(), "code": _code_digest()}


def provenance() -> dict[str, str]:
    """Return what made a result: the versions, and the processor model, which its time depends on."""
    return versions() | {"processor": processor()}


@functools.cache
def processor() -> str:
    """Return the processor model, as exactly as the system tells (Linux on x86: the model; others: only a family).

    If PyTorch is held to a part of its instructions, they are named too: they affect times and the last bits.
    """
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        cpuinfo = ""
    held = os.environ.get("ATEN_CPU_CAPABILITY")
    return (_named(cpuinfo) or platform.processor() or platform.machine()) + (f", held to {held}" if held else "")


def _named(cpuinfo: str) -> str:
    r"""Return the first processor's name with its family and model: on virtual machines many models share one name.

    >>> _named("cpu family : 6\nmodel : 207\nmodel name : Intel(R) Xeon(R) Processor\n\nmodel name : Another\n")
    'Intel(R) Xeon(R) Processor (family 6, model 207)'
    >>> _named("processor : 0\nCPU part : 0xd0c\n")
    ''
    """
    lines = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    said = {key.strip(): value.strip() for key, _, value in lines}
    if "model name" not in said:
        return ""
    return f"{said['model name']} (family {said.get('cpu family', '?')}, model {said.get('model', '?')})"


TRAINS = ("_util", "data", "networks", "core", "methods", "experiments/execute.py")  # code that determines a run's bits


@functools.cache
def _code_digest() -> str:
    """Return a short digest of the code that trains, so that a result can be traced to the code that made it."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for part in TRAINS for path in _sources(package / part)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _sources(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else path.rglob("*.py")
