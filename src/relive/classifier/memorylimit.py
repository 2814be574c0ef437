"""A memory limit for new tensors: a model file may ask for a network that is larger than the file itself.

Building the network on PyTorch's ``meta`` device would need no memory either, but loads PyTorch's compiler, more than
a second per process.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from relive._util.errors import InputError

MAKERS = (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn)  # how layers allocate; sizes come first


class MemoryLimit(TorchFunctionMode):
    """While it is active, new tensors may take at most this many bytes in total.

    >>> with MemoryLimit(100):
    ...     small, large = torch.zeros(20), torch.rand(10**6, 10**6)
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: it asks for more memory than its file contains
    """

    def __init__(self, n_bytes: float) -> None:
        super().__init__()
        self.left = n_bytes

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in MAKERS and str(kwargs.get("device")) != "meta":
            size = kwargs.get("size", args)
            size = size if not size or isinstance(size[0], numbers.Integral) else size[0]
            self.left -= math.prod(size) * (kwargs.get("dtype") or torch.get_default_dtype()).itemsize
            if self.left < 0:
                raise InputError("it asks for more memory than its file contains")
        return func(*args, **kwargs)
