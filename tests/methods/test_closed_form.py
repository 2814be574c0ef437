"""Closed forms against explicit computations on all data at once, and independence of the order of samples."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from relive._util.seeds import stream
from relive.core.learner import Learner
from relive.core.scenarios import scenario_of
from relive.data.tasks import Examples, Task
from relive.methods import make_method, ridge
from relive.methods.closed_form import ClosedForm
from relive.methods.ridge import best_fit, fit
from relive.methods.scaled import Scaled
from relive.methods.slda import linear_discriminant
from relive.methods.sums import Sums, half, whole
from relive.networks.pictures import Picture
from relive.networks.random_features import ConvolutionalFeatures
from tests import plain

N_INPUTS = 5
METHODS = ["ncm", "slda", "analytic", "discriminant"]


def samples(n: int = 120, n_classes: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Correlated normal samples around a mean per class, classes of different sizes."""
    rng = stream(seed, "samples")
    label = (torch.rand(n, generator=rng) ** 1.5 * n_classes).long()
    label[:n_classes] = torch.arange(n_classes)
    mix = torch.randn(N_INPUTS, N_INPUTS, generator=rng)
    means = 2 * torch.randn(n_classes, N_INPUTS, generator=rng)
    return means[label] + torch.randn(n, N_INPUTS, generator=rng) @ mix, label


def task_of(x: Tensor, label: Tensor) -> Task:
    """Return a task of the classes that these samples have, sorted."""
    classes = sorted(set(label.tolist()))
    position = torch.tensor([classes.index(c) for c in label.tolist()])
    return Task(Examples(x, position), Examples(x, position), tuple(classes), tuple(map(str, classes)), (N_INPUTS,))


def taught(method: str, parts: Sequence[tuple[Tensor, Tensor]], scenario: str = "class", **settings: float) -> Learner:
    """Return a learner that has learned these samples, a task each, without feature scaling by the first one."""
    tasks = [task_of(*part) for part in parts]
    layout = scenario_of(scenario, [task.classes for task in tasks])
    learner = Learner(make_method(method, **settings), layout, N_INPUTS, hidden=20)
    learner.net.encoder.adapt = lambda x: None  # type: ignore[assignment]
    for k in range(len(tasks)):
        learner.learn(tasks[: k + 1], 7)
    return learner


def scores(learner: Learner, x: Tensor, task: int = 0) -> Tensor:
    """Return the log-probabilities of the classes, in the order of the classes, float64."""
    logits = learner.method.logits(learner.net, x, torch.full((len(x),), task)).double()
    classes = learner.scenario.classes
    units = {c: int(u) for k, ids in enumerate(classes) for c, u in zip(ids, learner.scenario.units(k), strict=True)}
    return logits[:, [units[c] for c in sorted(units)]].log_softmax(1)


def features(learner: Learner, x: Tensor) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return learner.net.encoder(x).double().numpy()  # type: ignore[no-any-return]


def test_nearest_mean_is_the_nearest_mean() -> None:
    x, label = samples()
    learner = taught("ncm", [(x, label)])
    means = torch.stack([x[label == c].double().mean(0) for c in range(4)])
    nearest = torch.cdist(x.double(), means).argmin(1)
    assert torch.equal(scores(learner, x).argmax(1), nearest)
    assert 0.5 < (nearest == label).double().mean() < 1, "a problem that is neither trivial nor unsolvable"


@pytest.mark.parametrize("shrinkage", [0.01, 0.3, 0.9])
def test_slda_is_bayes_rule_with_a_shrunken_covariance(shrinkage: float) -> None:
    x, label = samples()
    found = scores(taught("slda", [(x, label)], shrinkage=shrinkage), x)
    data, y = x.double().numpy(), label.numpy()
    within = sum(np.cov(data[y == c].T, bias=True) * (y == c).sum() for c in range(4)) / len(y)
    target = np.diag(np.cov(data.T, bias=True).diagonal())  # of all samples: the scale of each feature
    shrunk = within + shrinkage / (1 - shrinkage) * target
    log_p = np.stack(
        [multivariate_normal(data[y == c].mean(0), shrunk).logpdf(data) + np.log((y == c).mean()) for c in range(4)], 1
    )
    expected = torch.from_numpy(log_p).log_softmax(1)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0])
