"""Training times measured in turns: a file in a runs directory, next to the runs whose methods it is about."""

from __future__ import annotations

import json
from pathlib import Path

from relive._util import schema
from relive._util.errors import InputError, unknown
from relive.paper.published import PUBLISHED

TIMES = "training-times.json"
Times = dict[tuple[str, str, str], list[float]]  # protocol, scenario, method: seconds of a run, one per repeat


def read_times(root: Path) -> Times:
    """Return the training times measured in turns, if there are any; the n-th of two methods belong together.

    Raises
    ------
    InputError
        If the file is not what ``python -m benchmarks.training_times`` writes.
    """
    path = root / TIMES
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["seconds"]
        found = {tuple(cell.split("/")): schema.items(values, cell) for cell, values in stored.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f'{path} must be a JSON object such as {{"seconds": {{"split/class/rtf": [150.2]}}}}: {error!r}'
        ) from None
    for cell in found:
        if cell not in PUBLISHED:
            raise unknown(f"cell in {path}", "/".join(cell), ["/".join(known) for known in PUBLISHED])
    return {
        (protocol, scenario, method): [schema.number(value, f"{path}: seconds", low=1e-9) for value in values]
        for (protocol, scenario, method), values in found.items()
    }
