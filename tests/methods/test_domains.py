"""A closed form per domain against plain closed forms on each domain's samples, and when a new domain begins."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from relive._util.errors import InputError
from relive._util.seeds import stream
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelfile import load
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.core.sources import Part
from relive.data.tasks import Examples, Task
from relive.methods import make_method
from relive.methods.domains import Domains
from relive.methods.input_gaussians import log_density, moments_of, samples_of

SETTINGS = {"numbers": 1e4}
N_INPUTS = 6


def inputs(label: Tensor, turned: bool, rng: torch.Generator) -> Tensor:
    """Return samples whose first three inputs give the class and the others the domain, in which classes swap."""
    x = torch.randn(len(label), N_INPUTS, generator=rng)
    sign = (2.0 * label - 1) * (-1.0 if turned else 1.0)
    x[:, :3] += 1.5 * sign.unsqueeze(1)
    x[:, 3:] += 9.0 * turned
    return x


def task_of(classes: tuple[int, ...], turned: bool, n: int = 800, seed: int = 0) -> Task:
    rng = stream(seed, "samples")
    label = torch.randint(2, (n,), generator=rng)
    examples = Examples(inputs(label, turned, rng), label)
    return Task(examples, examples, classes, tuple(map(str, classes)), (N_INPUTS,))


def taught(tasks: Sequence[Task], scenario: str, method: str = "domains", **settings: float) -> Learner:
    layout = scenario_of(scenario, [task.classes for task in tasks])
    learner = Learner(make_method(method, **(settings or SETTINGS)), layout, N_INPUTS, encoder="random-flat")
    for k in range(len(tasks)):
        learner.learn(tasks[: k + 1], 1)
    return learner


def domains_of(learner: Learner) -> list[list[int]]:
    assert isinstance(learner.method, Domains)
    return [domain.tasks for domain in learner.method.domains_]


def four_tasks() -> list[Task]:
    """Two domains, each learned twice with other samples."""
    return [task_of((2 * k, 2 * k + 1), turned, seed=k) for k, turned in enumerate((False, True, False, True))]


def form_with_the_numbers_of_a_domain(tasks: Sequence[Task], scenario: str) -> Learner:
    return taught(tasks, scenario, "discriminant", numbers=SETTINGS["numbers"] - 16 * 2 * N_INPUTS)


def log_p_of_domains(tasks: Sequence[Task], x: Tensor) -> Tensor:
    """Return log p(domain|x) of the four tasks' two domains, from all samples at once, class by class."""
    columns = []
    for members in ((0, 2), (1, 3)):
        theirs = [
            (task.train.pixels[task.train.labels == c].double().numpy(), task.classes[c])
            for task in (tasks[k] for k in members)
            for c in (0, 1)
        ]
        own = [samples for samples, _ in theirs]
        n = sum(map(len, own))
        within = sum(len(samples) * samples.var(0) for samples in own) / n
        density = 0.0
        for samples in own:
            variance = (len(samples) * samples.var(0) + 5 * within) / (len(samples) + 5) + 0.01 * within.mean()
            each = norm(samples.mean(0), np.sqrt(variance)).logpdf(x.double().numpy()).sum(1)
            density = density + len(samples) * np.exp(each)
        columns.append(np.log(density))
    return torch.from_numpy(np.stack(columns, 1)).log_softmax(1)


def between() -> Tensor:
    """Return inputs that lie between the two domains, so that neither is certain."""
    x = torch.randn(50, N_INPUTS, generator=stream(9, "between"))
    x[:, 3:] += 4.5
    return x


def test_its_probabilities_are_those_of_the_domains_times_those_of_the_classes_in_each() -> None:
    tasks = four_tasks()
    learner, x = taught(tasks, "class"), between()
    assert domains_of(learner) == [[0, 2], [1, 3]]
    log_p = log_p_of_domains(tasks, x)
    assert ((log_p.exp() > 0.05) & (log_p.exp() < 0.95)).any(), "some inputs could belong to either"
    found = learner.logits(x, 0)[:, :8].log_softmax(1).double()
    for k, members in enumerate(((0, 2), (1, 3))):
        form = form_with_the_numbers_of_a_domain([tasks[t] for t in members], "class")
        in_domain = form.logits(x, 0)[:, :4].log_softmax(1).double()
        units = [2 * t + c for t in members for c in (0, 1)]
        expected = log_p[:, k : k + 1] + in_domain
        likely = expected > -25  # less likely ones are not compared
        torch.testing.assert_close(found[:, units][likely], expected[likely], rtol=1e-3, atol=1e-3)


