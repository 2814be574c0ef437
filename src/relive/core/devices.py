"""Where tensors live. Random numbers are always drawn on the CPU and moved, so devices differ only by rounding."""

from __future__ import annotations

import torch

from relive._util.errors import InputError, unknown

DEVICES = ("cpu", "cuda", "mps", "auto")


def device_of(name: str) -> torch.device:
    """Return the device with that name; ``"auto"`` is a GPU if there is one.

    >>> device_of("cpu")
    device(type='cpu')

    Raises
    ------
    InputError
        If PyTorch has no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        if name.partition(":")[0] not in DEVICES:
            raise unknown("device", name, DEVICES) from error
        why = str(error).partition("\n")[0].rstrip(". ")
        raise InputError(
            f"device = {name!r}: PyTorch cannot use it here ({why}). 'cpu' always works; 'auto' takes a GPU if there "
            "is one"
        ) from error
    return device
