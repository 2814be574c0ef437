"""The benchmark suite: ``python -m benchmarks.bench``, or ``make bench``.

Every figure is a ratio of measurements alternated within one run, because machines are noisy; milliseconds are kept
only for the pictures. Parts can be run alone (``--only floor``); the other parts of the file then stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import dgr, fisher, floor, growth, memory, pictures, processes, products, versus, whole_run
from benchmarks.common import AT_LEAST, ROOT, Effort, Findings, one_thread
from benchmarks.machine import machine
from benchmarks.page import put
from relive._util.files import write_atomic
from relive._util.versions import versions

DOCS = ROOT / "docs" / "performance.md"

Part = Callable[[Effort], Findings]
PARTS: dict[str, tuple[str, Part]] = {
    "floor": ("Share of an iteration that is its bare matrix products (last task, Class-IL)", floor.measure),
    "floor-avx2": ("The same share with PyTorch held to AVX2 (MKL's products)", floor.measure_avx2),
    "products": ("Speed with oneDNN's products over MKL's (last task, Class-IL)", products.measure),
    "run": (
        "Share of a whole run that is its training iterations (split MNIST, Class-IL; XdG: Task-IL)",
        whole_run.measure,
    ),
    "fisher": ("Exact Fisher information, batched, over one sample at a time", fisher.measure),
    "versus": ("Speed over plain PyTorch (split MNIST, Task-IL)", versus.measure),
    "workers": ("Two processes or two threads", processes.measure_workers),
    "dgr": ("Training time of RtF over DGR+distill (last task, Class-IL)", dgr.measure),
    "tasks": ("Time per task as tasks go by (permuted MNIST, Domain-IL)", growth.measure_tasks),
    "memory": ("Peak memory", memory.measure),
    "start": ("Start", processes.measure_start),
    "growth": ("Growth with tasks, width and batch size", growth.measure_curves),
    "before": ("Before and now", processes.measure_before),
}


def measure(parts: list[str], repeat: int, quick: bool, console: Console) -> dict[str, Any]:
    """Run all parts ``repeat`` times, one round after the other."""
    found: dict[str, list[Findings]] = {name: [] for name in parts}
    loads: dict[str, list[float]] = {name: [] for name in parts}
    seconds = dict.fromkeys(parts, 0.0)
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=repeat * len(parts))
        for _ in range(repeat):
            for name in parts:

                def say(text: str, name: str = name) -> None:
                    progress.update(bar, description=f"{name}: {text}")

                start = time.perf_counter()
                found[name].append(PARTS[name][1](Effort(quick, say)))
                seconds[name] += time.perf_counter() - start
                loads[name].append(round(os.getloadavg()[0], 2))
                progress.advance(bar)
    return {
        name: {
            "title": PARTS[name][0],
            "figures": [
                asdict(first) | {"value": statistics.median(values), "values": values}
                for first, values in (
                    (figures[0], [figure.value for figure in figures])
                    for figures in zip(*(findings.figures for findings in runs), strict=True)
                )
            ],
            "data": [findings.data for findings in runs],
            "load_average": loads[name],
            "seconds": round(seconds[name], 1),
            "quick": quick,
            "machine": machine() | runs[0].machine,
            "versions": versions(),
        }
        for name, runs in found.items()
    }


def reached(figure: dict[str, Any]) -> bool | None:
    """Return whether a figure reaches its goal, or None if it has none."""
    if figure["goal"] is None:
        return None
    if figure["sense"] == AT_LEAST:
        return bool(figure["value"] >= figure["goal"])
    return bool(figure["value"] <= figure["goal"])


def number(value: float, unit: str) -> str:
    """Return a number with three significant digits, and its unit.

    >>> number(36.02, "×"), number(0.7982, ""), number(447.9, "MB")
    ('36.0×', '0.798', '448 MB')
    """
    text = (
        f"{value:.3g}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2f}"
        if unit
        else f"{value:.3f}"
    )
    return f"{text} {unit}" if unit == "MB" else f"{text}{unit}"


def rows(part: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return a part as rows: figure, goal, measured, range of the repeats, note."""
    lines = []
    for figure in part["figures"]:
        unit, values = figure["unit"], figure["values"]
        goal = (
            "" if figure["goal"] is None else f"{figure['sense']} {figure['goal']:g}{' MB' if unit == 'MB' else unit}"
        )
        mark = {True: " ✓", False: " ✗", None: ""}[reached(figure)]
        spread = f"{number(min(values), unit)} to {number(max(values), unit)}" if len(values) > 1 else ""
        lines.append((figure["name"], goal, number(figure["value"], unit) + mark, spread, figure["note"]))
    return lines