def test_analytic_is_ridge_regression_on_the_features(strength: float) -> None:
    x, label = samples()
    learner = taught("analytic", [(x, label)], ridge=strength, numbers=4000)
    h = features(learner, x)
    z = (h - h.mean(0)) / np.maximum(h.std(0), 1e-6 * h.std(0).max())
    Y = np.eye(4)[label.numpy()]
    n, d = z.shape
    # least squares with rows √(nλ) · I added to the features, and zeros to the targets
    rows = np.vstack([z, np.sqrt(n * strength) * np.eye(d)])
    W = np.linalg.lstsq(rows, np.vstack([Y - Y.mean(0), np.zeros((d, 4))]), rcond=None)[0]
    fitted = z @ W + Y.mean(0)
    # the penalised residual, as a share of the targets' variance, and never below the floor
    residual = (((Y - fitted) ** 2).sum() + n * strength * (W**2).sum()) / ((Y - Y.mean(0)) ** 2).sum()
    variance = (residual + ridge.FLOOR) * ((Y - Y.mean(0)) ** 2).sum() / n / 4
    expected = torch.from_numpy(fitted / variance).log_softmax(1)
    torch.testing.assert_close(scores(learner, x), expected, rtol=1e-3, atol=1e-3)


def test_discriminant_adds_a_quarter_of_a_gaussian_per_class() -> None:
    x, label = samples()
    learner = taught("discriminant", [(x, label)], numbers=5000)
    expected = linear_and_gaussian(features(learner, x), label, N_INPUTS, weight=0.25)
    torch.testing.assert_close(scores(learner, x), expected, rtol=1e-3, atol=1e-3)


def test_on_the_axes_of_wide_inputs_it_is_half_of_one() -> None:
    narrow, label = samples(400)
    x = narrow @ torch.randn(N_INPUTS, 600, generator=stream(0, "wide")) + torch.randn(
        400, 600, generator=stream(1, "wide")
    )
    learner = Learner(make_method("discriminant", numbers=2.5e5), scenario_of("class", [range(4)]), 600)
    learner.learn([task_of(x, label)], 1)
    h = features(learner, x)
    assert 100 < h.shape[1] < 400
    expected = linear_and_gaussian(h, label, 100, weight=0.5)
    torch.testing.assert_close(scores(learner, x), expected, rtol=1e-2, atol=1e-2)


def linear_and_gaussian(
    h: np.ndarray[tuple[int, int], np.dtype[np.float64]], label: Tensor, p: int, weight: float
) -> Tensor:
    """Return the log-probabilities of four classes, with Gaussians of the first p features."""
    y = label.numpy()
    z, n = h[:, :p], len(y)
    own = [np.cov(z[y == c].T, bias=True) for c in range(4)]
    sizes = [(y == c).sum() for c in range(4)]
    pooled = sum(size * cov for size, cov in zip(sizes, own, strict=True)) / n
    floor = 0.01 * pooled.diagonal().mean() * np.eye(p)
    gaussian = [
        multivariate_normal(z[y == c].mean(0), (sizes[c] * own[c] + p * pooled) / (sizes[c] + p) + floor).logpdf(z)
        + np.log(sizes[c] / n)
        for c in range(4)
    ]
    sums = sums_of(torch.from_numpy(h).float(), label, 4)
    weights, bias = linear_discriminant(Scaled.of(sums), best_fit(Scaled.of(sums))[0])
    linear = torch.from_numpy(h) @ weights.T + bias
    both = linear.log_softmax(1) + weight * torch.from_numpy(np.stack(gaussian, 1)).log_softmax(1)
    return both.log_softmax(1)


def test_on_pictures_it_is_ridge_regression() -> None:
    tasks = plain.split_tasks()
    pair = []
    for name in ("analytic", "discriminant"):
        layout = scenario_of("class", [task.classes for task in tasks])
        pair.append(Learner(make_method(name, numbers=1e5), layout, 16, shape=(4, 4), encoder=large_pictures))
    for learner in pair:
        learner.learn(tasks[:1], 1)
        learner.learn(tasks[:2], 1)
    x = tasks[0].test.inputs(slice(None))
    torch.testing.assert_close(*(learner.logits(x, 0) for learner in pair), rtol=1e-4, atol=1e-4)


