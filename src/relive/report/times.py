"""Training times of interleaved methods: a file in a runs directory, next to the runs whose methods it is about."""

from __future__ import annotations

import json
from pathlib import Path

from relive._util import schema
from relive._util.errors import InputError, unknown
from relive.paper.published import PUBLISHED

TIMES = "training-times.json"
LONGEST = 1e9  # seconds
Times = dict[tuple[str, str, str], list[float]]  # protocol, scenario, method: seconds of a run, one per repeat


def read_times(root: Path) -> Times:
    """Return the training times in a runs directory, if there are any; the n-th of a scenario's methods are a repeat.

    Raises
    ------
    InputError
        If the file is not what ``python -m benchmarks.training_times`` writes.
    """
    path = root / TIMES
    if not path.exists():
        return {}
    times = Times()
    try:
        for name, measured in json.loads(path.read_text(encoding="utf-8")).items():
            protocol, scenario = name.split("/")
            for method, seconds in measured["seconds"].items():
                if (protocol, scenario, method) not in PUBLISHED:
                    raise unknown(f"cell in {path}", f"{name}/{method}", ["/".join(cell) for cell in PUBLISHED])
                values = [schema.number(s, f"{path}: seconds", 1e-3, LONGEST) for s in schema.items(seconds, name)]
                times[protocol, scenario, method] = values
            repeats = {len(seconds) for seconds in measured["seconds"].values()}
            if len(repeats) > 1:
                raise InputError(f"{path}: the methods of {name} must have equally many times, not {sorted(repeats)}")
    except (OSError, RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        example = '{"split/class": {"seconds": {"rtf": [150.2], "dgr-distill": [201.7]}}}'
        raise InputError(f"{path} must be a JSON object such as {example}: {error!r}") from None
    return times