def test_in_domain_il_a_unit_adds_up_what_speaks_for_it_in_every_domain() -> None:
    tasks = [task_of((0, 1), turned, seed=k) for k, turned in enumerate((False, True, False, True))]
    learner, x = taught(tasks, "domain"), between()
    log_p = log_p_of_domains(tasks, x)
    expected = torch.zeros(len(x), 2, dtype=torch.float64)
    for k, members in enumerate(((0, 2), (1, 3))):
        form = form_with_the_numbers_of_a_domain([tasks[t] for t in members], "domain")
        expected += (log_p[:, k : k + 1] + form.logits(x, 0)[:, :2].log_softmax(1).double()).exp()
    torch.testing.assert_close(learner.logits(x, 0)[:, :2].softmax(1).double(), expected, rtol=1e-3, atol=1e-4)
    for task in tasks:
        right = (learner.predict(task.test.pixels, 0) == task.test.labels).double().mean()
        assert right > 0.98, "though the classes are swapped"


def test_in_task_il_the_task_says_which_domain_it_is() -> None:
    tasks = four_tasks()
    learner = taught(tasks, "task")
    x = tasks[0].test.pixels
    form = form_with_the_numbers_of_a_domain([tasks[1], tasks[3]], "task")
    found = learner.logits(x, 3)[:, 6:8].log_softmax(1)
    torch.testing.assert_close(found, form.logits(x, 1)[:, 2:4].log_softmax(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_where_nothing_can_be_told_apart_it_is_one_closed_form(scenario: str) -> None:
    tasks = [task_of((0, 1), False, seed=0), task_of((2, 3), False, seed=1), task_of((0, 3), False, seed=2)]
    if scenario == "domain":
        tasks = [task_of((0, 1), False, seed=k) for k in range(3)]
    learner = taught(tasks, scenario)
    assert domains_of(learner) == [[0, 1, 2]]
    form = form_with_the_numbers_of_a_domain(tasks, scenario)
    for k in range(3):
        x, active = tasks[k].test.pixels, learner.scenario.active(k, 3)
        pair = [each.logits(x, k)[:, active].log_softmax(1) for each in (learner, form)]
        torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-5)


def test_a_class_that_comes_again_in_another_domain_is_known_in_both() -> None:
    tasks = [task_of((0, 1), turned, seed=k) for k, turned in enumerate((False, True))]
    learner = taught(tasks, "class")
    assert domains_of(learner) == [[0], [1]]
    for task in tasks:
        assert (learner.predict(task.test.pixels, 0) == task.test.labels).double().mean() > 0.98


@pytest.mark.parametrize(("sizes", "expected"), [((700, 700), 2), ((700, 500), 1), ((500, 700), 1)])
def test_a_domain_needs_600_samples_on_both_sides(sizes: tuple[int, int], expected: int) -> None:
    tasks = [task_of((2 * k, 2 * k + 1), bool(k), n) for k, n in enumerate(sizes)]
    assert len(domains_of(taught(tasks, "class"))) == expected


def test_few_samples_of_a_known_domain_join_it() -> None:
    tasks = [*four_tasks()[:2], task_of((4, 5), True, 20, seed=5), task_of((6, 7), False, 20, seed=6)]
    assert domains_of(taught(tasks, "class")) == [[0, 3], [1, 2]]


def test_a_task_that_lies_within_a_wide_domain_joins_it() -> None:
    """Its samples are likelier under their own Gaussian, but so are some of the domain's samples."""
    rng = stream(0, "narrow")
    label = torch.arange(2000) % 2
    wide, narrow = (Examples(scale * torch.randn(2000, 1, generator=rng), label) for scale in (1.0, 0.02))
    tasks = [Task(part, part, (k, k + 2), ("a", "b"), (1,)) for k, part in enumerate((wide, narrow))]
    learner = Learner(make_method("domains", **SETTINGS), scenario_of("class", [(0, 2), (1, 3)]), 1)
    learner.learn(tasks[:1], 1)
    learner.learn(tasks, 1)
    assert domains_of(learner) == [[0, 1]]


def test_samples_drawn_from_the_gaussians_have_their_means_and_variances() -> None:
    task = task_of((0, 1), False, 2000)
    moments = moments_of(task.train.pixels.double(), task.train.labels)
    drawn = samples_of(moments, 20_000, stream(0, "drawn"))
    x = task.train.pixels.double()
    torch.testing.assert_close(drawn.mean(0), x.mean(0), rtol=0, atol=0.06)
    torch.testing.assert_close(drawn.var(0), x.var(0), rtol=0.06, atol=0)
    assert log_density(moments, drawn).mean() == pytest.approx(float(log_density(moments, x).mean()), abs=0.15)


def test_a_task_that_comes_in_pieces_stays_in_its_domain() -> None:
    """As in a stream without boundaries: a later piece is not assigned again."""
    tasks = four_tasks()[:2]
    learner = Learner(make_method("domains", **SETTINGS), scenario_of("class", [(0, 1), (2, 3)]), N_INPUTS)
    pieces = [Part(0, tasks[0].train), Part(1, tasks[1].train), Part(0, tasks[1].train), Part(1, tasks[0].train)]
    learner.begin(2)
    learner.end(pieces[:3])
    learner.end(pieces[3:])
    assert domains_of(learner) == [[0], [1]]
    assert isinstance(learner.method, Domains)
    assert [int(domain.form.sums.n) for domain in learner.method.domains_] == [1600, 1600]
    assert [int(domain.moments.n) for domain in learner.method.domains_] == [1600, 1600]


def test_it_grows_and_goes_on_from_a_file_with_the_same_bits() -> None:
    tasks = four_tasks()
    whole = taught(tasks, "class")
    layouts = [scenario_of("class", [task.classes for task in tasks[:k]]) for k in (1, 2, 3, 4)]
    learner = Learner(make_method("domains", **SETTINGS), layouts[0], N_INPUTS)
    for k, layout in enumerate(layouts):
        learner.grow(layout)
        learner.learn(tasks[: k + 1], 1)
        other = Learner(make_method("domains", **SETTINGS), layout, N_INPUTS)
        state = learner.state()
        other.check_state(state)
        other.load_state(state)
        x = tasks[0].test.pixels
        assert torch.equal(other.logits(x, 0), learner.logits(x, 0))
        learner = other
    found, expected = learner.state(), whole.state()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_copy_goes_on_by_itself_and_answers_before_anything_was_asked() -> None:
    tasks = four_tasks()
    learner = taught(tasks[:2], "class")
    learner.grow(scenario_of("class", [task.classes for task in tasks]))
    other = copy.deepcopy(learner)
    before = {name: tensor.clone() for name, tensor in learner.state().items()}
    x = tasks[1].test.pixels
    assert torch.equal(other.logits(x, 0), learner.logits(x, 0))
    other.learn(tasks[:3], 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.state().items())
    assert domains_of(other) == [[0, 2], [1]]


def test_random_weights_are_kept_once() -> None:
    learner = taught(four_tasks(), "class")
    names = [name for name in learner.state() if name.endswith(("encoder.weight", "encoder.middle"))]
    assert sorted(names) == [
        "method.0.net.encoder.middle",
        "method.1.net.encoder.middle",
        "net.encoder.middle",
        "net.encoder.weight",
    ]


@pytest.mark.parametrize(("numbers", "n_inputs"), [(3e4, 20), (1e6, 1024)])
def test_each_domain_keeps_no_more_numbers_than_allowed(numbers: float, n_inputs: int) -> None:
    """Apart from the shared first encoder; everything in a file is counted."""
    rng = stream(0, "wide")
    tasks = []
    for k in range(2):
        examples = Examples(torch.rand(700, n_inputs, generator=rng) + 5 * k, torch.arange(700) % 10)
        tasks.append(Task(examples, examples, tuple(range(10 * k, 10 * k + 10)), tuple("0123456789"), (n_inputs,)))
    method = make_method("domains", numbers=numbers)
    learner = Learner(method, scenario_of("class", [task.classes for task in tasks]), n_inputs)
    once = method.stored_numbers([])
    for k in (1, 2):
        learner.learn(tasks[:k], 1)
        kept = method.stored_numbers(tasks)
        assert len(domains_of(learner)) == k
        assert 0.75 * numbers < (kept - once) / k <= numbers
        in_file = [t.numel() for name, t in learner.state().items() if name.startswith(("net.", "method."))]
        assert sum(in_file) == kept


def test_a_model_file(tmp_path: Path) -> None:
    model = ContinualClassifier("domains", settings=SETTINGS)
    for task in four_tasks():
        model.partial_fit(task.train.pixels.numpy(), np.array(task.classes)[task.train.labels.numpy()])
    assert domains_of(model.learner_) == [[0, 2], [1, 3]]
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    x = between().numpy()
    np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert not math.isnan(float(model.predict_proba(x).sum()))


@pytest.mark.parametrize("tasks", [[0, 0], [7], [-1]])
def test_a_state_whose_domains_cannot_be_is_refused(tasks: list[int]) -> None:
    learner = taught(four_tasks(), "class")
    state = learner.state() | {"method.0.tasks": torch.tensor(tasks)}
    with pytest.raises(InputError, match="every task must be in exactly one domain"):
        learner.check_state(state)
