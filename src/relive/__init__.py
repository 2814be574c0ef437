"""Continual learning by reliving: learn task after task, replay what the network's own feedback generates.

A run in a few lines::

    from relive import make_spec, run

    outcome = run(make_spec("split", "class", "rtf", dataset="digits", iters=200))
    print(outcome.result.average_accuracy)

Names are imported when they are first used, so that ``import relive`` does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relive.data.protocols import tasks_of
    from relive.data.sources import load_data
    from relive.errors import ReliveError
    from relive.estimator import ContinualClassifier
    from relive.evaluation import accuracy
    from relive.experiments.run import make_spec, run
    from relive.experiments.spec import RunResult, RunSpec
    from relive.fidelity import Fidelity
    from relive.learner import Learner
    from relive.methods import METHODS, Method, make_method
    from relive.modelfile import load
    from relive.scenarios import scenario_of

_HOMES = {
    "ContinualClassifier": "relive.estimator",
    "Fidelity": "relive.fidelity",
    "Learner": "relive.learner",
    "METHODS": "relive.methods",
    "Method": "relive.methods",
    "ReliveError": "relive.errors",
    "RunResult": "relive.experiments.spec",
    "RunSpec": "relive.experiments.spec",
    "accuracy": "relive.evaluation",
    "load": "relive.modelfile",
    "load_data": "relive.data.sources",
    "make_method": "relive.methods",
    "make_spec": "relive.experiments.run",
    "run": "relive.experiments.run",
    "scenario_of": "relive.scenarios",
    "tasks_of": "relive.data.protocols",
}

__all__ = [
    "METHODS",
    "ContinualClassifier",
    "Fidelity",
    "Learner",
    "Method",
    "ReliveError",
    "RunResult",
    "RunSpec",
    "accuracy",
    "load",
    "load_data",
    "make_method",
    "make_spec",
    "run",
    "scenario_of",
    "tasks_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'relive' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
