"""The likelihoods against torch's distributions, and their samples."""

from __future__ import annotations

import torch

from relive._util.seeds import stream
from relive.networks.likelihoods import LOG_VARIANCES, Bernoulli, Gaussian


def test_gaussian_rows_and_draws() -> None:
    likelihood, n = Gaussian(3), 20_000
    assert torch.allclose(likelihood.logvar, torch.zeros(3), atol=1e-6)  # a standard deviation of 1 at first
    with torch.no_grad():
        likelihood.place.copy_(torch.tensor([-50.0, 0.0, 50.0]))
    low, high = LOG_VARIANCES
    expected = torch.tensor([low, (low + high) / 2, high])
    torch.testing.assert_close(likelihood.logvar.detach(), expected)
    mean, x = (torch.randn(n, 3, generator=stream(0, name)) for name in ("mean", "x"))
    normal = torch.distributions.Normal(mean, (expected / 2).exp(), validate_args=False)
    constant = 1.5 * torch.log(torch.tensor(2 * torch.pi))
    log_p = normal.log_prob(x).sum(1)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(likelihood.rows(mean, x).detach(), -log_p - constant)
    drawn = likelihood.draw(mean, stream(0, "noise")).detach() - mean
    torch.testing.assert_close(drawn.std(0), (expected / 2).exp(), rtol=0.03, atol=0)
    assert (drawn.mean(0).abs() < 0.05 * (expected / 2).exp()).all()


def test_bernoulli_draws_the_probability_itself() -> None:
    outputs = torch.tensor([[-100.0, 0.0, 2.0]])
    torch.testing.assert_close(Bernoulli(3).draw(outputs, stream(0, "noise")), outputs.sigmoid())
