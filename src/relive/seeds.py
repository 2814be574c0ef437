"""Random generators made from a seed and a name, so that a run is a function of its spec alone."""

from __future__ import annotations

import hashlib

import torch


def stream(seed: int, name: str) -> torch.Generator:
    """Return a generator of its own for one purpose; streams of other names or seeds are independent of it.

    >>> torch.equal(torch.rand(3, generator=stream(0, "a")), torch.rand(3, generator=stream(0, "a")))
    True
    >>> torch.equal(torch.rand(3, generator=stream(0, "a")), torch.rand(3, generator=stream(0, "b")))
    False
    """
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def fork(rng: torch.Generator) -> torch.Generator:
    """Return a new generator seeded from ``rng``: however much is drawn from it, ``rng`` goes on the same."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=rng)))
