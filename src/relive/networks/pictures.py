"""How a row of numbers is to be read as a picture: its size, its colours, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from relive._util.errors import InputError

COLOURS = 4  # at most: red, green, blue, and how transparent


@dataclass(frozen=True)
class Picture:
    """The shape of a picture.

    Attributes
    ----------
    channels, height, width
        Its size.
    colours_last
        Whether a row has the colours of one pixel side by side, as image files have them.
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
            f"{who} is for pictures, and an input's shape is {shape}: say what it is, such as shape=(28, 28), or "
            "relive fit --shape 28x28; (32, 32, 3) with colours. For relive run, give pictures: arrays of that shape"
        )

    def planes(self, x: Tensor) -> Tensor:
        """Return rows (n, inputs) as (n, channels, height, width)."""
        if self.colours_last:
            return x.reshape(len(x), self.height, self.width, self.channels).permute(0, 3, 1, 2)
        return x.reshape(len(x), self.channels, self.height, self.width)

    def rows(self, planes: Tensor) -> Tensor:
        """Return (n, channels, height, width) as rows (n, inputs)."""
        return (planes.permute(0, 2, 3, 1) if self.colours_last else planes).flatten(1)
