"""The appendix's equations against loops over rows and units in float64, and at the limits of floating point."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from relive._util.seeds import stream
from relive.core.losses import QuadraticPenalty, cross_entropy, hard_targets, soft_targets
from relive.networks.feedback import latent
from relive.networks.head import masked
from relive.networks.likelihoods import reconstruction

logit = st.floats(-100, 100, allow_subnormal=False)


def random(*shape: int, seed: int = 0, scale: float = 3) -> Tensor:
    return torch.randn(*shape, generator=stream(seed, "test"), dtype=torch.float64) * scale


@st.composite
def masked_rows(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Logits (n, units) and active units, at least one in each row."""
    n, units = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    values = draw(st.lists(st.lists(logit, min_size=units, max_size=units), min_size=n, max_size=n))
    on = draw(st.lists(st.lists(st.booleans(), min_size=units, max_size=units), min_size=n, max_size=n))
    for row in on:
        row[draw(st.integers(0, units - 1))] = True
    return torch.tensor(values, dtype=torch.float64), torch.tensor(on)


def softmax_by_hand(row: list[float], on: list[bool], temperature: float) -> list[float]:
    top = max(v for v, a in zip(row, on, strict=True) if a)
    powers = [math.exp((v - top) / temperature) if a else 0.0 for v, a in zip(row, on, strict=True)]
    return [power / sum(powers) for power in powers]


@given(masked_rows(), st.sampled_from([1.0, 2.0, 5.0]))
def test_soft_targets(rows: tuple[Tensor, Tensor], temperature: float) -> None:
    logits, active = rows
    target = soft_targets(logits, active, temperature)
    by_hand = [softmax_by_hand(*row, temperature) for row in zip(logits.tolist(), active.tolist(), strict=True)]
    torch.testing.assert_close(target, torch.tensor(by_hand, dtype=torch.float64))
    assert not target[~active].any()  # exactly zero
    assert not soft_targets(logits.float(), active, temperature)[~active].any()


@given(masked_rows())
def test_hard_targets(rows: tuple[Tensor, Tensor]) -> None:
    logits, active = rows
    target = hard_targets(logits, active)
    for one_hot, row, on in zip(target.tolist(), logits.tolist(), active.tolist(), strict=True):
        best = max(v for v, a in zip(row, on, strict=True) if a)
        assert sorted(one_hot) == [0.0] * (len(row) - 1) + [1.0]
        chosen = one_hot.index(1.0)
        assert on[chosen]
        assert row[chosen] == best


