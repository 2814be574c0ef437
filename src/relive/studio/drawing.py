"""Turn a drawing into a picture like those the networks learned: cropped, resized and centred."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from relive._util.errors import InputError

INK = 20  # brightness above which a pixel counts as drawn
SMALL = 16  # up to this height a digit fills its picture; larger ones have a margin, like MNIST's
MARGIN = 1 / 7  # on each side


def prepared(drawing: npt.NDArray[np.uint8], shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return a drawing, white on black, as a picture of that shape with values in [0, 1].

    As in MNIST, the strokes are scaled to fit a box, proportions kept, and their centre of mass is moved to the middle.
    The small digits of scikit-learn have no margin.

    >>> drawing = np.zeros((64, 64), np.uint8)
    >>> drawing[10:50, 30:34] = 255
    >>> prepared(drawing, (28, 28)).sum(1).nonzero()[0].tolist() == list(range(4, 24))
    True
    """
    rows, columns = np.flatnonzero((drawing > INK).any(1)), np.flatnonzero((drawing > INK).any(0))
    if not len(rows):
        raise InputError("nothing is drawn yet")
    cut = drawing[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = shape
    free = 1.0 if height <= SMALL else 1 - 2 * MARGIN
    scale = min(height * free / cut.shape[0], width * free / cut.shape[1])
    size = max(1, round(cut.shape[1] * scale)), max(1, round(cut.shape[0] * scale))
    small = np.asarray(Image.fromarray(cut).resize(size, Image.Resampling.BOX), dtype=np.float64) / 255
    picture = np.zeros(shape)
    top, left = (_start(small.sum(1 - axis), full) for axis, full in enumerate(shape))
    picture[top : top + small.shape[0], left : left + small.shape[1]] = small
    return picture


def _start(weights: npt.NDArray[np.float64], full: int) -> int:
    """Return the first index that puts the centre of mass in the middle, as far as there is room."""
    centre = float((weights * (np.arange(len(weights)) + 0.5)).sum() / weights.sum())
    return int(np.clip(round(full / 2 - centre), 0, full - len(weights)))
