"""The tables of ``docs/peers.md``, from the results in ``reproduction/peers.json``."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.run import METHODS, ONLY_CLASS, SEEDS, TIMED, key


def cell(runs: Sequence[dict[str, Any]], library: str, method: str, scenario: str) -> str:
    """Return mean ± SEM in percent of the runs of a cell, with n where it is not three."""
    values = [100 * run["average_accuracy"] for run in runs if key(run)[:3] == (library, method, scenario)]
    if not values:
        return "not run"
    n = "" if len(values) == len(SEEDS) else f" (n = {len(values)})"
    if len(values) == 1:
        return f"{values[0]:.2f}{n}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values) / len(values) ** 0.5:.2f}{n}"


def accuracy_table(found: dict[str, Any]) -> list[str]:
    """Return the accuracies side by side."""
    rows = [
        "| Avalanche | Class-IL | Task-IL | relive | Class-IL | Task-IL |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    runs = found["runs"]
    beside = {"naive": "none", "ewc": "ewc", "si": "si", "lwf": "lwf", "generative_replay_paper": "dgr"}
    for method, title in [*((method, title) for method, (title, _) in METHODS.items()), ("", "–")]:
        theirs = (
            [cell(runs, "avalanche", method, "class"), cell(runs, "avalanche", method, "task")] if method else [""] * 2
        )
        if method in ONLY_CLASS:
            theirs[1] = "has none"
        name = beside.get(method, "" if method else "rtf")
        ours = (
            [f"`{name}`", cell(runs, "relive", name, "class"), cell(runs, "relive", name, "task")] if name else [""] * 3
        )
        rows.append(f"| {' | '.join([title, *theirs, *ours])} |")
    return rows


def seed_table(found: dict[str, Any]) -> list[str]:
    """Return every run of Avalanche with relive's run of the same seed, so of the same tasks."""
    rows = ["| Avalanche | scenario | seed | accuracy | relive, same seed |", "| --- | --- | ---: | ---: | --- |"]
    runs = {key(run): 100 * run["average_accuracy"] for run in found["runs"]}
    for method, (title, names) in METHODS.items():
        for _, _, scenario, seed in (k for k in runs if k[:2] == ("avalanche", method)):
            ours = ", ".join(f"`{name}` {runs['relive', name, scenario, seed]:.2f}" for name in names)
            theirs = runs["avalanche", method, scenario, seed]
            rows.append(f"| {title} | {scenario.title()}-IL | {seed} | {theirs:.2f} | {ours} |")
    return rows


def cost_table(found: dict[str, Any]) -> list[str]:
    """Return time, memory and lines side by side."""
    repeats, peak, counted = found["timing"]["repeats"], found["memory"], found["lines"]
    times = " | ".join(f"iteration, theirs / ours, {products}" for products in repeats)
    rows = [
        f"| Avalanche | relive | {times} | peak memory (MB), theirs, ours | lines, theirs, ours |",
        f"| --- | --- {'| ---: ' * len(repeats)}| ---: | ---: |",
    ]
    for method in TIMED:
        for name in METHODS[method][1]:
            ratios = " | ".join(
                spread([repeat[method]["ratios"][name] for repeat in some]) for some in repeats.values()
            )
            megabytes = f"{peak['avalanche'][method]:.0f}, {peak['relive'][name]:.0f}"
            count = f"{counted['avalanche'][method]['class']}, {counted['relive']}"
            rows.append(f"| {METHODS[method][0]} | `{name}` | {ratios} | {megabytes} | {count} |")
    return rows


def spread(values: Sequence[float]) -> str:
    """Return the median of some repeats, and their range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def notes(found: dict[str, Any]) -> str:
    """Return what else was measured, in words."""
    peak, repeats = found["memory"], found["timing"]["repeats"]
    counts = ", ".join(f"{len(some)} ({products})" for products, some in repeats.items())
    fishers = {products: [repeat["ewc"]["fisher"] for repeat in some] for products, some in repeats.items()}
    fisher = ", ".join(
        f"{spread([one['theirs'] / one['ewc'] for one in some])} ({products})" for products, some in fishers.items()
    )
    imports = f"{peak['avalanche']['imports']:.0f} and {peak['relive']['imports']:.0f} MB"
    return (
        f"Repeats: {counts}. EWC's importances, once per task, take {fisher} times as long in Avalanche as in "
        f"relive.\nOf the peak memory, {imports} are used by the imports alone.\n"
        f"Of Avalanche's lines, {found['lines']['stop_after']} are the plugin that stops after 2,000 iterations."
    )


def tables(found: dict[str, Any]) -> str:
    """Return everything between the page's two marks."""
    return "\n".join([*accuracy_table(found), "", *seed_table(found), "", *cost_table(found), "", notes(found)])
