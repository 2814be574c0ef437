"""The batched Fisher information against one sample at a time, in float64, with the paper's encoder and many others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from relive._util.fidelity import AS_RUN
from relive._util.seeds import stream
from relive.core.sources import Part
from relive.methods.ewc import fisher
from relive.networks import Classifier, FeedbackClassifier, Sizes
from relive.networks import fisher as fisher_module
from relive.networks.convolution import conv
from relive.networks.fisher import fisher_sum
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
    halves = [Part(1, tasks[1].train.take(torch.arange(18)[rows])) for rows in (slice(0, 7), slice(7, 18))]
    got = fisher(learner.net, halves, 2, learner.method.problem, chunk)
    x, answer = tasks[1].train.inputs(slice(None)), 2 + tasks[1].train.labels
    total = plain.fisher(plain.parameters(learner.net), x, answer, [0, 1, 2, 3], "predicted")
    for ours, expected in zip(got, total.values(), strict=True):
        torch.testing.assert_close(ours.double(), expected / n, rtol=1e-4, atol=1e-9)


# ---- any encoder ------------------------------------------------------------------------------------------------


class Shared(nn.Module):
    """One layer called twice, one weight shared by two layers, one layer on several rows per sample, one unused."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(5, 5)
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5, bias=False)
        self.second.weight = self.first.weight
        self.rows = nn.Linear(3, 3)
        self.flat_rows = nn.Linear(3, 2)
        self.unused = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        h = self.rows(x.reshape(len(x), -1, 3))  # (n, 10, 3)
        h = self.flat_rows(h.flatten(0, 1)).reshape(len(x), -1)[:, :5]
        h = self.twice(self.twice(h).tanh()).relu_()
        out: Tensor = self.second(self.first(h).sigmoid_())
        return self.scale * out


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape(len(x), 5, 6)
        out: Tensor = self.layer(x, x, x, need_weights=False)[0]
        return out.mean(1)


def sequential(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (2, 3, 5)), *layers, nn.Flatten())


def encoders() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    assert norm.running_mean is not None
    norm.running_mean.normal_()
    frozen = nn.Sequential(nn.Linear(30, 8), nn.ReLU(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 6))
    frozen[0].requires_grad_(False)
    frozen[2].weight.requires_grad_(False)
    return {
        "conv": conv((2, 3, 5), 7, stream(0, "encoder")),
        "groups, stride, dilation": sequential(
            nn.Conv2d(2, 6, (1, 2), stride=(1, 2), padding=1, groups=2),
            nn.ReLU(inplace=True),
            nn.Conv2d(6, 4, 2, dilation=2),
        ),
        "no bias": nn.Sequential(nn.Linear(30, 8, bias=False), nn.ReLU(inplace=True), nn.Linear(8, 3)),
        "padding by name": sequential(nn.Conv2d(2, 3, 3, padding="same"), nn.SiLU()),
        "padding by reflection": sequential(nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), nn.SiLU()),
        "batch norm and dropout": sequential(nn.Conv2d(2, 4, 2), norm, nn.ReLU(), nn.Dropout(0.5), nn.AvgPool2d(2)),
        "layer norm": nn.Sequential(nn.Linear(30, 9), nn.LayerNorm(9), nn.GELU(), nn.Linear(9, 4)),
        "transposed": sequential(nn.ConvTranspose2d(2, 2, 2), nn.ReLU(), nn.Conv2d(2, 1, 2)),
        "shared": Shared(),
        "attention": Attention(),
        "weight norm": nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(30, 5)), nn.ReLU()),
        "a layer alone": nn.Linear(30, 5),
        "a norm alone": nn.LayerNorm(30),
        "frozen": frozen,
        "all frozen": nn.Linear(30, 5).requires_grad_(False),
        "no parameters": nn.Identity(),
    }


def one_at_a_time(net: Classifier, x: Tensor, y: Tensor, active: Tensor, labels: Labels) -> dict[str, Tensor]:
    """Return the sum of squared gradients, from a backward pass for every sample and label."""
    theta = {name: p for name, p in net.named_parameters() if p.requires_grad}
    total = {name: torch.zeros_like(p) for name, p in theta.items()}
    for i in range(len(x)):
        log_p = net(x[i : i + 1])[0].masked_fill(~active, -1e30).log_softmax(0)
        if labels == "expected":
            choices = [(c, log_p[c].exp().item()) for c in active.nonzero().flatten().tolist()]
        else:
            choices = [(int(y[i]) if labels == "true" else int(log_p.argmax()), 1.0)]
        for c, share in choices:
            gradient = torch.autograd.grad(
                log_p[c], list(theta.values()), retain_graph=True, allow_unused=True, materialize_grads=True
            )
            for name, g in zip(theta, gradient, strict=True):
                total[name] += share * g**2
    return total


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", encoders())
def test_any_encoder(name: str, labels: Labels) -> None:
    encoder = encoders()[name]
    net = Classifier(Sizes(30, 9, 2, UNITS, encoder=lambda *_: encoder), stream(0, "network")).double().eval()
    x = torch.rand(11, 30, generator=stream(0, "x"), dtype=torch.float64)
    y = torch.randint(2, (11,), generator=stream(0, "y"))
    active = mask([0, 1, 4])
    net.train()  # which must not matter
    with patch.object(fisher_module, "AT_ONCE", 4):
        got = fisher_sum(net, [(x[:7], y[:7]), (x[7:], y[7:])], active, labels)
    assert net.training
    assert all(p.grad is None for p in net.parameters())
    expected = one_at_a_time(net.eval(), x, y, active, labels)
    assert set(got) == set(expected)
    for parameter, squares in expected.items():
        torch.testing.assert_close(got[parameter], squares, rtol=1e-9, atol=1e-14, msg=f"{name} {parameter}")
        assert got[parameter].any() == ("unused" not in parameter)


@pytest.mark.parametrize(
    ("name", "by_themselves"),
    [
        ("conv", set()),
        ("no bias", set()),
        ("groups, stride, dilation", set()),
        ("frozen", set()),
        ("batch norm and dropout", {"encoder.2.weight", "encoder.2.bias"}),
        ("layer norm", {"encoder.1.weight", "encoder.1.bias"}),
    ],
)
def test_only_what_needs_it_is_done_sample_by_sample(name: str, by_themselves: set[str]) -> None:
    encoder, asked = encoders()[name], set[str]()
    one_by_one = fisher_module._one_by_one

    def watched(*arguments: Any) -> Iterator[tuple[str, Tensor]]:
        asked.update(arguments[-1])
        return one_by_one(*arguments)

    net = Classifier(Sizes(30, 9, 2, UNITS, encoder=lambda *_: encoder), stream(0, "network"))
    with patch.object(fisher_module, "_one_by_one", watched):
        fisher_sum(net, [(torch.rand(5, 30), torch.zeros(5, dtype=torch.long))], mask([0, 1]), "true")
    assert asked == by_themselves
