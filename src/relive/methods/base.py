"""What a continual-learning method is: what it changes about fine-tuning. The defaults are the method "None"."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from relive.batch import Batch
from relive.data.protocols import Task
from relive.errors import InputError, unknown
from relive.fidelity import Fidelity
from relive.networks import Classifier, Sizes
from relive.scenarios import SCENARIOS, Scenario

STRONGEST = 1e38  # the highest strength of a penalty: what float32 can hold


@dataclass(frozen=True)
class Problem:
    """What a method is told once: the network's sizes, the scenario, rows per step, and the fidelity choices."""

    sizes: Sizes
    scenario: Scenario
    batch_size: int
    fidelity: Fidelity


class Method:
    """Fine-tuning: train on each task in the standard way, remember nothing. The lower bound.

    A method overrides the hooks that it needs. The learner calls ``build`` when it is made, and again, with ``grow``
    after it, when the network gets more output units: neither may touch what was learned. For every task it calls
    ``before_task`` and ``training_groups``, for every iteration ``replay``, ``loss``, ``penalty`` and ``after_step``,
    and then ``after_task``. ``seen`` counts the tasks so far, the current one included.
    """

    title: ClassVar[str] = "None"
    reference: ClassVar[str] = "fine-tuning, the lower bound"
    scenarios: ClassVar[tuple[str, ...]] = tuple(SCENARIOS)
    why_not: ClassVar[str] = ""  # why the scenarios that are missing cannot be had
    limits: ClassVar[dict[str, tuple[float, float]]] = {}  # of each setting: lowest, highest
    explain: ClassVar[dict[str, str]] = {}  # what each setting is
    choices: ClassVar[tuple[str, ...]] = ()  # the fidelity choices that change what it does

    problem: Problem

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        """Return a new network for the problem."""
        self.problem = problem
        return Classifier(problem.sizes, rng)

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        """Return (n, units) logits of inputs that belong to ``task`` (n,); training and evaluation use this."""
        logits: Tensor = net(x)
        return logits

    def training_groups(self, seen: int) -> list[list[int]]:
        """Return the tasks to draw current rows from; each group is a batch of its own, groups count equally."""
        return [[seen - 1]]

    def before_task(self, net: Classifier, seen: int) -> None:
        """Get ready for a new task; ``net`` is as the task before left it."""

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        """Return rows to add for the earlier tasks, their weights summing to 1, or None."""
        return None

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        """Return the weighted loss of all rows."""
        return batch.classification_loss(self.logits(net, batch.x, batch.task))

    def penalty(self, theta: list[Tensor], gradient: list[Tensor]) -> float:
        """Add the regularisation term's gradient to ``gradient``, one tensor per parameter; return its value."""
        return 0.0

    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Look at the parameters after a step, and at the gradient that it followed."""

    def after_task(self, net: Classifier, task: Task, seen: int) -> None:
        """Take from the finished task what is needed later."""

    def grow(self, net: Classifier) -> None:
        """Make what is remembered per parameter as large as a network that has got more output units."""

    def state(self) -> dict[str, Tensor]:
        """Return all that the method remembers between tasks, apart from the network."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what ``state`` returned."""

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        """Return how many numbers the method keeps between tasks, idle units' too, apart from the parameters."""
        return sum(tensor.numel() for tensor in self.state().values())


def settings_of(method: type[Method]) -> dict[str, Any]:
    """Return a method's settings with their defaults: its constructor's arguments.

    >>> from relive.methods import METHODS
    >>> settings_of(METHODS["si"])
    {'c': 0.1, 'xi': 0.1}
    """
    if "__init__" not in vars(method):
        return {}
    parameters = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in parameters}


def make(method: type[Method], settings: dict[str, Any]) -> Method:
    """Return the method with these settings, each checked by name and range.

    >>> from relive.methods import make_method
    >>> make_method("si", c=-1)
    Traceback (most recent call last):
    ...
    relive.errors.InputError: setting c = -1 of SI is out of range: it must be at least 0 and at most 1e+38
    """
    known = settings_of(method)
    for name, value in settings.items():
        if name not in known:
            if not known:
                raise InputError(f"unknown setting {name!r}: {method.title} has no settings")
            raise unknown(f"setting of {method.title}", name, known)
        low, high = method.limits[name]
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not low <= value <= high:
            bounds = f"at least {low:g} and at most {high:g}"
            raise InputError(f"setting {name} = {value} of {method.title} is out of range: it must be {bounds}")
    return method(**settings)


def check_scenario(method: type[Method], scenario: str) -> None:
    """Refuse a scenario that the method cannot work in, and say why."""
    if scenario not in method.scenarios:
        raise InputError(
            f"{method.title} does not work in scenario {scenario!r}: {method.why_not}. "
            f"It supports: {', '.join(method.scenarios)}"
        )
