r"""Experience replay: store a few real samples, and train on a batch of them with each batch of new ones.

.. math:: \tfrac1N L_\text{current} + (1 - \tfrac1N) L_\text{kept}

A-GEM stores the same samples but uses them differently: a step must not increase their loss. With g the gradient of the
current rows' loss and r that of a batch of stored ones,

.. math:: g \leftarrow g - \frac{g \cdot r}{r \cdot r} r \qquad \text{if } g \cdot r < 0

Rolnick et al. (2019), "Experience replay for continual learning", NeurIPS; Chaudhry et al. (2019), "Efficient lifelong
learning with A-GEM", ICLR. Deviations: a random sample of each class is stored, with equal shares of a budget
for all classes seen; the loss of stored samples has the weight that generated ones have in generative replay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.core.batch import Batch, concat
from relive.core.method import Method, Problem
from relive.core.sources import Part
from relive.core.state import check_form, check_range
from relive.methods import classes
from relive.methods.buffer import Buffer
from relive.methods.catalogue import METHODS
from relive.networks import Classifier, trainable


class KeepsRandomSamples(Method):
    """What the two methods share: a buffer with a random sample of every class.

    Every sample gets a random number once, and a class keeps those with the lowest: a uniform sample of everything
    ever seen of it, however it arrived.
    """

    def __init__(self, budget: float = 200) -> None:
        self.budget = budget
        self.buffer_ = Buffer(int(budget))
        self.times_ = 0  # how often samples were added

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        net = super().build(problem, rng)
        self.seed_ = int(torch.randint(2**31, (), generator=rng))
        return net

    def draw(self, seen: int, rng: torch.Generator) -> Batch | None:
        """Return a batch of samples, if there are any."""
        return self.buffer_.draw(self.problem.batch_size, seen, self.problem.scenario, rng)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        rng = stream(self.seed_, f"samples {self.times_}")
        ranks = [torch.rand(len(part.examples), generator=rng).to(self.problem.device) for part in learned]
        self.buffer_.add(learned, ranks, self.problem.scenario)
        self.times_ += 1

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        self.buffer_.drop(classes.numbers_of(self.problem.scenario, gone))

    def state(self) -> dict[str, Tensor]:
        return self.buffer_.state() | {"times": torch.tensor(self.times_, device=self.problem.device)}

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        kept = {name: tensor for name, tensor in state.items() if name != "times"}
        self.buffer_.check(kept, self.problem.sizes.inputs, self.problem.scenario)
        check_form({"times": state["times"]}, {"times": torch.tensor(0)})
        check_range(state, "times", 0)

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.buffer_ = self.buffer_.restored(state)
        self.times_ = int(state["times"])


class ER(KeepsRandomSamples):
    """Replay real samples."""

    facts: ClassVar = METHODS["er"]

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        return self.draw(seen, rng)


class AGEM(KeepsRandomSamples):
    """Project out of each step what would increase the loss of stored samples.

    Both gradients come from one forward pass.
    """

    facts: ClassVar = METHODS["agem"]

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        self.kept_ = self.draw(seen, rng)
        self.reference_: Sequence[Tensor] = ()
        return None

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        if self.kept_ is None:
            return super().loss(net, batch, rng)
        n, both = len(batch), concat([batch, self.kept_])
        logits = self.logits(net, both.x, both.task)
        kept = self.kept_.classification_loss(logits[n:])
        self.reference_ = torch.autograd.grad(kept, trainable(net), retain_graph=True, materialize_grads=True)
        return batch.classification_loss(logits[:n])

    @torch.no_grad()
    def regularise(self, theta: list[Tensor], gradient: list[Tensor]) -> None:
        if not self.reference_:
            return
        pairs = list(zip(gradient, self.reference_, strict=True))
        along = torch.stack([(g * r).sum() for g, r in pairs]).sum()  # g · r
        square = torch.stack([r.square().sum() for _, r in pairs]).sum()
        share = torch.where(along < 0, along / square, 0.0)
        for g, r in pairs:
            g.sub_(share * r)
