"""The only training loop: current rows, rows replayed for earlier tasks, one step, repeat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import torch
from torch import Tensor

from relive._util.errors import InputError, ReliveError
from relive._util.fidelity import AS_RUN, Fidelity
from relive._util.seeds import drawing_from, stream
from relive.core.batch import Batch, concat
from relive.core.catalogue import OptimizerFactory, optimizer_factory
from relive.core.devices import device_of
from relive.core.facts import facts_of
from relive.core.hooks import (
    check_forgets,
    check_loaded,
    check_logits,
    check_rows,
    in_place,
    state_of,
    tensors_of,
    warn_of_lost,
    warn_of_undeclared,
    wrong,
)
from relive.core.method import Method, Problem
from relive.core.scenarios import Scenario
from relive.core.sources import Blend, Part, Source, Together
from relive.core.state import check_form, check_numbers
from relive.data.tasks import Task
from relive.networks import Classifier, Sizes, trainable
from relive.networks.catalogue import EncoderFactory, encoder_factory
from relive.networks.encoders import fill, mode

OnStep = Callable[[int, float], bool | None]


class Learner:
    """A method at work: its network, optimizer and random streams, and the number of tasks seen.

    Parameters
    ----------
    method
        How to prevent forgetting.
    scenario
        The scenario, with the classes of every task to come.
    n_inputs, hidden, latent
        Sizes of the network.
    encoder
        A name in ``relive.networks.catalogue.ENCODERS``, an address (``my_file.py:make``), or a
        function ``(shape, hidden, rng)`` that returns a module from (n, inputs) to (n, features). By default the
        method's own.
    shape
        The shape of an input, such as (height, width); by default a plain row of numbers.
    learning_rate, batch_size
        Of the optimizer, which is never reset between tasks.
    optimizer
        ``"adam"``, ``"sgd"``, an address, or a function ``(parameters, rate, fidelity)`` that returns an
        :class:`relive.core.optimizers.Optimizer`.
    device
        Where tensors live: ``"cpu"``, ``"cuda"``, ``"mps"``, or ``"auto"``. Bit-identical results need the CPU.
    seed
        Determines all randomness.
    fidelity
        The paper's text or its code, choice by choice.
    likelihood
        How a generator models inputs: ``"bernoulli"`` in [0, 1], ``"gaussian"`` for standardised features.
    forgettable
        Whether a method that can should keep what it needs to forget a class without a trace.
    """

    def __init__(
        self,
        method: Method,
        scenario: Scenario,
        n_inputs: int,
        *,
        encoder: str | EncoderFactory | None = None,
        shape: tuple[int, ...] = (),
        hidden: int = 400,
        latent: int = 100,
        learning_rate: float = 0.001,
        batch_size: int = 128,
        optimizer: str | OptimizerFactory = "adam",
        device: str = "cpu",
        seed: int = 0,
        fidelity: Fidelity = AS_RUN,
        likelihood: str = "bernoulli",
        forgettable: bool = False,
    ) -> None:
        facts = facts_of(type(method))
        facts.check_scenario(scenario.name)
        self.method = method
        self.seed = seed
        self.learning_rate = learning_rate
        if shape and math.prod(shape) != n_inputs:
            raise InputError(f"shape = {shape}: an input of this shape has {math.prod(shape)} numbers, not {n_inputs}")
        sizes = Sizes(
            n_inputs, hidden, latent, scenario.width, likelihood, shape, encoder_factory(encoder or facts.encoder)
        )
        self._make_optimizer = optimizer_factory(optimizer)
        place = device_of(device)
        self._build(Problem(sizes, scenario.to(place), batch_size, fidelity, place, forgettable))
        self.batch_rng = stream(seed, "batches")
        self.noise_rng = stream(seed, "noise")
        self.seen = 0
        self._watched: dict[str, list[Tensor]] | None = {}  # tensors of the method, until the first task's end

    def _build(self, problem: Problem) -> None:
        self.problem = problem
        net: object = self.method.build(problem, stream(self.seed, "network"))
        if not isinstance(net, Classifier):
            raise wrong(self.method.build, net, "a relive.networks.Classifier, such as super().build(problem, rng)")
        self.net = net.to(problem.device).eval()
        self.optimizer = self._make_optimizer(trainable(self.net), self.learning_rate, problem.fidelity)

    @property
    def scenario(self) -> Scenario:
        """The scenario, with the classes of all tasks known so far."""
        return self.problem.scenario

    @torch.no_grad()
    def grow(self, scenario: Scenario, *, learning_rate: float | None = None, batch_size: int | None = None) -> None:
        """Continue with a scenario that has more tasks or classes, as if they had been known from the start.

        Parameters
        ----------
        scenario
            It starts with the tasks learned so far, their classes unchanged.
        learning_rate, batch_size
            New values from now on, if given.
        """
        if scenario.width < self.scenario.width:
            raise InputError(f"a learner cannot shrink from {self.scenario.width} to {scenario.width} output units")
        optimizer, learned = self.optimizer.state(), self.net.state_dict()
        sizes = replace(self.problem.sizes, units=scenario.width)
        self.learning_rate = learning_rate or self.learning_rate
        problem = replace(self.problem, sizes=sizes, scenario=scenario.to(self.problem.device))
        self._build(replace(problem, batch_size=batch_size or problem.batch_size))
        self.optimizer.load_state(optimizer)
        fill(self.net, learned)
        self.method.grow(self.net)

    @torch.no_grad()
    def forget(self, scenario: Scenario) -> None:
        """Drop what is kept about the classes that are newly gone in this scenario."""
        check_forgets(self.method)
        self.method.forget(self.net, scenario.gone - self.scenario.gone)
        self.grow(scenario)

    @torch.no_grad()
    def merge(self, into: int, other: int) -> None:
        """Merge two classes, as far as the method can; from now on the units of both stand for it."""
        self.method.merge(self.net, into, other)

    def learn(self, tasks: Sequence[Task], iterations: int, on_step: OnStep | None = None) -> None:
        """Learn the last of ``tasks``; the ones before it are the tasks of earlier calls, in order.

        Only a method that stores data (Offline) looks at the earlier ones.

        Parameters
        ----------
        tasks
            All tasks so far.
        iterations
            Steps to take; a closed-form method takes none.
        on_step
            Called after every step with its number, from 1, and the loss of its rows (without the regulariser);
            return True to stop after this step.
        """
        if len(tasks) != self.seen + 1:
            raise InputError(
                f"learn got {len(tasks)} tasks after {self.seen} learned ones: pass all tasks so far, the new "
                f"one last, as in learn(tasks[:{self.seen + 1}], iterations)"
            )
        self._follow(Together(*self._stream(tasks)), iterations, on_step)

    def learn_blend(self, tasks: Sequence[Task], shares: Tensor, on_step: OnStep | None = None) -> None:
        """Learn from a stretch of a stream in which tasks blend into each other, and consolidate after it.

        Parameters
        ----------
        tasks
            All tasks seen so far, including those whose first rows come now.
        shares
            (steps, tasks) each task's share of the rows at each step.
        on_step
            As in :meth:`learn`.
        """
        if len(tasks) < self.seen or shares.shape[1] != len(tasks):
            raise InputError(
                f"learn_blend got {len(tasks)} tasks and the shares of {shares.shape[1]} after {self.seen} "
                "seen ones: pass all tasks so far, and a share for each"
            )
        self._follow(Blend(*self._stream(tasks), shares), len(shares), on_step)

    def _stream(self, tasks: Sequence[Task]) -> tuple[Scenario, list[Task], int, torch.Generator]:
        device = self.problem.device
        return self.scenario, [task.to(device) for task in tasks], self.problem.batch_size, self.batch_rng

    def _follow(self, stream: Source, iterations: int, on_step: OnStep | None) -> None:
        """Run ``begin``, steps on the rows of a source, and ``end``."""
        self.begin(len(stream.tasks))
        source = self.method.source(stream)
        with self.training():
            for iteration in range(1, iterations + 1 if self.method.takes_steps else 1):
                loss = self.step(source())
                if not math.isfinite(loss):
                    where = f"iteration {iteration} of task {len(stream.tasks)}"
                    raise ReliveError(
                        f"the loss became {loss} in {where}: training diverged. "
                        "Lower the method's strength or the learning rate"
                    )
                if on_step is not None and on_step(iteration, loss):
                    break
        self.end(stream.learned())

    def begin(self, seen: int) -> None:
        """Prepare for rows of a new task, or of a new stretch of a stream.

        Parameters
        ----------
        seen
            How many tasks have been seen, including those whose first rows come now.
        """
        held = {} if self._watched is None else tensors_of(self.method)
        copies = {name: [tensor.clone() for tensor in tensors] for name, tensors in held.items()}
        in_place(self.method.before_task, self.net, self.seen)
        if self._watched is not None:  # what is made anew for every task is not memory
            now = tensors_of(self.method)
            self._watched = {
                name: copies[name] for name in held if list(map(id, held[name])) == list(map(id, now.get(name, [])))
            }
        self.seen = seen

    @contextmanager
    def training(self) -> Iterator[None]:
        """Put the network into training mode; dropout draws from the learner's own stream inside."""
        with mode(self.net, training=True), drawing_from(self.batch_rng):
            yield

    def step(self, rows: Batch) -> float:
        """Take one step on current rows and on those that the method replays; return the rows' loss."""
        method, net, seen, theta = self.method, self.net, self.seen, self.optimizer.parameters
        current, replayed = rows, method.replay(net, rows, seen, self.noise_rng)
        try:
            if replayed is not None:  # L = 1/N · L_current + (1 − 1/N) · L_replay
                rows = concat([rows.times(1 / seen), replayed.times(1 - 1 / seen)])
            loss = method.loss(net, rows, self.noise_rng)
        except Exception as error:
            self._explain(error, current, replayed)
            raise
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise wrong(method.loss, loss, "a tensor of one number with a gradient, not detached")
        gradient = _separate(torch.autograd.grad(loss, theta, materialize_grads=True))
        with torch.no_grad():
            in_place(method.regularise, theta, gradient)
            self.optimizer.step(gradient)
            in_place(method.after_step, theta, gradient)
        return loss.item()

    def _explain(self, error: Exception, current: Batch, replayed: Batch | None) -> None:
        """Raise a clearer error, if a step failed because of what a hook returned."""
        if "more than 1 value per channel" in str(error):
            raise InputError(
                "batch normalisation needs at least 2 rows per step, but got 1: use a larger batch_size, and "
                "tasks with more than one sample"
            ) from error
        if replayed is not None:
            check_rows(self.method.replay, replayed, current)
        with suppress(RuntimeError, LookupError, TypeError, AttributeError):  # the first error is the one to show
            self.logits(current.x[:1], int(current.task[0]))

    def end(self, learned: Sequence[Part]) -> None:
        """Let the method extract what it needs later from what was learned since ``begin``."""
        in_place(self.method.after_task, self.net, learned, self.seen)
        if self._watched is not None:
            warn_of_lost(self.method, self._watched)
            warn_of_undeclared(self.optimizer)
        self._watched = None
        if not (all(t.isfinite().all() for t in self.optimizer.parameters) and self.method.is_finite()):
            raise ReliveError(
                "training diverged in the task's last step: some parameters are not finite. Lower the "
                "method's strength or the learning rate"
            )

    @torch.no_grad()
    def logits(self, x: Tensor, task: int) -> Tensor:
        """Return the logits of all output units, (n, units), in evaluation mode; only Task-IL uses ``task``."""
        x = x.to(self.problem.device)
        with mode(self.net, training=False):
            logits = self.method.logits(self.net, x, torch.full((len(x),), task, device=x.device))
        check_logits(self.method.logits, logits, len(x), self.problem.sizes.units)
        return logits

    @torch.no_grad()
    def novelty(self, x: Tensor) -> Tensor | None:
        """Return how unlike everything learned inputs are, in each way, (n, kinds); None if unknown."""
        with mode(self.net, training=False):
            return self.method.novelty(self.net, x.to(self.problem.device))

    @torch.no_grad()
    def unlearn(self, part: Part, rows: Tensor) -> None:
        """Unlearn some rows (m,) of the part that was learned last, if the method can."""
        device = self.problem.device
        self.method.unlearn(self.net, replace(part, examples=part.examples.to(device)), rows.to(device))

    @torch.no_grad()
    def predict(self, x: Tensor, task: int) -> Tensor:
        """Return the most likely output unit of each input, (n,); only Task-IL uses ``task``."""
        active = self.scenario.active(task, max(self.seen, 1))
        logits = self.logits(x, task).masked_fill(~active, -torch.inf)
        if bool(logits.isnan().any()):
            raise ReliveError("the method's logits are not numbers (nan), so they predict nothing: training diverged")
        return logits.argmax(1).cpu()

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters, without output units that are never active."""
        idle = self.net.idle(self.scenario.width - self.scenario.n_units)
        return sum(p.numel() for p in self.optimizer.parameters) - idle

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to continue bit-identically from a task's end, as named tensors."""
        self.method.settle(self.net)
        state = {f"net.{name}": value for name, value in self.net.state_dict().items()}
        state |= {f"method.{name}": value for name, value in state_of(self.method).items()}
        state |= self.optimizer.state()
        state["seen"] = torch.tensor(self.seen)
        state["rng.batches"] = self.batch_rng.get_state()
        state["rng.noise"] = self.noise_rng.get_state()
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def check_state(self, state: dict[str, Tensor]) -> None:
        """Refuse a state that a learner with the same arguments cannot have had at a task's end."""
        kept = {name: t for name, t in state.items() if name.startswith("method.")}
        expected = {name: t for name, t in self.state().items() if not name.startswith("method.")}
        check_form({name: t for name, t in state.items() if name not in kept}, expected)
        self.net.check_state({name.removeprefix("net."): t for name, t in state.items() if name.startswith("net.")})
        self.method.check_state({name.removeprefix("method."): t for name, t in kept.items()}, self.net)
        for name, tensor in state.items():
            if name.startswith(("net.", "method.")):
                check_numbers(name, tensor)
        self.optimizer.check_state(state)

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a state that comes from a file, which may hold anything."""
        self.check_state(state)
        self.load_state(state)
        kept = {name.removeprefix("method."): t for name, t in state.items() if name.startswith("method.")}
        check_loaded(self.method, kept)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Return to where ``state`` was taken; the learner must have been created with the same arguments."""
        device = self.problem.device

        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): t.to(device) for name, t in state.items() if name.startswith(prefix)}

        self.net.load_state_dict(part("net."))
        self.method.load_state(part("method."))
        self.optimizer.load_state(state)
        self.seen = int(state["seen"])
        self.batch_rng.set_state(state["rng.batches"])
        self.noise_rng.set_state(state["rng.noise"])


def _separate(gradient: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients that can be changed in place: two parameters may share one tensor, or it may be expanded."""
    seen: set[int] = set()
    separate = []
    for g in gradient:
        own = g.is_contiguous() and g.data_ptr() not in seen
        seen.add(g.data_ptr())
        separate.append(g if own else g.clone(memory_format=torch.contiguous_format))
    return separate
