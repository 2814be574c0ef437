"""Continual learning by reliving: learn task after task, replay what the network's own feedback generates.

A run in a few lines::

    from relive import make_spec, run

    outcome = run(make_spec("split", "class", "rtf", dataset="digits", iters=200))
    print(outcome.result.average_accuracy)

Names are imported on first use, so ``import relive`` does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relive._util.errors import ReliveError
    from relive._util.fidelity import Fidelity
    from relive.classifier.estimator import ContinualClassifier
    from relive.classifier.modelfile import load
    from relive.core.evaluation import accuracy
    from relive.core.learner import Learner
    from relive.core.method import Method
    from relive.core.scenarios import Scenario, scenario_of
    from relive.data.datasets.dataset import Dataset
    from relive.data.datasets.sources import load_data
    from relive.data.protocols import Protocol, tasks_of
    from relive.data.tasks import Examples, Task
    from relive.experiments.execute import run
    from relive.experiments.spec import RunResult, RunSpec, make_spec
    from relive.methods import METHODS, make_method

_HOMES = {
    "ContinualClassifier": "relive.classifier.estimator",
    "Dataset": "relive.data.datasets.dataset",
    "Examples": "relive.data.tasks",
    "Fidelity": "relive._util.fidelity",
    "Learner": "relive.core.learner",
    "METHODS": "relive.methods",
    "Method": "relive.core.method",
    "Protocol": "relive.data.protocols",
    "ReliveError": "relive._util.errors",
    "RunResult": "relive.experiments.spec",
    "RunSpec": "relive.experiments.spec",
    "Scenario": "relive.core.scenarios",
    "Task": "relive.data.tasks",
    "accuracy": "relive.core.evaluation",
    "load": "relive.classifier.modelfile",
    "load_data": "relive.data.datasets.sources",
    "make_method": "relive.methods",
    "make_spec": "relive.experiments.spec",
    "run": "relive.experiments.execute",
    "scenario_of": "relive.core.scenarios",
    "tasks_of": "relive.data.protocols",
}

__all__ = [
    "METHODS",
    "ContinualClassifier",
    "Dataset",
    "Examples",
    "Fidelity",
    "Learner",
    "Method",
    "Protocol",
    "ReliveError",
    "RunResult",
    "RunSpec",
    "Scenario",
    "Task",
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
