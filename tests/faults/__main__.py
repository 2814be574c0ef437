"""Try every fault: ``python -m tests.faults --output faults.json``; ``--sample N`` tries N per operation."""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.harness import CALLS, Fault, HarnessError, Tried, actions, attempt, check_available, prepared
from tests.faults.operations import OPERATIONS, Operation

LONGEST = 400  # calls of one kind, far more than any operation makes


def every(operation: Operation, tried: Tried) -> None:
    """Try every fault at every call, until the operation completes."""
    for call in CALLS:
        for what in actions(call, operation):
            for n in range(1, LONGEST):
                if not attempt(operation, Fault(call, what, n), tried):
                    break
            else:
                tried.wrong.append(f"{operation.name}: more than {LONGEST} calls of {call}")


def some(operation: Operation, tried: Tried, n: int, rng: random.Random) -> None:
    """Try n faults, drawn at random."""
    calls = ["open", "write", "fsync", "rename", "unlink", "map", "read", "close"]
    while sum(tried.counts.values()) < n:
        call = rng.choice(calls)
        attempt(operation, Fault(call, rng.choice(list(actions(call, operation))), rng.randrange(1, 12)), tried)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="where to write what was tried, as JSON")
    parser.add_argument("--sample", type=int, help="how many faults per operation; all if not given")
    parser.add_argument("--only", help="only operations whose name contains this")
    options = parser.parse_args()
    try:
        check_available()
    except HarnessError as error:
        print(f"skipped: {error}")
        return 3
    warnings.simplefilter("ignore")
    start, found = time.monotonic(), dict[str, Any]()
    output = options.output.absolute() if options.output else None
    with tempfile.TemporaryDirectory(prefix="relive-faults-") as home:
        for operation in OPERATIONS:
            if options.only and options.only not in operation.name:
                continue
            tried = Tried()
            prepared(operation, Path(home) / "try")
            if options.sample:
                some(operation, tried, options.sample, random.Random(operation.name))
            else:
                every(operation, tried)
            n = sum(tried.counts.values())
            print(f"{operation.name}: {n} faults, {len(tried.wrong)} wrong", flush=True)
            for wrong in tried.wrong:
                print(f"  {wrong}", flush=True)
            found[operation.name] = {
                "faults": dict(sorted(tried.counts.items())),
                "endings": dict(tried.endings),
                "wrong": tried.wrong,
            }
        os.chdir("/")
    total: Counter[str] = Counter()
    for tried_ in found.values():
        total.update(tried_["faults"])
    print(f"{sum(total.values())} faults in {time.monotonic() - start:.0f} s")
    if output:
        seconds = round(time.monotonic() - start)
        output.write_text(json.dumps({"operations": found, "seconds": seconds}, indent=1) + "\n")
    return int(any(tried_["wrong"] for tried_ in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
