"""Transforms that a protocol applies to a task's inputs when they are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Permutation:
    """Permuted inputs.

    Attributes
    ----------
    order
        (inputs,) where each input of a row comes from.
    """

    order: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return x.gather(1, self.order.to(x.device).expand(len(x), -1))  # faster than an index


class Rotation:
    """Images rotated anticlockwise about their centre, with bilinear interpolation and zeros outside.

    >>> picture = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # 1 2
    >>> Rotation(90, (2, 2))(picture).tolist()  #         3 4
    [[2.0, 4.0, 1.0, 3.0]]

    Parameters
    ----------
    degrees
        The angle.
    shape
        Height and width of an image, plus 3 if it is in colour.
    """

    def __init__(self, degrees: float, shape: tuple[int, ...]) -> None:
        self.degrees = degrees
        self.shape = shape
        height, width = shape[:2]
        channels = math.prod(shape[2:])
        row, column = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        y, x = row - (height - 1) / 2, column - (width - 1) / 2
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        from_y, from_x = s * x + c * y + (height - 1) / 2, c * x - s * y + (width - 1) / 2
        places, weights = [], []
        for down in (0, 1):  # the four pixels around where each pixel comes from
            for right in (0, 1):
                i, j = from_y.floor() + down, from_x.floor() + right
                inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
                weights.append(inside * (1 - (from_y - i).abs()) * (1 - (from_x - j).abs()))
                places.append(i.clamp(0, height - 1) * width + j.clamp(0, width - 1))
        place = torch.stack(places).reshape(4, -1, 1).long() * channels + torch.arange(channels)
        self.place = place.flatten(1)  # (4, inputs)
        self.weight = torch.stack(weights).reshape(4, -1, 1).expand_as(place).reshape(4, -1, 1)  # (4, inputs, 1)

    def __call__(self, x: Tensor) -> Tensor:
        columns = x.float().t().contiguous()  # (inputs, n): a pixel of all rows is moved at once
        turned = torch.zeros_like(columns)
        for place, weight in zip(self.place, self.weight, strict=True):
            turned.addcmul_(columns.index_select(0, place.to(x.device)), weight.to(x.device))
        return turned.t().contiguous()
