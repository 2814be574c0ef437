"""Threads per matrix product: one is fastest for these networks, and the number affects the last bits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

from relive._util.errors import InputError


def check_threads(n: int) -> None:
    """Refuse more threads than this machine has cores."""
    cores = os.cpu_count() or 1
    if n > cores:
        raise InputError(
            f"threads = {n}: this machine only has {cores} cores, and more threads than cores slow it down"
        )


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Use that many threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
