"""Output units come in blocks of 16, 16, 32, 64, …: a layer that has grown is as wide as one that was made large.

The last bits of a matrix product depend on how wide it is. With a product per block, the units in use give the same
bits however many more there are. Blocks double, so that few products serve many units.
"""

from __future__ import annotations

FIRST = 16


def full_width(n_units: int) -> int:
    """Return how many units a layer has in which so many are in use: full blocks.

    >>> full_width(10), full_width(17), full_width(100)
    (16, 32, 128)
    """
    width = FIRST
    while width < n_units:
        width *= 2
    return width


def block_sizes(width: int) -> list[int]:
    """Return how many units each block of a layer has; if it is not of full width, the last has fewer.

    >>> block_sizes(64), block_sizes(20), block_sizes(6)
    ([16, 16, 32], [16, 4], [6])
    """
    sizes = [min(FIRST, width)]
    while sum(sizes) < width:
        sizes.append(min(sum(sizes), width - sum(sizes)))
    return sizes
