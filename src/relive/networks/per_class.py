r"""A VAE for every class, and nothing else: the class whose VAE finds an input most likely wins.

.. math:: p(x|c) \approx \frac1S \sum_{s=1}^S \frac{p(x|z_s, c) \, p(z_s)}{q(z_s|x, c)}, \qquad z_s \sim q(z|x, c)
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor, nn

from relive._util.seeds import fork, stream
from relive.networks.conditional import check_met, evenly, left, log_normal
from relive.networks.encoders import Sizes
from relive.networks.feedback import latent
from relive.networks.likelihoods import Likelihood
from relive.networks.models import VAE, GenerativeClassifier


class VAEPerClass(GenerativeClassifier):
    """Small VAEs that share nothing.

    Parameters
    ----------
    sizes
        As for any network; VAEs replace the encoder and the output layer.
    n_classes
        How many VAEs; new classes add more, and existing ones do not change.
    hidden, latent
        Units in each hidden layer of a VAE, and its latent variables.
    rng
        The generator for weights.
    gone
        Numbers of forgotten classes, which are no longer generated.
    """

    met: Tensor

    def __init__(
        self, sizes: Sizes, n_classes: int, hidden: int, latent: int, rng: torch.Generator, gone: Collection[int] = ()
    ) -> None:
        nn.Module.__init__(self)  # without an encoder and an output layer
        self.gone = frozenset(gone)
        small = replace(sizes, hidden=hidden, latent=latent)
        self.vaes = nn.ModuleList(VAE(small, fork(rng)) for _ in range(n_classes))
        self.register_buffer("met", torch.tensor(0))  # how many of the classes have been learned

    def idle(self, units: int) -> int:
        return 0

    def check_state(self, state: dict[str, Tensor]) -> None:
        check_met(state["met"], len(self.vaes))

    def vae(self, number: int) -> VAE:
        """Return the VAE of a class."""
        found = self.vaes[number]
        assert isinstance(found, VAE)
        return found

    @property
    def n_met(self) -> int:
        """How many classes have been learned, at least in part."""
        return max(1, int(self.met.item()))

    def rows(self, number: int, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return the loss of a class's inputs under its VAE, minus the evidence lower bound: (n,)."""
        vae = self.vae(number)
        outputs, mu, logvar = vae.feedback(vae.encoder(x), rng)
        return vae.feedback.likelihood.rows(outputs, x) + latent(mu, logvar)

    def log_likelihood(self, x: Tensor, samples: int) -> Tensor:
        """Return the estimated log p(x|c), without its constant, for the learned classes: (n, classes).

        All inputs share the same noise, so that a prediction depends only on its input.
        """
        rng, columns = stream(0, "importance samples"), []
        for number in range(self.n_met):
            vae = self.vae(number)
            mu, logvar = vae.feedback.latent(vae.encoder(x)).chunk(2, dim=1)
            terms = []
            for epsilon in torch.randn(samples, 1, mu.shape[1], generator=rng).to(x.device):
                z = mu + (0.5 * logvar).exp() * epsilon
                log_p_x = -vae.feedback.likelihood.rows(vae.feedback.decode(z), x)
                zero = torch.zeros_like(z)
                terms.append(log_p_x + log_normal(z, zero, zero) - log_normal(z, mu, logvar))
            columns.append(torch.stack(terms).logsumexp(0) - math.log(samples))
        return torch.stack(columns, dim=1)

    @torch.no_grad()
    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n generated inputs, evenly divided among the learned classes: (n, inputs)."""
        known = left(self.n_met, self.gone)
        counts = evenly(n, len(known), rng).bincount().tolist()  # the last may have none
        parts = zip(known.tolist(), counts, strict=False)
        return torch.cat([self.vae(number).feedback.sample(size, rng) for number, size in parts])

    @property
    def likelihood(self) -> Likelihood:
        return self.vae(0).feedback.likelihood
