"""How a row of numbers represents an image, and over which fields its maps are averaged. No torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relive._util.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

COLOURS = 4  # at most: red, green, blue, alpha


@dataclass(frozen=True)
class Picture:
    """The shape of an image.

    Attributes
    ----------
    channels, height, width
        Its size.
    colours_last
        Whether a row has the colours of a pixel next to each other, as in image files.
    """

    channels: int
    height: int
    width: int
    colours_last: bool = False

    @classmethod
    def of(cls, shape: tuple[int, ...], who: str) -> Picture:
        """Read a shape: (height, width), with colours first or last.

        >>> Picture.of((28, 28), "conv")
        Picture(channels=1, height=28, width=28, colours_last=False)
        >>> Picture.of((32, 24, 3), "conv") == Picture(3, 32, 24, colours_last=True)
        True
        """
        if len(shape) == 2:
            return cls(1, *shape)
        if len(shape) == 3 and min(shape[0], shape[2]) <= COLOURS:
            last = shape[2] <= COLOURS < shape[0]
            channels, height, width = (shape[2], *shape[:2]) if last else shape
            return cls(channels, height, width, last)
        raise InputError(
            f"{who} needs images, but an input's shape is {shape}: set it, such as shape=(28, 28), or relive "
            "fit --shape 28x28; (32, 32, 3) in colour. For relive run, give arrays of images"
        )

    def planes(self, x: Tensor) -> Tensor:
        """Return rows (n, inputs) as (n, channels, height, width)."""
        if self.colours_last:
            return x.reshape(len(x), self.height, self.width, self.channels).permute(0, 3, 1, 2)
        return x.reshape(len(x), self.channels, self.height, self.width)

    def rows(self, planes: Tensor) -> Tensor:
        """Return (n, channels, height, width) as rows (n, inputs)."""
        return (planes.permute(0, 2, 3, 1) if self.colours_last else planes).flatten(1)


def pooled_by(picture: Picture) -> int:
    """Return the pooling size of the first layer of random convolutions, in pixels per side."""
    return 2 if min(picture.height, picture.width) >= 16 else 1


def fields(picture: Picture, grid: int) -> int:
    """Return the number of fields over which a map of the first layer is averaged."""
    sides = (-(-n // pooled_by(picture)) for n in (picture.height, picture.width))
    return math.prod(min(grid, n) for n in sides)


def overlapping(side: int, grid: int) -> tuple[int, int]:
    """Return the window and the stride that divide a side into overlapping fields.

    >>> overlapping(14, 3), overlapping(2, 4)
    ((6, 4), (1, 1))
    """
    stride = max(1, round(side / (grid + 0.5)))
    return max(1, side - (min(grid, side) - 1) * stride), stride
