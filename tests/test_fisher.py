"""The batched Fisher information against one sample at a time, in float64."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor

from relive.fidelity import AS_RUN
from relive.fisher import fisher_sum
from relive.methods.ewc import fisher
from relive.networks import Classifier, FeedbackClassifier, Sizes
from relive.seeds import stream
from tests import plain

Labels = Literal["true", "predicted", "expected"]
LABELS: list[Labels] = ["true", "predicted", "expected"]
COLUMNS = [[0, 1, 2, 3, 4, 5], [2, 3], [0, 1, 2, 3], [4]]
N, UNITS = 23, 6


def net_and_data() -> tuple[Classifier, Tensor]:
    net = Classifier(Sizes(inputs=7, hidden=9, latent=2, units=UNITS), stream(0, "network")).double()
    return net, torch.rand(N, 7, generator=stream(0, "x"), dtype=torch.float64)


def mask(columns: list[int]) -> Tensor:
    active = torch.zeros(UNITS, dtype=torch.bool)
    active[columns] = True
    return active


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_one_sample_at_a_time(labels: Labels, columns: list[int]) -> None:
    net, x = net_and_data()
    answer = torch.randint(len(columns), (N,), generator=stream(0, "y"))
    got = fisher_sum(net, [(x, torch.tensor(columns)[answer])], mask(columns), labels)
    expected = plain.fisher(plain.parameters(net), x, answer, columns, labels)
    assert set(got) == set(expected)
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-9, atol=1e-14, msg=name)
    if len(columns) > 1:
        assert all(t.any() for t in got.values())
    off = ~mask(columns)
    assert not got["head.weight"][off].any()
    assert not got["head.bias"][off].any()


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("size", [1, 5, N])
def test_chunks_do_not_matter(labels: Labels, size: int) -> None:
    net, x = net_and_data()
    y = torch.randint(UNITS, (N,), generator=stream(0, "y"))
    whole = fisher_sum(net, [(x, y)], mask(COLUMNS[0]), labels)
    chunks = [(x[i : i + size], y[i : i + size]) for i in range(0, N, size)]
    for name, t in fisher_sum(net, iter(chunks), mask(COLUMNS[0]), labels).items():
        torch.testing.assert_close(t, whole[name], rtol=1e-9, atol=1e-14)


def test_the_labels_matter() -> None:
    net, x = net_and_data()
    y = net(x).argmin(1)
    sums = [fisher_sum(net, [(x, y)], mask(COLUMNS[0]), labels)["head.bias"] for labels in LABELS]
    assert not torch.allclose(sums[0], sums[1])
    assert not torch.allclose(sums[1], sums[2])


def test_a_true_label_that_is_the_predicted_one() -> None:
    net, x = net_and_data()
    y = net(x).argmax(1)
    true, predicted = (fisher_sum(net, [(x, y)], mask(COLUMNS[0]), labels) for labels in LABELS[:2])
    assert all(torch.equal(true[name], predicted[name]) for name in true)


def test_only_the_classifier_s_parameters_count() -> None:
    net = FeedbackClassifier(Sizes(7, 9, 2, UNITS), stream(0, "network")).double()
    _, x = net_and_data()
    got = fisher_sum(net, [(x, torch.zeros(N, dtype=torch.long))], mask(COLUMNS[0]), "true")
    assert set(got) == {name for name, _ in net.named_parameters() if not name.startswith("feedback")}


def test_it_leaves_the_network_and_its_gradients_alone() -> None:
    net, x = net_and_data()
    before = plain.parameters(net)
    out = fisher_sum(net, [(x, torch.zeros(N, dtype=torch.long))], mask(COLUMNS[0]), "expected")
    assert all(torch.equal(before[name], t) for name, t in plain.parameters(net).items())
    assert all(p.grad is None for p in net.parameters())
    assert not any(t.requires_grad for t in out.values())


@pytest.mark.parametrize(("divisor", "n"), [("n", 18), ("n_minus_1", 17)])
@pytest.mark.parametrize("chunk", [5, 18, 1000])
def test_a_task_s_fisher_covers_its_whole_training_set(divisor: str, n: int, chunk: int) -> None:
    tasks = plain.split_tasks()
    fidelity = AS_RUN.choose({"fisher_divisor": divisor})
    learner = plain.learner_of("none", "class", tasks, fidelity)
    got = fisher(learner.net, tasks[1], 2, learner.method.problem, chunk)
    x, answer = tasks[1].train.inputs(slice(None)), 2 + tasks[1].train.labels
    total = plain.fisher(plain.parameters(learner.net), x, answer, [0, 1, 2, 3], "predicted")
    for ours, expected in zip(got, total.values(), strict=True):
        torch.testing.assert_close(ours.double(), expected / n, rtol=1e-4, atol=1e-9)
