"""Output units come in blocks of 16, 16, 32, 64, …, so that a layer that grew is as wide as one created large.

The last bits of a matrix product depend on its width. With one product per block, the units in use give the same
bits however many more there are. Blocks double, so that few products cover many units.
"""

from __future__ import annotations

FIRST = 16


def full_width(n_units: int) -> int:
    """Return how many units a layer with this many in use has: complete blocks.

    >>> full_width(10), full_width(17), full_width(100)
    (16, 32, 128)
    """
    width = FIRST
    while width < n_units:
        width *= 2
    return width


def block_sizes(width: int) -> list[int]:
    """Return how many units each block of a layer has; the last may be incomplete.

    >>> block_sizes(64), block_sizes(20), block_sizes(6)
    ([16, 16, 32], [16, 4], [6])
    """
    sizes = [min(FIRST, width)]
    while sum(sizes) < width:
        sizes.append(min(sum(sizes), width - sum(sizes)))
    return sizes
