"""Which code this is, and what runs it."""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import version
from pathlib import Path


def versions() -> dict[str, str]:
    """Return what the bits of a result depend on besides what was asked for."""
    packages = {name: version(name) for name in ("relive", "torch", "numpy")}
    return packages | {"python": platform.python_version(), "machine": platform.machine(), "code": _code_digest()}


@functools.cache
def _code_digest() -> str:
    """Return a short digest of this package's source, so that a result can be traced to the code that made it."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