def show(parts: dict[str, Any], console: Console) -> None:
    """Print goals next to measurements."""
    for part in parts.values():
        load = ", ".join(map(str, part["load_average"]))
        table = Table(title=f"{part['title']}  (load {load})", title_justify="left", header_style="bold")
        for column in ("figure", "goal", "measured", "repeats", "note"):
            table.add_column(column, justify="right" if column in ("goal", "measured") else "left")
        for row in rows(part):
            style = "red" if "✗" in row[2] else "green" if "✓" in row[2] else ""
            table.add_row(*row, style=style)
        console.print(table)


def markdown(parts: dict[str, Any]) -> str:
    """Return everything as tables for the documentation."""
    text = []
    for name in (name for name in PARTS if name in parts):
        part = parts[name]
        here, load = part["machine"], ", ".join(map(str, part["load_average"]))
        text += [
            f"### {part['title']}",
            "",
            "| figure | goal | measured | repeats | note |",
            "| --- | --- | --- | --- | --- |",
        ]
        text += [f"| {' | '.join(row)} |" for row in rows(part)]
        text += [
            "",
            f"*{here['cpu']} with {here['vector_instructions']}, {here['cores']} cores, "
            f"torch {part['versions']['torch']}, commit {here['commit']}; load average {load}*",
            "",
        ]
        if part["quick"]:
            text += ["*A quick run, only to see that everything works: not to be quoted.*", ""]
        if (ROOT / "docs" / "performance" / f"{name}.svg").exists():
            text += [f"![{part['title']}](performance/{name}.svg)", ""]
    return "\n".join(text)


def write_docs(parts: dict[str, Any]) -> None:
    """Draw the pictures, and put the tables between their marks in the documentation."""
    pictures.draw(parts, ROOT / "docs" / "performance")
    put(DOCS, "figures", markdown(parts))


def main() -> None:
    """Measure, print, and write the JSON, and with ``--write-docs`` the pictures and tables of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part; repeatable")
    parser.add_argument("--repeat", type=int, default=1, help="how many times to run every part (default: 1)")
    parser.add_argument("--quick", action="store_true", help="just enough to check that everything works")
    parser.add_argument("--output", type=Path, default=ROOT / "reproduction" / "performance.json")
    parser.add_argument("--pictures", type=Path, help="draw pictures into this directory")
    parser.add_argument("--write-docs", action="store_true", help="pictures and tables into docs/")
    parser.add_argument("--measure-nothing", action="store_true", help="only draw and print the stored figures")
    options = parser.parse_args()
    console = Console(highlight=False)
    one_thread()
    parts = json.loads(options.output.read_text())["parts"] if options.output.exists() else {}
    if not options.measure_nothing:
        new = measure(options.only or list(PARTS), options.repeat, options.quick, console)
        parts |= new
        options.output.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(options.output, (json.dumps({"parts": parts}, indent=1) + "\n").encode())
        show(new, console)
        console.print(f"took      {sum(part['seconds'] for part in new.values()):.0f} s")
        console.print(f"figures   {options.output}")
    else:
        show(parts, console)
    if options.pictures:
        pictures.draw(parts, options.pictures)
    if options.write_docs:
        write_docs(parts)


if __name__ == "__main__":
    main()
