"""Lets the registry's torchvision, which is built for CUDA, be imported with a CPU build of PyTorch.

Its compiled operators cannot be loaded there, and importing it fails because two of them are not registered. Import
this first: it registers them. Nothing here calls an operator of torchvision; Avalanche only imports its transforms.
"""

from __future__ import annotations

import torch

OPERATORS = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
OPERATORS.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
OPERATORS.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
