r"""One closed form per domain: tasks that cannot be told apart share one; a task that can starts its own.

.. math:: p(c|x) = \sum_k p(k|x)\, p(c|x, k), \qquad
    p(k|x) \propto \sum_{c \in k} n_c \prod_i \mathcal N(x_i;\, \mu_{ci}, \sigma^2_{ci})

A single sum of products serves many classes well if their inputs have the same structure. If a task's inputs have
a different structure, such as permuted pixels, it is better learned separately, with features adapted to it; which of
the domains an input belongs to is then obvious. Every domain k has an encoder, adapted to its first task, and its own
:mod:`relive.methods.discriminant`, p(c|x,k); all encoders have the same random weights. For p(k|x) it keeps
the mean and variance of every input in every class, also from sums; variances are shrunk towards those within all
classes of the domain.

A new task starts a domain if these Gaussians separate its samples from those of all domains. One half of its
samples judges the other half: counting three unseen mistakes in addition to those seen (the upper limit of a 95 %
confidence interval if none is seen), fewer than 0.5 % may lie closer to a known domain, and as few of the samples drawn
from a known domain's Gaussians closer to the new task. So 600 samples are needed on both sides. Otherwise it joins the
domain in which its samples are most likely; if nothing can be told apart, there is a single, exact closed form.

``numbers`` is what each domain may store (with 16 classes; more are accepted, and counted): products are kept, so that
every domain can be continued. In Task-IL the domain follows from the task.

This method is our own. For a network per task whose task is inferred from the input see Aljundi et al. (2017), "Expert
gate", CVPR.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.core.method import Method, Problem
from relive.core.sources import Part
from relive.core.state import check_form
from relive.data.tasks import Task
from relive.methods.analytic import CLASSES
from relive.methods.catalogue import METHODS
from relive.methods.closed_form import CHUNK
from relive.methods.discriminant import Discriminant, usual_temperature
from relive.methods.input_gaussians import log_density, moments_of, samples_of, with_squares
from relive.methods.sums import Sums
from relive.networks import Classifier
from relive.networks.encoders import fill
from relive.networks.head import OFF

MISTAKES = 0.005  # the share of samples below which two domains are told apart
UNSEEN = 3  # mistakes assumed in addition to those seen
LEAST = UNSEEN / MISTAKES  # samples
LOOK, DRAWN = 10_000, 1000  # samples of a task that are examined; samples drawn from a domain
UNLIKELY = -1000.0  # log p(k|x) below which a domain is skipped: it has no effect at any temperature


@dataclass
class Domain:
    """Tasks that cannot be told apart.

    Attributes
    ----------
    tasks
        Their numbers, in order of appearance.
    form, net
        Their closed form, which knows only these tasks, and its network.
    moments
        The sums of every class's inputs and of their squares: (classes, 2 · inputs).
    """

    tasks: list[int]
    form: Discriminant
    net: Classifier
    moments: Sums

    def learn(self, part: Part) -> None:
        """Learn from samples of one of the tasks."""
        task = self.tasks.index(part.task)
        self.form.after_task(self.net, [replace(part, task=task)], len(self.tasks))
        self._count(part, 1)

    def unlearn(self, part: Part, rows: Tensor) -> None:
        """Unlearn some rows of one of the tasks."""
        self.form.unlearn(self.net, replace(part, task=self.tasks.index(part.task)), rows)
        self._count(replace(part, examples=part.examples.take(rows)), -1)

    def _count(self, part: Part, times: int) -> None:
        cells = self.form.cells(self.tasks.index(part.task))
        for start in range(0, len(part.examples), CHUNK):
            rows = slice(start, start + CHUNK)
            self.moments.add(with_squares(part.examples.inputs(rows)), cells[part.examples.labels[rows]], times)


class Domains(Method):
    """A closed form for each group of tasks that cannot be told apart."""

    facts: ClassVar = METHODS["domains"]
    takes_steps = False
    can_unlearn = True

    def __init__(self, numbers: float = 1.5e6) -> None:
        self.numbers = numbers
        self.domains_: list[Domain] = []

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        self.random_state_ = rng.get_state()
        width = self._form().width(problem.sizes)
        net = Classifier(replace(problem.sizes, units=1, hidden=width), rng).requires_grad_(False)
        self.encoder_: nn.Module = net.encoder  # never adapted: the domains' encoders start from it; the rest is idle
        self.frozen_ = sum(t.numel() for t in net.state_dict().values())
        return net

    def _form(self) -> Discriminant:
        return Discriminant(max(self.numbers - CLASSES * 2 * self.problem.sizes.inputs, 1.0))

    def _network(self, form: Discriminant, tasks: Sequence[int]) -> Classifier:
        """Create a network for the closed form of these tasks, and prepare the closed form for it."""
        scenario = self.problem.scenario.only(tasks)
        problem = replace(self.problem, scenario=scenario, sizes=replace(self.problem.sizes, units=scenario.width))
        rng = torch.Generator()
        rng.set_state(self.random_state_)
        return form.build(problem, rng).to(problem.device).eval()

    def _domain(self, tasks: Sequence[int]) -> Domain:
        """Return an untrained domain."""
        form = self._form()
        net = self._network(form, tasks)
        fill(net.encoder, self.encoder_.state_dict())
        zeros = form.sums.count.new_zeros(len(form.sums.count), 2 * self.problem.sizes.inputs)
        return Domain(list(tasks), form, net, Sums(zeros[:, 0].clone(), zeros, None))

    def _join(self, domain: Domain, task: int) -> None:
        """Prepare a domain for one more task."""
        domain.tasks.append(task)
        learned, domain.net = domain.net.state_dict(), self._network(domain.form, domain.tasks)
        fill(domain.net, learned)
        domain.form.grow(domain.net)
        more = len(domain.form.sums.count) - len(domain.moments.count)
        domain.moments = Sums(pad(domain.moments.count, (0, more)), pad(domain.moments.total, (0, 0, 0, more)), None)

    @torch.no_grad()
    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        for part in learned:
            mine = next((domain for domain in self.domains_ if part.task in domain.tasks), None)
            (mine or self._home_of(part)).learn(part)

    def usual_temperature(self, n_classes: int) -> float:
        return usual_temperature(n_classes)

    def unlearn(self, net: Classifier, part: Part, rows: Tensor) -> None:
        next(domain for domain in self.domains_ if part.task in domain.tasks).unlearn(part, rows)

    def _home_of(self, part: Part) -> Domain:
        """Return the domain that a new task joins or starts."""
        rng = stream(0, "telling domains apart")
        rows = torch.randperm(len(part.examples), generator=rng)[:LOOK].to(part.examples.labels.device)
        x, label = part.examples.inputs(rows).double(), part.examples.labels[rows]
        known = torch.stack([log_density(d.moments, x) for d in self.domains_], 1) if self.domains_ else None
        if known is None or self._told_apart(x, label, known.amax(1), rng):
            self.domains_.append(self._domain([part.task]))
            return self.domains_[-1]
        home = self.domains_[int(known.sum(0).argmax())]
        self._join(home, part.task)
        return home

    def _told_apart(self, x: Tensor, label: Tensor, known: Tensor, rng: torch.Generator) -> bool:
        """Return whether the samples belong to none of the domains, and the domains' samples not to the new task."""
        if min(len(x), *(float(domain.moments.n) for domain in self.domains_)) < LEAST:
            return False
        half = len(x) // 2
        here, there = slice(None, half), slice(half, None)
        mistakes = 0
        for mine, other in ((here, there), (there, here)):
            new = moments_of(x[mine], label[mine])
            mistakes += int((log_density(new, x[other]) <= known[other]).sum())
        if (mistakes + UNSEEN) / len(x) >= MISTAKES:
            return False
        new = moments_of(x, label)
        for domain in self.domains_:
            drawn = samples_of(domain.moments, DRAWN, rng)
            taken = log_density(domain.moments, drawn) <= log_density(new, drawn)
            if float(taken.double().mean()) >= MISTAKES:
                return False
        return True

    @torch.no_grad()
    def settle(self, net: Classifier) -> None:
        for domain in self.domains_:
            domain.form.settle(domain.net)

    def _log_domains(self, x: Tensor, task: Tensor) -> Tensor:
        """Return log p(k|x), (n, domains); in Task-IL it follows from the task."""
        if self.problem.scenario.needs_task:
            theirs = [torch.isin(task, torch.tensor(domain.tasks, device=x.device)) for domain in self.domains_]
            return torch.where(torch.stack(theirs, 1), 0.0, OFF)
        return torch.stack([log_density(d.moments, x) for d in self.domains_], 1).log_softmax(1).to(x.dtype)

    def logits(self, net: Classifier, x: Tensor, task: Tensor) -> Tensor:
        self.settle(net)
        scenario = self.problem.scenario
        logits = x.new_full((len(x), scenario.width), OFF)
        log_p = self._log_domains(x, task) if self.domains_ else x.new_zeros(len(x), 0)
        for domain, log_p_k in zip(self.domains_, log_p.T, strict=True):
            rows = (log_p_k > UNLIKELY).nonzero()  # (rows, 1)
            here, i = domain.form.problem.scenario, rows.squeeze(1)
            unit_of: dict[int, int] = {}  # for each unit of the domain
            for k, t in enumerate(domain.tasks):
                unit_of |= dict(zip(here.units(k).tolist(), scenario.units(t).tolist(), strict=True))
            found = domain.form.logits(domain.net, x[i], task[i])[:, list(unit_of)].log_softmax(1) + log_p_k[rows]
            units = torch.tensor(list(unit_of.values()), device=x.device)
            logits[rows, units] = torch.logaddexp(logits[rows, units], found)
        return logits

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        for domain in self.domains_:
            cells = domain.form.cells_of(gone)
            domain.form.forget(domain.net, gone)
            domain.moments.count[cells] = 0
            domain.moments.total[cells] = 0
        self.domains_ = [domain for domain in self.domains_ if domain.moments.n > 0]

    def merge(self, net: Classifier, into: int, other: int) -> None:
        for domain in self.domains_:
            for places in domain.form.places():
                if into in places and other in places:
                    for sums in (domain.moments.count, domain.moments.total):
                        sums[places[into]] += sums[places[other]]
                        sums[places[other]] = 0
            domain.form.merge(domain.net, into, other)

    def state(self) -> dict[str, Tensor]:
        shared, state = self.encoder_.state_dict(prefix="encoder."), {}
        for k, domain in enumerate(self.domains_):
            state[f"{k}.tasks"] = torch.tensor(domain.tasks, device=self.problem.device)
            state[f"{k}.moments"] = domain.moments.total
            state |= {f"{k}.form.{name}": tensor for name, tensor in domain.form.state().items()}
            for name, tensor in domain.net.state_dict().items():
                if name not in shared or not torch.equal(tensor, shared[name]):
                    state[f"{k}.net.{name}"] = tensor
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}

        self.domains_ = []
        for k in range(sum(name.endswith(".tasks") for name in state)):
            domain = self._domain(state[f"{k}.tasks"].tolist())
            fill(domain.net, part(f"{k}.net."))
            domain.form.check_state(part(f"{k}.form."), domain.net)
            domain.form.load_state(part(f"{k}.form."))
            domain.moments = Sums(domain.form.sums.count.clone(), state[f"{k}.moments"].clone(), None)
            self.domains_.append(domain)

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        for name, tensor in state.items():
            if name.endswith(".tasks"):
                check_form({name: tensor}, {name: torch.empty(tensor.numel(), dtype=torch.long)})
            elif name.endswith(".moments"):
                form = state[name.removesuffix("moments") + "form.total"]
                check_form({name: tensor}, {name: form.new_empty(len(form), 2 * self.problem.sizes.inputs)})
        tasks = [task for name, tensor in state.items() if name.endswith(".tasks") for task in tensor.tolist()]
        if (
            not tasks
            or len(set(tasks)) < len(tasks)
            or not set(tasks) <= set(range(len(self.problem.scenario.classes)))
        ):
            raise InputError(f"its domains have the tasks {tasks}: every task must be in exactly one domain")

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        return int(self.frozen_) + super().stored_numbers(tasks)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = copy.copy(self)
        other.domains_ = copy.deepcopy(self.domains_, memo)
        return other
