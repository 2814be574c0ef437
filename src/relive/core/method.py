"""The interface of a continual-learning method: its hooks, whose defaults are fine-tuning."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from relive._util.fidelity import Fidelity
from relive.core.batch import Batch
from relive.core.facts import MethodFacts
from relive.core.scenarios import Scenario
from relive.core.sources import Part, Source
from relive.data.tasks import Task
from relive.networks import Classifier, Sizes


@dataclass(frozen=True)
class Problem:
    """What a method needs to know: network sizes, scenario, rows per step, fidelity choices, device.

    ``forgettable`` asks a method that can to keep what it needs to forget a class without a trace.
    """

    sizes: Sizes
    scenario: Scenario
    batch_size: int
    fidelity: Fidelity
    device: torch.device
    forgettable: bool = False


class Method:
    """What a method changes about standard training on each task.

    A method overrides the hooks that it needs. Its constructor's arguments are its settings: numbers with defaults. The
    learner calls ``build`` when it is created, and again, followed by ``grow``, when the network gains output units:
    neither may change what was learned. For every task it calls ``before_task`` and ``source``, for every iteration
    ``replay``, ``loss``, ``regularise`` and ``after_step``, and then ``after_task``. In a stream without boundaries, a
    stretch of it takes the place of a task. ``seen`` counts the tasks seen so far, including the current one.
    """

    takes_steps: ClassVar[bool] = True  # whether it learns by gradient steps; a closed form learns in ``after_task``
    heeds_tasks: ClassVar[bool] = True  # whether the division of samples into tasks matters, in Class-IL
    can_forget: ClassVar[bool] = False  # whether it uses ``problem.forgettable``
    hides_samples: bool = False  # whether noise hides single samples, so that nothing else may be kept about them
    can_unlearn: ClassVar[bool] = False  # whether it can unlearn samples
    forgets_exactly: bool = False  # whether a forgotten class leaves no trace; known after ``build``
    facts: ClassVar[MethodFacts]  # optional: a user's class may give title, limits and so on as attributes
    problem: Problem

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        """Return a new network for the problem."""
        self.problem = problem
        return Classifier(problem.sizes, rng)

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        """Return (n, units) logits of inputs that belong to ``task`` (n,); used in training and evaluation."""
        logits: Tensor = net(x)
        return logits

    def before_task(self, net: Classifier, known: int) -> None:
        """Prepare for a new task; ``net`` is as the ``known`` earlier tasks left it."""

    def source(self, stream: Source) -> Source:
        """Return the source of current rows: the stream, or ``stream.tasks`` for methods that store data."""
        return stream

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        """Return rows to add for the earlier tasks, their weights summing to 1, or None."""
        return None

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        """Return the weighted loss of all rows."""
        return batch.classification_loss(self.logits(net, batch.x, batch.task))

    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Add the regulariser's gradient to ``gradient``, one tensor per parameter."""

    def after_step(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Observe the parameters after a step, and the gradient that it followed."""

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        """Extract what is needed later from what was learned: the newest task's examples, or those of a stretch."""

    def settle(self, net: Classifier) -> None:
        """Bring the network up to date with the method's memory; called before it is stored."""

    def grow(self, net: Classifier) -> None:
        """Enlarge what is kept per parameter for a network that has gained output units."""

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        """Drop what is kept about these classes; they are not predicted from now on.

        ``gone`` are ids of the scenario's classes. ``build`` and ``grow`` are called next, with a scenario whose active
        units exclude them; that alone is enough for a method that keeps nothing about single classes.
        """

    def unlearn(self, net: Classifier, part: Part, rows: Tensor) -> None:
        """Unlearn some rows (m,) of the part that ``after_task`` got last, as if they had not been in it.

        For methods that ``can_unlearn``. The whole part is given, since the last bits of a row's features depend on the
        rows that they are computed with.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot unlearn samples")

    def usual_temperature(self, n_classes: int) -> float:
        """Return the temperature that usually calibrates probabilities over this many classes best."""
        return 1.0

    def novelty(self, net: Classifier, x: Tensor) -> Tensor | None:
        """Return how unlike everything learned each input is, (n, kinds), larger is more unlike; None if not available.

        Each kind is used separately, and only its order counts. NaN means not known yet.
        """
        return None

    def merge(self, net: Classifier, into: int, other: int) -> None:
        """Count what is kept about one class as another's: both share a label, and their probabilities are added."""

    def state(self) -> dict[str, Tensor]:
        """Return everything the method remembers between tasks, apart from the network."""
        return {}

    def is_finite(self) -> bool:
        """Return whether everything the method remembers is finite."""
        return all(bool(tensor.isfinite().all()) for tensor in self.state().values())

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore what ``state`` returned."""

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        """Refuse an invalid state before ``load_state``: a model file may hold anything.

        ``net`` is a network like the one that the state belongs to. That all numbers are finite is checked for every
        method.
        """

    @staticmethod
    def upgraded(state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state written by an earlier version of the method in the format of this version."""
        return state

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        """Return how many numbers the method stores between tasks, including idle units, apart from the parameters."""
        return sum(tensor.numel() for tensor in self.state().values())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent method: its ``state`` is copied, everything else is shared until recreated."""
        other = copy.copy(self)
        other.load_state({name: tensor.detach().clone() for name, tensor in self.state().items()})
        return other
