"""The only training loop: rows of the current task, rows replayed for the earlier ones, one step, again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from relive._util.errors import InputError, ReliveError
from relive._util.fidelity import AS_RUN, Fidelity
from relive._util.seeds import drawing_from, stream
from relive.core.batch import Batch, concat, hard_rows
from relive.core.facts import facts_of
from relive.core.method import Method, Problem
from relive.core.optimizers import Adam
from relive.core.scenarios import Scenario
from relive.data.tasks import Task
from relive.networks import Sizes, trainable
from relive.networks.catalogue import EncoderFactory, encoder_factory
from relive.networks.encoders import mode

OnStep = Callable[[int, float], bool | None]


class Rows:
    """Draws batches from one task, or from several together, reshuffled when too few are left for a batch.

    >>> draw = Rows([5], size=2, rng=stream(0, "example"))
    >>> epoch = torch.cat([draw()[0] for _ in range(2)])
    >>> len(set(epoch.tolist()))
    4
    """

    def __init__(self, lengths: Sequence[int], size: int, rng: torch.Generator) -> None:
        self.ends = torch.tensor(lengths).cumsum(0)
        self.total = int(self.ends[-1])
        self.size = min(size, self.total)
        self.rng = rng
        self.order = torch.empty(0, dtype=torch.long)
        self.next = 0

    def __call__(self) -> list[Tensor]:
        """Return the indices of the drawn rows within each task."""
        if self.next + self.size > len(self.order):
            self.order = torch.randperm(self.total, generator=self.rng)
            self.next = 0
        drawn = self.order[self.next : self.next + self.size]
        self.next += self.size
        if len(self.ends) == 1:
            return [drawn]
        owner = torch.bucketize(drawn, self.ends, right=True)
        starts = [0, *self.ends[:-1].tolist()]
        return [drawn[owner == k] - start for k, start in enumerate(starts)]


class Learner:
    """A method at work: its network, its optimizer, its random streams, and how many tasks it has seen.

    Parameters
    ----------
    method
        What to do about forgetting.
    scenario
        The scenario, with the classes of every task to come.
    n_inputs, hidden, latent
        Sizes of the network.
    encoder
        What its first part is: a name in ``relive.networks.catalogue.ENCODERS``, an address (``my_file.py:make``), or a
        function ``(shape, hidden, rng)`` that returns a module from (n, inputs) to (n, features).
    shape
        How the encoder is to read an input, such as (height, width); as a plain row of numbers if not given.
    learning_rate, batch_size
        Of Adam (0.9, 0.999), which is never reset between tasks.
    seed
        All randomness comes from it.
    fidelity
        The paper's text or its code, choice by choice.
    likelihood
        What a generator takes inputs for: ``"bernoulli"`` in [0, 1], ``"gaussian"`` for standardised features.
    """

    def __init__(
        self,
        method: Method,
        scenario: Scenario,
        n_inputs: int,
        *,
        encoder: str | EncoderFactory = "mlp",
        shape: tuple[int, ...] = (),
        hidden: int = 400,
        latent: int = 100,
        learning_rate: float = 0.001,
        batch_size: int = 128,
        seed: int = 0,
        fidelity: Fidelity = AS_RUN,
        likelihood: str = "bernoulli",
    ) -> None:
        facts_of(type(method)).check_scenario(scenario.name)
        self.method = method
        self.seed = seed
        self.learning_rate = learning_rate
        if shape and math.prod(shape) != n_inputs:
            raise InputError(f"shape = {shape}: an input of this shape has {math.prod(shape)} numbers, not {n_inputs}")
        sizes = Sizes(n_inputs, hidden, latent, scenario.width, likelihood, shape, encoder_factory(encoder))
        self._build(Problem(sizes, scenario, batch_size, fidelity))
        self.batch_rng = stream(seed, "batches")
        self.noise_rng = stream(seed, "noise")
        self.seen = 0

    def _build(self, problem: Problem) -> None:
        self.problem = problem
        self.net = self.method.build(problem, stream(self.seed, "network")).eval()
        epsilon_first = problem.fidelity.adam_epsilon == "before_correction"
        self.adam = Adam(trainable(self.net), self.learning_rate, epsilon_first=epsilon_first)

    @property
    def scenario(self) -> Scenario:
        """The scenario, with the classes of all tasks known so far."""
        return self.problem.scenario

    @torch.no_grad()
    def grow(self, scenario: Scenario) -> None:
        """Go on with a scenario that has more tasks or classes, as if they had been known from the start.

        Parameters
        ----------
        scenario
            It begins with the tasks learned so far, their classes unchanged.
        """
        if scenario.width < self.scenario.width:
            raise InputError(f"a learner cannot shrink from {self.scenario.width} to {scenario.width} output units")
        old, learned = self.adam, self.net.state_dict()
        sizes = replace(self.problem.sizes, units=scenario.width)
        self._build(replace(self.problem, sizes=sizes, scenario=scenario))
        new = self.adam
        new.steps.copy_(old.steps)
        grown = self.net.state_dict()
        pairs = [(small, grown[name]) for name, small in learned.items()]  # parameters, frozen ones too, and buffers
        for before, after in ((old.m, new.m), (old.v, new.v)):
            pairs += zip(before, after, strict=True)
        for small, large in pairs:
            large[tuple(map(slice, small.shape))] = small
        self.method.grow(self.net)

    def learn(self, tasks: Sequence[Task], iterations: int, on_step: OnStep | None = None) -> None:
        """Learn the last of ``tasks``; the ones before it are the tasks of earlier calls, in order.

        Only a method that keeps data (Offline) looks at the earlier ones.

        Parameters
        ----------
        tasks
            All tasks so far.
        iterations
            Steps to take.
        on_step
            Called after every step with its number, from 1, and the loss of its rows (a regulariser's share is not in
            it); if it returns True, that was the last step.
        """
        method, net, theta = self.method, self.net, self.adam.parameters
        if len(tasks) != self.seen + 1:
            raise InputError(
                f"learn was given {len(tasks)} tasks after {self.seen} learned ones: give all tasks so far, "
                f"the new one last, as in learn(tasks[:{self.seen + 1}], iterations)"
            )
        self.seen = seen = len(tasks)
        method.before_task(net, seen)
        groups = method.training_groups(seen)
        size = math.ceil(self.problem.batch_size / len(groups))
        draws = [Rows([len(tasks[k].train) for k in group], size, self.batch_rng) for group in groups]
        with mode(net, training=True), drawing_from(self.batch_rng):  # which dropout draws from
            for iteration in range(1, iterations + 1):
                batch = concat(
                    [
                        self._rows(tasks, group, draw()).times(1 / len(groups))
                        for group, draw in zip(groups, draws, strict=True)
                    ]
                )
                replayed = method.replay(net, batch, seen, self.noise_rng)
                if replayed is not None:  # L = 1/N · L_current + (1 − 1/N) · L_replay
                    batch = concat([batch.times(1 / seen), replayed.times(1 - 1 / seen)])
                loss = method.loss(net, batch, self.noise_rng)
                gradient = _separate(torch.autograd.grad(loss, theta, materialize_grads=True))
                method.regularise(theta, gradient)
                self.adam.step(gradient)
                method.after_step(theta, gradient)
                value = loss.item()
                if not math.isfinite(value):
                    raise ReliveError(
                        f"the loss became {value} in iteration {iteration}: training diverged. "
                        "Lower the method's strength or the learning rate"
                    )
                if on_step is not None and on_step(iteration, value):
                    break
        method.after_task(net, tasks[-1], seen)
        if not all(t.isfinite().all() for t in (*theta, *method.state().values())):
            raise ReliveError(
                "training diverged in the task's last step: not all of what was learned is finite. "
                "Lower the method's strength or the learning rate"
            )

    def _rows(self, tasks: Sequence[Task], group: list[int], drawn: list[Tensor]) -> Batch:
        """Return the drawn rows of a group of tasks as one batch, each row labelled by its own task's units."""
        scenario, parts = self.scenario, []
        for k, rows in zip(group, drawn, strict=True):
            train = tasks[k].train
            unit = scenario.units(k)[train.labels[rows]]
            task = torch.full((len(rows),), k)
            parts.append(hard_rows(train.inputs(rows), unit, scenario.active(k, self.seen), task))
        return concat([part.times(len(part) / sum(map(len, parts))) for part in parts])

    @torch.no_grad()
    def predict(self, x: Tensor, task: int) -> Tensor:
        """Return the most likely output unit of each input, (n,); only Task-IL makes use of ``task``."""
        with mode(self.net, training=False):
            logits = self.method.logits(self.net, x, torch.full((len(x),), task))
        active = self.scenario.active(task, max(self.seen, 1))
        return logits.masked_fill(~active, -torch.inf).argmax(1)

    @property
    def n_parameters(self) -> int:
        """How many numbers are trained; the output units that are never active are not."""
        idle = (self.scenario.width - self.scenario.n_units) * (self.net.n_features + 1)
        return sum(p.numel() for p in self.adam.parameters) - idle

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to go on from a task's end with the same bits, as named tensors."""
        state = {f"net.{name}": value for name, value in self.net.state_dict().items()}
        state |= {f"method.{name}": value for name, value in self.method.state().items()}
        for i, (m, v) in enumerate(zip(self.adam.m, self.adam.v, strict=True)):
            state |= {f"adam.m{i}": m, f"adam.v{i}": v}
        state["adam.steps"] = self.adam.steps
        state["seen"] = torch.tensor(self.seen)
        state["rng.batches"] = self.batch_rng.get_state()
        state["rng.noise"] = self.noise_rng.get_state()
        return {name: tensor.detach().clone() for name, tensor in state.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to where ``state`` was taken; the learner must have been made with the same arguments."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}

        self.net.load_state_dict(part("net."))
        self.method.load_state(part("method."))
        for i, (m, v) in enumerate(zip(self.adam.m, self.adam.v, strict=True)):
            m.copy_(state[f"adam.m{i}"])
            v.copy_(state[f"adam.v{i}"])
        self.adam.steps.copy_(state["adam.steps"])
        self.seen = int(state["seen"])
        self.batch_rng.set_state(state["rng.batches"])
        self.noise_rng.set_state(state["rng.noise"])


def _separate(gradient: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients that can be changed in place: two parameters may have got one tensor, or an expanded one."""
    seen: set[int] = set()
    separate = []
    for g in gradient:
        own = g.is_contiguous() and g.data_ptr() not in seen
        seen.add(g.data_ptr())
        separate.append(g if own else g.clone(memory_format=torch.contiguous_format))
    return separate
