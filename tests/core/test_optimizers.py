"""Adam against Kingma & Ba's algorithm in float64, and against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from relive._util.seeds import stream
from relive.core.optimizers import Adam
from tests import plain

SHAPES = [(40, 30), (40,), (16, 40), (16,), (3, 5)]


def test_against_the_algorithm_and_pytorch_s_own() -> None:
    rng = stream(0, "test")
    start = [torch.randn(shape, generator=rng) for shape in SHAPES]
    gradients = [[torch.randn(shape, generator=rng) * 10 ** (i - 3) for shape in SHAPES] for i in range(6)]
    ours = [p.clone().requires_grad_() for p in start]
    theirs = [p.clone().requires_grad_() for p in start]
    adam, optimizer = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, fused=True)
    for gradient in gradients:
        adam.step(gradient)
        for p, g in zip(theirs, gradient, strict=True):
            p.grad = g.clone()
        optimizer.step()
    for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        assert torch.equal(p, q)
        expected = plain.adam([gradient[i] for gradient in gradients], start[i], 0.01)
        torch.testing.assert_close(p.detach().double(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("epsilon_first", [False, True])
def test_where_epsilon_is_added(epsilon_first: bool) -> None:
    """Gradients as small as ε, so that it matters."""
    rng = stream(1, "test")
    gradients = [1e-8 * torch.randn(50, generator=rng) for _ in range(30)]
    theta = torch.zeros(50)
    adam = Adam([theta], 0.01, epsilon_first=epsilon_first)
    for gradient in gradients:
        adam.step([gradient])
    right, wrong = (
        plain.adam(gradients, torch.zeros(50), 0.01, epsilon_first=e) for e in (epsilon_first, not epsilon_first)
    )
    torch.testing.assert_close(theta.double(), right, rtol=1e-4, atol=1e-7)
    assert (theta.double() - wrong).abs().max() > 0.01
