"""What a continual-learning method is: what it changes about fine-tuning, which the hooks' defaults are."""

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
    """What a method is told once: the network's sizes, the scenario, rows per step, fidelity choices, the device.

    ``forgettable`` asks a method that can to keep what it needs to forget a class without trace.
    """

    sizes: Sizes
    scenario: Scenario
    batch_size: int
    fidelity: Fidelity
    device: torch.device
    forgettable: bool = False


class Method:
    """What a method changes about training on each task in the standard way.

    A method overrides the hooks that it needs. Its constructor's arguments are its settings: numbers with defaults. The
    learner calls ``build`` when it is made, and again, with ``grow`` after it, when the network gets more output units:
    neither may touch what was learned. For every task it calls ``before_task`` and ``source``, for every iteration
    ``replay``, ``loss``, ``regularise`` and ``after_step``, and then ``after_task``. In a stream without boundaries, a
    stretch of it takes the place of a task. ``seen`` counts the tasks met so far, the current one included.
    """

    takes_steps: ClassVar[bool] = True  # whether it learns by gradient steps; a closed form learns in ``after_task``
    heeds_tasks: ClassVar[bool] = True  # whether it makes a difference in which tasks samples came, in Class-IL
    can_forget: ClassVar[bool] = False  # whether it heeds ``problem.forgettable``
    hides_samples: bool = False  # whether noise hides single samples, so that nothing else may be kept of them
    can_unlearn: ClassVar[bool] = False  # whether it can take back samples that it has learned
    forgets_exactly: bool = False  # whether a class that it forgets leaves no trace; known once it was built
    facts: ClassVar[MethodFacts]  # optional: a user's class may say title, settings' limits and so on as attributes
    problem: Problem

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        """Return a new network for the problem."""
        self.problem = problem
        return Classifier(problem.sizes, rng)

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        """Return (n, units) logits of inputs that belong to ``task`` (n,); training and evaluation use this."""
        logits: Tensor = net(x)
        return logits

    def before_task(self, net: Classifier, known: int) -> None:
        """Get ready for a new task; ``net`` is as the ``known`` tasks before left it."""

    def source(self, stream: Source) -> Source:
        """Return where the current rows of each step come from: the stream, or for who keeps data ``stream.tasks``."""
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
        """Look at the parameters after a step, and at the gradient that it followed."""

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        """Take what is needed later from what was learned: the newest task's examples, or those of a stretch."""

    def settle(self, net: Classifier) -> None:
        """Bring the network up to date with what is remembered; called before it is stored."""

    def grow(self, net: Classifier) -> None:
        """Make what is remembered per parameter as large as a network that has got more output units."""

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        """Drop what is kept of each of these classes; nothing is answered with them from now on.

        ``gone`` are ids of the scenario's classes. ``build`` and ``grow`` are called next, with a scenario whose active
        units are without them; that alone is enough for a method that keeps nothing of single classes.
        """

    def unlearn(self, net: Classifier, part: Part, rows: Tensor) -> None:
        """Take back some rows (m,) of a part that ``after_task`` was given last, as if they had not been among them.

        For methods that ``can_unlearn``. The whole part is given, since the last bits of a row's features depend on the
        rows that they are computed with.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot unlearn samples")

    def usual_temperature(self, n_classes: int) -> float:
        """Return the temperature that calibrates probabilities of so many classes best, as far as is known."""
        return 1.0

    def novelty(self, net: Classifier, x: Tensor) -> Tensor | None:
        """Return how unlike everything learned each input is, (n, kinds), the larger the more; None if none is known.

        Each kind is looked at by itself, and only its order counts. NaN says that one is not known yet.
        """
        return None

    def merge(self, net: Classifier, into: int, other: int) -> None:
        """Count what is kept of a class as another's: both have one label now, and their probabilities are added up."""

    def state(self) -> dict[str, Tensor]:
        """Return all that the method remembers between tasks, apart from the network."""
        return {}

    def is_finite(self) -> bool:
        """Say whether all that the method remembers is finite."""
        return all(bool(tensor.isfinite().all()) for tensor in self.state().values())

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what ``state`` returned."""

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        """Refuse a state of which no task can have been the end, before ``load_state``: a model file may hold anything.

        ``net`` is a network like the one that the state belongs to. That all numbers are finite is checked for every
        method.
        """

    @staticmethod
    def upgraded(state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state that an earlier version of the method wrote as this version would have written it."""
        return state

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        """Return how many numbers the method keeps between tasks, idle units' too, apart from the parameters."""
        return sum(tensor.numel() for tensor in self.state().values())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a method that goes on by itself: what ``state`` has is copied, all else is shared until made anew."""
        other = copy.copy(self)
        other.load_state({name: tensor.detach().clone() for name, tensor in self.state().items()})
        return other
