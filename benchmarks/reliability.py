"""Attempts to break relive, as a page: ``python -m benchmarks.reliability``.

The figures are those of ``make faults``, ``make fuzz`` and ``python -m benchmarks.soak``, whose JSON files are given
with ``--faults``, ``--fuzz`` and ``--soak``; they are kept in ``reproduction/reliability.json``. The tables in
``docs/reliability.md`` and ``SECURITY.md`` are made from that.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT
from benchmarks.page import put

KEPT = ROOT / "reproduction" / "reliability.json"
MARK = "reliability"


def faults_table(found: dict[str, Any]) -> str:
    """Return the faults at system calls, an operation per row."""
    rows = ["| operation | faults | killed | reported an error | succeeded | lost | incomplete or wrong |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    sums = [0] * 6
    for name, tried in found["operations"].items():
        n, endings = sum(tried["faults"].values()), tried["endings"]
        lost = sum("nothing is stored" in wrong for wrong in tried["wrong"])
        counts = [n, *(endings.get(key, 0) for key in ("killed", "told", "went on")), lost, len(tried["wrong"]) - lost]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        rows.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |")
    rows.append(f"| **all** | {' | '.join(f'**{count:,}**' for count in sums)} |")
    by_kind: Counter[str] = Counter()
    for tried in found["operations"].values():
        by_kind.update(tried["faults"])
    calls = Counter[str]()
    for kind, n in by_kind.items():
        calls[kind.split()[0]] += n
    rows += ["", "By call: " + ", ".join(f"{call} {n:,}" for call, n in calls.most_common()) + "."]
    return "\n".join(rows)


def fuzz_table(found: dict[str, Any]) -> str:
    """Return the damaged inputs, a kind per row."""
    rows = ["| input | cases | refused | accepted | crashed or hung |", "| --- | ---: | ---: | ---: | ---: |"]
    sums = [0, 0, 0, 0]
    for name, count in found["targets"].items():
        counts = [count["cases"], count["refused"], count["taken"], len(count["failed"])]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        rows.append(f"| {name} | {' | '.join(f'{n:,}' for n in counts)} |")
    rows.append(f"| **all** | {' | '.join(f'**{n:,}**' for n in sums)} |")
    return "\n".join([*rows, "", f"In {found['seconds']} s of one core, shared with other work."])


def soak_table(found: list[dict[str, Any]]) -> str:
    """Return the soaks, one per column."""
    kinds = sorted({kind for soak in found for kind in soak["faults"]})
    rows = [f"| | {' | '.join(soak['engine'] for soak in found)} |", f"| --- |{' ---: |' * len(found)}"]

    def row(name: str, values: list[Any]) -> None:
        rows.append(f"| {name} | {' | '.join(map(str, values))} |")

    row("minutes", [soak["minutes"] for soak in found])
    row("runs", [f"{soak['runs']:,}" for soak in found])
    row("faults", [f"{sum(soak['faults'].values()):,}" for soak in found])
    for kind in kinds:
        row(f"– {kind}", [soak["faults"].get(kind, "–") for soak in found])
    row("**results lost**", [soak["lost"] for soak in found])
    row("**damaged**", [soak["damaged"] for soak in found])
    row("**wrong**, of those compared", [f"{soak['wrong']} of {soak['compared']:,}" for soak in found])
    row("**done by two processes at once**", [soak["twice at a time"] for soak in found])
    row("starts, including restarts", [f"{soak['begun']:,}" for soak in found])
    for kind in kinds:
        times = [soak["recovery"].get(kind) for soak in found]
        row(f"seconds to the next result after {kind}: median, worst", [f"{t[0]}, {t[1]}" if t else "–" for t in times])
    row("megabytes of driver and workers: first and last third", [" → ".join(map(str, s["megabytes"])) for s in found])
    return "\n".join(rows)


def summary(kept: dict[str, Any]) -> str:
    """Return one line for each, for ``SECURITY.md``."""
    lines = []
    if "faults" in kept:
        operations = kept["faults"]["operations"].values()
        n, wrong = sum(sum(t["faults"].values()) for t in operations), sum(len(t["wrong"]) for t in operations)
        lines.append(f"- {n:,} faults at system calls: {wrong} left something incomplete, wrong or lost.")
    if "fuzz" in kept:
        targets = kept["fuzz"]["targets"].values()
        n, failed = sum(t["cases"] for t in targets), sum(len(t["failed"]) for t in targets)
        lines.append(f"- {n:,} damaged files and command lines, as many in every run of CI: {failed} crashed or hung.")
    for soak in kept.get("soak", []):
        n = sum(soak["faults"].values())
        lines.append(
            f"- {soak['runs']:,} runs in {soak['minutes']} minutes with {n} faults ({soak['engine']}): {soak['lost']} "
            f"lost, {soak['wrong']} wrong, {soak['twice at a time']} done by two processes at once."
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=Path, help="new figures of python -m tests.faults --output FILE")
    parser.add_argument("--fuzz", type=Path, help="new figures of python -m tests.fuzzing --output FILE")
    parser.add_argument("--soak", type=Path, nargs="+", help="new figures of python -m benchmarks.soak --output FILE")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in ("faults", "fuzz"):
        if getattr(options, name):
            kept[name] = json.loads(getattr(options, name).read_text())
    if options.soak:
        kept["soak"] = [json.loads(path.read_text()) for path in options.soak]
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    page = ROOT / "docs" / "reliability.md"
    for name, table in (("faults", faults_table), ("fuzz", fuzz_table), ("soak", soak_table)):
        if name in kept:
            put(page, name, table(kept[name]))
    put(ROOT / "SECURITY.md", MARK, summary(kept))


if __name__ == "__main__":
    main()