def large_pictures(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> ConvolutionalFeatures:
    return ConvolutionalFeatures(Picture(1, 4, 4), 5, False, rng)


def test_the_evidence_is_the_marginal_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the density of the targets, whose covariance is computed sample by sample; two classes."""
    monkeypatch.setattr(ridge, "FLOOR", 0.0)
    rng = stream(0, "evidence")
    x = torch.randn(40, N_INPUTS, generator=rng)
    label = (x[:, 0] + 1.5 * torch.randn(40, generator=rng) > 0).long()  # mostly noise
    sums = sums_of(x, label, 2)
    z = (x.double() - x.double().mean(0)) / x.double().std(0, correction=0)
    y = label.double() - label.double().mean()
    n, found, expected = len(y), [], []
    for strength in (1e-3, 1e-2, 0.1, 1.0, 10.0):
        found.append(fit(Scaled.of(sums), strength).misfit)
        K = torch.eye(n, dtype=torch.float64) + z @ z.T / (n * strength)
        best_variance = y @ torch.linalg.solve(K, y) / n  # the noise variance of maximum likelihood
        density = multivariate_normal(np.zeros(n), (best_variance * K).numpy()).logpdf(y.numpy())
        expected.append(-2 * float(density))
    differences = np.diff(found) - np.diff(expected)
    assert np.abs(differences).max() < 1e-6
    assert 0 < int(np.argmin(expected)) < 4, "neither end"
    monkeypatch.setattr(ridge, "MANY", np.inf)
    assert best_fit(Scaled.of(sums))[0] == pytest.approx(10.0 ** (np.argmin(expected) - 3), rel=3)


def test_cross_validation_is_the_error_of_leaving_out_with_an_even_leverage() -> None:
    """Against residuals and leverages computed sample by sample; it is the criterion with many samples."""
    rng = stream(0, "cross-validation")
    x = torch.randn(200, N_INPUTS, generator=rng)
    label = (x[:, 0] + 1.5 * torch.randn(200, generator=rng) > 0).long()
    sums = sums_of(x, label, 2)
    z = (x.double() - x.double().mean(0)) / x.double().std(0, correction=0)
    Y = torch.eye(2, dtype=torch.float64)[label]
    n, errors = len(z), {}
    for strength in (1e-3, 1e-2, 0.1, 1.0):
        hat = z @ torch.linalg.inv(z.T @ z + n * strength * torch.eye(N_INPUTS)) @ z.T + 1 / n  # with an intercept
        mean_leverage = float(hat.diagonal().mean())
        errors[strength] = float(((Y - hat @ Y) / (1 - mean_leverage)).square().sum()) / n
        assert fit(Scaled.of(sums), strength).error == pytest.approx(errors[strength], rel=1e-9)
    assert best_fit(Scaled.of(sums))[1].error <= min(errors.values())


def sums_of(x: Tensor, label: Tensor, n_classes: int) -> Sums:
    zeros = torch.zeros(n_classes, x.shape[1], dtype=torch.float64)
    sums = Sums(zeros[:, 0].clone(), zeros, torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64))
    sums.add(x.double(), label)
    return sums


@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("method", METHODS)
def test_neither_the_order_of_tasks_nor_of_samples_matters(method: str, scenario: str) -> None:
    x, label = samples()
    halves = [(x[rows], label[rows]) for rows in (label < 2, label >= 2)]
    rng = stream(1, "order")
    shuffled = [(a[order], b[order]) for a, b in halves for order in [torch.randperm(len(a), generator=rng)]]
    one, other = taught(method, halves, scenario), taught(method, shuffled[::-1], scenario)
    for k in (0, 1) if scenario == "task" else (0,):
        torch.testing.assert_close(scores(one, x, k), scores(other, x, 1 - k), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_any_division_into_tasks_equals_one_fit(method: str) -> None:
    """One class at a time, classes that return, and one sample at a time."""
    x, label = samples()
    whole = scores(taught(method, [(x, label)]), x)
    by_class = [(x[label == c], label[label == c]) for c in (2, 0, 3, 1)]
    again = [(x[i::7], label[i::7]) for i in range(7)]
    single = [(x[i : i + 1], label[i : i + 1]) for i in range(len(x))]
    for parts in (by_class, again, single):
        torch.testing.assert_close(scores(taught(method, parts), x), whole, rtol=1e-4, atol=1e-4)


def test_in_domain_il_a_class_may_look_different_in_every_domain() -> None:
    """Two domains with swapped classes: one mean per class could not separate them."""
    rng = stream(0, "domains")
    label = torch.arange(200) % 2
    sign = 2.0 * label - 1
    parts = []
    for k, turned in enumerate((1.0, -1.0)):
        x = 0.3 * torch.randn(200, N_INPUTS, generator=rng)
        x[:, 0] += turned * sign
        x[:, 1] += 4.0 * k
        parts.append((x, label))
    learner = taught("slda", parts, "domain")
    for x, label in parts:
        assert (learner.predict(x, 0) == label).double().mean() > 0.99


@pytest.mark.parametrize(
    ("numbers", "shape"), [(1e5, (8, 8)), (3e5, (28, 28)), (1.1e6, (28, 28)), (5e4, (20,)), (2e5, (600,))]
)
@pytest.mark.parametrize("name", ["analytic", "discriminant"])
def test_the_numbers_kept_are_no_more_than_allowed(name: str, numbers: float, shape: tuple[int, ...]) -> None:
    layout = scenario_of("class", [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)])
    method = make_method(name, numbers=numbers)
    learner = Learner(method, layout, int(np.prod(shape)), shape=shape)
    kept = method.stored_numbers([])
    assert 0.85 * numbers < kept <= numbers
    tensors = learner.state()
    in_file = sum(t.numel() for name, t in tensors.items() if name.startswith(("net.", "method.")))
    assert in_file == kept


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_made_before_anything_was_asked_answers_the_same(method: str) -> None:
    x, label = samples()
    learner = taught(method, [(x, label)])
    other = copy.deepcopy(learner)  # the output layer has not been solved for
    torch.testing.assert_close(scores(other, x), scores(learner, x), rtol=0, atol=0)


def test_what_is_stored_answers_at_once_and_goes_on() -> None:
    x, label = samples()
    halves = [(x[rows], label[rows]) for rows in (label < 2, label >= 2)]
    whole = taught("analytic", halves, numbers=4000)
    first = taught("analytic", halves[:1], numbers=4000)
    tasks = [task_of(*part) for part in halves]
    layout = scenario_of("class", [task.classes for task in tasks])
    other = Learner(make_method("analytic", numbers=4000), scenario_of("class", [tasks[0].classes]), N_INPUTS)
    other.load_state(first.state())
    assert isinstance(other.method, ClosedForm)
    torch.testing.assert_close(scores(other, x), scores(first, x), rtol=0, atol=0)
    other.grow(layout)
    other.learn(tasks, 5)
    assert all(torch.equal(t, other.state()[name]) for name, t in whole.state().items() if not name.startswith("rng"))


@pytest.mark.parametrize("n", [60, 600])
@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
def test_walking_down_the_valley_finds_the_best_of_all_strengths(n: int, noise: float) -> None:
    rng = torch.Generator().manual_seed(int(10 * noise))
    y = torch.arange(n) % 3
    h = torch.randn(3, 20, generator=rng, dtype=torch.float64)[y]
    h = h + noise * torch.randn(n, 20, generator=rng, dtype=torch.float64)
    sums = Sums(torch.zeros(3).double(), torch.zeros(3, 20).double(), torch.zeros(20, 20).double())
    sums.add(h, y)
    fits = {place: fit(Scaled.of(sums), 10.0**place) for place in np.arange(-6, 2.5, 0.5)}
    order = sorted(fits, key=lambda place: (fits[place].error, fits[place].misfit))
    assert np.log10(best_fit(Scaled.of(sums))[0]) == pytest.approx(order[0])


@pytest.mark.parametrize("d", [1, 63, 64, 65, 200])
def test_products_are_symmetric_to_the_last_bit(d: int) -> None:
    sums = Sums(torch.zeros(2).double(), torch.zeros(2, d).double(), torch.zeros(d, d).double())
    h = torch.randn(33, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    sums.add(h, torch.arange(33) % 2)
    assert sums.products is not None
    torch.testing.assert_close(sums.products, h.T @ h)
    assert torch.equal(sums.products, sums.products.T)
    assert torch.equal(whole(half(sums.products), d), sums.products)
