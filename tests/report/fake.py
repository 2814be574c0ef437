"""Made-up results: any accuracy, time and load for any cell of the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relive.experiments.spec import RunResult, RunSpec
from relive.paper.published import GRID_SEED, GRIDS, PRESETS, PUBLISHED, RUNS_PER_CELL, preset_settings
from relive.paper.tuned import Tuned

VERSIONS = {"relive": "0.1.0", "torch": "2.13.0", "numpy": "2.0.0", "python": "3.11.7", "machine": "x86_64"}
SECONDS = {
    "none": 60,
    "offline": 60,
    "ewc": 100,
    "online-ewc": 90,
    "dgr": 400,
    "dgr-distill": 410,
    "rtf": 220,
    "si": 200,
}
SCENARIO_SECONDS = {"task": 1.0, "domain": 1.1, "class": 1.25}


def spec_of(
    protocol: str = "split",
    scenario: str = "class",
    method: str = "rtf",
    seed: int = 1,
    settings: Mapping[str, float] | None = None,
    **changes: Any,
) -> RunSpec:
    """Return the paper's spec of a cell without importing torch."""
    values: dict[str, Any] = {"dataset": "mnist", **PRESETS[protocol], **changes}
    chosen = preset_settings(protocol, method) | dict(settings or {})
    return RunSpec(protocol=protocol, scenario=scenario, method=method, seed=seed, settings=chosen, **values)


def result_of(spec: RunSpec, accuracy: float = 0.9, *, seconds: float = 100.0, share: float | None = 1.0) -> RunResult:
    """Return a result of that average accuracy, with a consistent matrix and curve; ``share`` is of its core."""
    n = spec.tasks
    last = np.linspace(accuracy - 0.02 * min(1, 50 * (1 - accuracy)), accuracy + 0.02 * min(1, 50 * (1 - accuracy)), n)
    last = last - last.mean() + accuracy
    matrix = [[_between(0.98, last[k], i - k, n - 1 - k) if k <= i else 0.1 for k in range(n)] for i in range(n)]
    every = max(1, spec.iters // 10)
    curve = [
        (i, step, [matrix[i][k] for k in range(i + 1)])
        for i in range(n)
        for step in (1, *range(every, spec.iters + 1, every))
    ]
    return RunResult(
        spec=spec,
        average_accuracy=float(accuracy),
        accuracy_matrix=matrix,
        forgetting=0.98 - float(accuracy),
        backward_transfer=float(accuracy) - 0.98,
        curve=curve,
        train_seconds=seconds,
        cpu_seconds=None if share is None else share * seconds,
        parameters=478_410,
        stored_numbers=0,
        versions=dict(VERSIONS),
    )


def _between(start: float, end: float, step: int, steps: int) -> float:
    return float(end if steps == 0 else start + (end - start) * step / steps)


def paper_like(protocol: str = "split", seeds: int = 5, *, share: float | None = 1.0) -> list[RunResult]:
    """Return runs of every cell, drawn from the published distributions; a seed is equally hard for every method."""
    rng = np.random.default_rng(1)
    ease = rng.standard_normal(seeds)
    results = []
    for (which, scenario, method), cell in PUBLISHED.items():
        if which != protocol:
            continue
        for seed in range(seeds):
            noise = 0.9 * ease[seed] + (1 - 0.9**2) ** 0.5 * rng.standard_normal()
            accuracy = min(99.9, cell.mean + noise * cell.sem * RUNS_PER_CELL**0.5) / 100
            seconds = SECONDS.get(method, 80) * SCENARIO_SECONDS[scenario] * rng.normal(1, 0.03)
            spec = spec_of(protocol, scenario, method, seed + 1)
            results.append(result_of(spec, accuracy, seconds=float(seconds), share=share))
    return results


def searched(
    protocol: str = "split", scenario: str = "task", methods: tuple[str, ...] = ("ewc", "online-ewc", "si", "xdg")
) -> tuple[list[RunResult], Tuned]:
    """Return grid searches with one maximum, and the chosen settings."""
    results, tuned = [], Tuned()
    for method in methods:
        grid = GRIDS[protocol, method]
        name, values = next(iter(grid.items()))
        peak = len(values) * 2 // 3
        for position, value in enumerate(values):
            for gamma in grid.get("gamma", [None]):
                settings = {name: value} | ({} if gamma is None else {"gamma": gamma})
                accuracy = 0.9 - 0.02 * abs(position - peak) - (0 if gamma is None else 0.05 * (1 - gamma))
                results.append(result_of(spec_of(protocol, scenario, method, GRID_SEED, settings), accuracy))
        best = {name: values[peak]} | ({"gamma": 1.0} if "gamma" in grid else {})
        tuned[protocol, scenario, method] = preset_settings(protocol, method) | best
    return results, tuned


def pictures_of(n_tasks: int, side: int = 28) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return fake generated digits, one array per task."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:side, :side]
    ring = np.exp(-((np.hypot(rows - side / 2, columns - side / 2) - side / 4) ** 2) / 6)
    return [(255 * np.clip(ring * rng.uniform(0.4, 1, (100, 1, 1)), 0, 1)).astype(np.uint8) for _ in range(n_tasks)]