@given(masked_rows(), st.sampled_from([1.0, 2.0]), st.integers(0, 99))
def test_cross_entropy(rows: tuple[Tensor, Tensor], temperature: float, seed: int) -> None:
    logits, active = rows
    target = soft_targets(random(*logits.shape, seed=seed), active, 1.0)
    n = len(logits)
    loss = cross_entropy(logits, target, active, torch.full((n,), temperature, dtype=torch.float64))
    assert loss.shape == (n,)
    for i in range(n):
        on = active[i].nonzero().flatten()
        log_p = F.log_softmax(logits[i, on] / temperature, 0)
        expected = -sum(float(y) * float(lp) for y, lp in zip(target[i, on], log_p, strict=True))
        assert float(loss[i]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_cross_entropy_with_one_hot_targets_is_the_classification_loss() -> None:
    logits, unit = random(6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
    everything = torch.ones(6, 5, dtype=torch.bool)
    loss = cross_entropy(logits, F.one_hot(unit, 5).double(), everything, torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(loss, F.cross_entropy(logits, unit, reduction="none"))


def test_each_row_has_a_temperature_of_its_own() -> None:
    logits, active = random(3, 4), torch.ones(3, 4, dtype=torch.bool)
    target, temperatures = soft_targets(random(3, 4, seed=1), active, 1.0), torch.tensor([1.0, 2.0, 5.0]).double()
    together = cross_entropy(logits, target, active, temperatures)
    alone = [cross_entropy(logits[i : i + 1], target[i : i + 1], active[:1], temperatures[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_zeros_for_new_classes_are_the_same_as_appending_them() -> None:
    """Class-IL: targets over the known units, zeros appended, against a mask over all future units."""
    teacher, student = random(5, 6), random(5, 6, seed=1)
    known = torch.tensor([True] * 2 + [False] * 4)
    active = torch.tensor([True] * 4 + [False] * 2).expand(5, 6)
    loss = cross_entropy(student, soft_targets(teacher, known, 2.0), active, torch.full((5,), 2.0).double())
    appended = torch.cat([(teacher[:, :2] / 2).softmax(1), torch.zeros(5, 2)], 1)
    expected = -(appended * F.log_softmax(student[:, :4] / 2, 1)).sum(1)
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("extreme", [100.0, -100.0, 1e4, -1e4])
def test_extreme_logits_stay_finite(dtype: torch.dtype, extreme: float) -> None:
    logits = torch.tensor([[extreme, -extreme, 0.0, extreme]], dtype=dtype, requires_grad=True)
    active = torch.tensor([[True, True, True, False]])
    for unit in range(3):
        target = F.one_hot(torch.tensor([unit]), 4).to(dtype)
        loss = cross_entropy(logits, target, active, torch.ones(1, dtype=dtype))
        (gradient,) = torch.autograd.grad(loss.sum(), logits)
        assert loss.isfinite().all()
        assert gradient.isfinite().all()
        assert gradient[0, 3] == 0
    x = torch.tensor([[0.0, 0.3, 1.0, 0.7]], dtype=dtype)
    loss = reconstruction(logits, x)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    expected = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    torch.testing.assert_close(loss, expected)
    assert gradient.isfinite().all()


def test_masked_leaves_the_input_alone() -> None:
    logits = random(2, 3)
    before = logits.clone()
    out = masked(logits, torch.tensor([True, False, True]))
    assert torch.equal(logits, before)
    assert torch.equal(out[:, [0, 2]], before[:, [0, 2]])


@given(st.integers(0, 99), st.integers(1, 4), st.integers(1, 8), st.sampled_from([1.0, 10.0]))
def test_reconstruction(seed: int, n: int, pixels: int, scale: float) -> None:
    logits = random(n, pixels, seed=seed, scale=scale).clamp(-30, 30).requires_grad_()
    x = torch.rand(n, pixels, generator=stream(seed, "x"), dtype=torch.float64)
    x[0, 0] = seed % 2
    loss = reconstruction(logits, x)
    for i in range(n):
        expected = 0.0
        for value, p in zip(logits[i].tolist(), x[i].tolist(), strict=True):
            on, off = 1 / (1 + math.exp(-value)), 1 / (1 + math.exp(value))
            expected -= p * math.log(on) + (1 - p) * math.log(off)
        assert float(loss[i].detach()) == pytest.approx(expected, rel=1e-9)
    plain_loss = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    weights = random(n, seed=seed + 1)
    ours, theirs = (torch.autograd.grad(weights @ rows, logits)[0] for rows in (loss, plain_loss))
    torch.testing.assert_close(ours, theirs)


def test_reconstruction_gradcheck() -> None:
    x = torch.rand(3, 4, generator=stream(0, "x"), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda logits: reconstruction(logits, x), (random(3, 4).requires_grad_(),))


def test_latent() -> None:
    mu, logvar = random(4, 5, scale=1), random(4, 5, seed=1, scale=1)
    got = latent(mu, logvar)
    for i in range(4):
        expected = sum(
            -0.5 * (1 + lv - m**2 - math.exp(lv)) for m, lv in zip(mu[i].tolist(), logvar[i].tolist(), strict=True)
        )
        assert float(got[i]) == pytest.approx(expected)
    q = torch.distributions.Normal(mu, (logvar / 2).exp(), validate_args=False)
    p = torch.distributions.Normal(torch.zeros(()).double(), torch.ones(()).double(), validate_args=False)
    torch.testing.assert_close(got, torch.distributions.kl_divergence(q, p).sum(1))
    assert not latent(torch.zeros(2, 3), torch.zeros(2, 3)).any()  # the prior itself costs nothing


@pytest.mark.parametrize("with_offsets", [False, True])
def test_quadratic_penalty(with_offsets: bool) -> None:
    shapes = [(3, 2), (2,), (4,)]
    theta, strengths, anchors, offsets, start = (
        [random(*shape, seed=10 * k + i).float() for i, shape in enumerate(shapes)] for k in range(5)
    )
    penalty = QuadraticPenalty(strengths, anchors, offsets if with_offsets else None)
    for _ in range(2):  # the second time in the same memory
        gradient = [g.clone() for g in start]
        penalty.add_gradient(theta, 7.0, gradient)
        for tensors in zip(gradient, start, theta, strengths, anchors, offsets, strict=True):
            for got, old, t, s, anchor, offset in zip(*(x.flatten().double().tolist() for x in tensors), strict=True):
                held_at = anchor + offset if with_offsets else anchor
                assert got == pytest.approx(old + 14 * s * (t - held_at), rel=1e-5, abs=1e-5)
