"""Random generators made from a seed and a name, so that a run is a function of its spec alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def stream(seed: int, name: str) -> torch.Generator:
    """Return a separate generator for one purpose; streams with other names or seeds are independent of it.

    >>> torch.equal(torch.rand(3, generator=stream(0, "a")), torch.rand(3, generator=stream(0, "a")))
    True
    >>> torch.equal(torch.rand(3, generator=stream(0, "a")), torch.rand(3, generator=stream(0, "b")))
    False
    """
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def fork(rng: torch.Generator) -> torch.Generator:
    """Return a new generator seeded from ``rng``: drawing from it does not affect ``rng``."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=rng)))


@contextmanager
def drawing_from(rng: torch.Generator) -> Iterator[None]:
    """Make draws from PyTorch's global generator (initial weights, dropout) depend only on ``rng``'s state.

    Nothing is drawn from ``rng`` itself, and afterwards the global generator is restored.

    >>> def draw(seed: int) -> torch.Tensor:
    ...     with drawing_from(stream(seed, "a")):
    ...         return torch.rand(3)
    >>> torch.equal(draw(0), draw(0)), torch.equal(draw(0), draw(1))
    (True, False)
    """
    before = torch.get_rng_state()
    digest = hashlib.sha256(rng.get_state().numpy().tobytes()).digest()
    torch.default_generator.manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    try:
        yield
    finally:
        torch.set_rng_state(before)
