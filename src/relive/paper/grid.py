"""Grid searches as in the paper's appendix B: one run per value, judged on the test sets."""

from __future__ import annotations

from collections.abc import Mapping

from relive._util.errors import InputError, unknown
from relive.experiments.spec import RunSpec
from relive.experiments.sweep import specs_of
from relive.methods import method_facts
from relive.paper.published import GRID_SEED, GRIDS, NOTHING_BEYOND, PROTOCOL_NAMES


def grid_specs(protocol: str, scenario: str, method: str) -> list[RunSpec]:
    """Return the runs of one grid search.

    >>> [spec.settings["proportion"] for spec in grid_specs("split", "task", "xdg")][-2:]
    [0.9, 0.95]
    """
    if protocol not in PROTOCOL_NAMES:
        raise unknown("protocol of the paper", protocol, PROTOCOL_NAMES)
    if (protocol, method) not in GRIDS:
        searched = sorted({name for _, name in GRIDS})
        raise InputError(
            f"{method} has no grid in the paper; choose one of: {', '.join(searched)}. To compare values of any "
            f"method's settings: relive compare --method {method} --set NAME=0.1,1,10"
        )
    specs = specs_of([protocol], [scenario], [method], [GRID_SEED], GRIDS[protocol, method])
    if not specs:
        method_facts(method).check_scenario(scenario)
    return specs


def at_edge(protocol: str, method: str, settings: Mapping[str, float]) -> list[str]:
    """Return which chosen settings are at the edge of their grid, so that there may be a better value beyond.

    >>> at_edge("split", "online-ewc", {"lam": 1.0, "gamma": 1.0})
    ['lam']
    """
    grid = GRIDS[protocol, method]
    return [
        name
        for name, values in grid.items()
        if settings[name] in (min(values), max(values)) and settings[name] != NOTHING_BEYOND.get(name)
    ]
