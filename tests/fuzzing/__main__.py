"""Feed damaged input to relive: ``python -m tests.fuzzing --cases 20000``. Failing cases go to ``tests/corpus``."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from tests.fuzzing.run import CORPUS, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", default="0", help="another seed generates other cases")
    parser.add_argument("--only", help="only the target of this name")
    parser.add_argument("--output", type=Path, help="where to write the counts, as JSON")
    options = parser.parse_args()
    output = options.output.absolute() if options.output else None
    start = time.monotonic()
    with tempfile.TemporaryDirectory(
        prefix="relive-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    ) as home:
        counts = fuzz(Path(home), options.cases, options.seed, options.only)
    seconds = time.monotonic() - start
    for name, count in counts.items():
        print(
            f"{name}: {count.cases} cases, {count.refused} refused, {count.taken} accepted, {len(count.failed)} failed"
        )
        for failed in count.failed[:5]:
            print(f"  {failed}")
    total = sum(count.cases for count in counts.values())
    print(f"{total} cases in {seconds:.0f} s; failing cases are in {CORPUS}")
    if output:
        made = {
            name: {"cases": c.cases, "refused": c.refused, "taken": c.taken, "failed": c.failed}
            for name, c in counts.items()
        }
        output.write_text(json.dumps({"targets": made, "seconds": round(seconds)}, indent=1) + "\n")
    return int(any(count.failed for count in counts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
