"""iCaRL against its algorithms, one class and one exemplar at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from relive._util.seeds import stream
from relive.methods.icarl import ICaRL, herded
from tests import plain

SCENARIOS = ["task", "domain", "class"]


def unit_length(x: Tensor) -> Tensor:
    return torch.stack([row / row.norm() for row in x])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_loss_and_gradient(scenario: str) -> None:
    """A binary target for every active unit: from the label, or from the old network for the classes it knows."""
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("icarl", scenario, tasks, budget=10)
    for k in range(len(tasks)):
        seen = k + 1
        teacher = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        for step in plain.record(learner, tasks[:seen], 2):
            theta = plain.double(step.theta)
            n, m = len(step.current.x), len(step.replayed)
            assert m == (8 if k else 0)
            loss = torch.zeros((), dtype=torch.double)
            for i, row in enumerate(step.batch.x):
                j, label = plain.owner(tasks, row)
                said, asked = plain.logits(theta, row[None])[0], plain.logits(teacher, row[None])[0]
                old = {u for task in range(k) for u in layout.columns(task, k)}
                own = {"task": {2 * j, 2 * j + 1}, "domain": {0, 1}, "class": {2 * j, 2 * j + 1}}[scenario]
                right = 2 * j + label if scenario != "domain" else label
                share = 1 / n if not k else 1 / seen / n if i < n else (1 - 1 / seen) / m
                for u in layout.columns(j, seen):
                    labelled = u not in old or (i < n and u in own)
                    y = float(u == right) if labelled else float(asked[u].sigmoid())
                    p = said[u].sigmoid()
                    loss = loss - share * (y * p.log() + (1 - y) * (1 - p).log())
            plain.check(step, theta, loss)


def test_herding_adds_what_brings_the_mean_closest() -> None:
    phi = unit_length(torch.rand(30, 4, generator=stream(0, "test"), dtype=torch.double))
    chosen: list[int] = []
    for k in range(1, 11):
        left = [i for i in range(30) if i not in chosen]
        off = [((phi[[*chosen, i]].sum(0) / k) - phi.mean(0)).norm().item() for i in left]
        chosen.append(left[min(range(len(left)), key=off.__getitem__)])
    assert herded(phi, 10).tolist() == chosen
    assert sorted(herded(phi, 30).tolist()) == list(range(30))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_answer_is_the_nearest_mean_of_exemplars(scenario: str) -> None:
    tasks = plain.split_tasks()
    layout, learner = plain.Layout.of(scenario, tasks), plain.learner_of("icarl", scenario, tasks, budget=12)
    for seen in (1, 2, 3):
        learner.learn(tasks[:seen], 20)
        method = learner.method
        assert isinstance(method, ICaRL)
        theta = {name: t.double() for name, t in plain.parameters(learner.net).items()}
        exemplars = {(k, c): [] for k in range(seen) for c in (0, 1)}  # type: ignore[var-annotated]
        for x in method.buffer_.x:
            exemplars[plain.owner(tasks, x)].append(x)
        assert {len(kept) for kept in exemplars.values()} == {12 // (2 * seen)}
        means = {}
        for key, kept in exemplars.items():
            mean = unit_length(plain.hidden(theta, torch.stack(kept))).mean(0)
            means[key] = mean / mean.norm()
        for k in range(seen):
            x = tasks[k].test.inputs(slice(None))
            said = learner.predict(x, k)
            for row, unit in zip(unit_length(plain.hidden(theta, x)), said.tolist(), strict=True):
                allowed = {key: mean for key, mean in means.items() if scenario != "task" or key[0] == k}
                j, label = min(allowed, key=lambda key: float((row - allowed[key]).norm()))
                assert unit == (label if scenario == "domain" else 2 * j + label)
    assert layout.n_classes == 2


def test_while_it_learns_the_network_s_own_outputs_answer() -> None:
    tasks = plain.split_tasks()
    learner = plain.learner_of("icarl", "class", tasks)
    learner.learn(tasks[:1], 5)
    x, looks = tasks[1].test.inputs(slice(None)), []
    learner.learn(tasks[:2], 3, lambda i, loss: looks.append((learner.predict(x, 1), learner.net(x)[:, :4].argmax(1))))
    assert all(torch.equal(said, own) for said, own in looks)
