r"""A VAE for every class, and nothing else: the answer is the class whose VAE finds an input most likely.

.. math:: p(x|c) \approx \frac1S \sum_{s=1}^S \frac{p(x|z_s, c) \, p(z_s)}{q(z_s|x, c)}, \qquad z_s \sim q(z|x, c)
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor, nn

from relive._util.seeds import fork, stream
from relive.networks.conditional import evenly, left, log_normal
from relive.networks.encoders import Sizes
from relive.networks.feedback import latent
from relive.networks.likelihoods import Likelihood
from relive.networks.models import VAE, GenerativeClassifier


class VAEPerClass(GenerativeClassifier):
    """Small VAEs that share nothing.

    Parameters
    ----------
    sizes
        As of any network; it has VAEs in place of one encoder and an output layer.
    n_classes
        How many VAEs; when more classes come, more are made, and those that are there stay as they are.
    hidden, latent
        Units in each hidden layer of a VAE, and its latent variables.
    rng
        What weights are drawn from.
    gone
        Numbers of classes that were forgotten, and are not generated any more.
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
        """Return the loss of inputs of a class to its VAE, minus the evidence lower bound: (n,)."""
        vae = self.vae(number)
        outputs, mu, logvar = vae.feedback(vae.encoder(x), rng)
        return vae.feedback.likelihood.rows(outputs, x) + latent(mu, logvar)

    def log_likelihood(self, x: Tensor, samples: int) -> Tensor:
        """Return the estimated log p(x|c), without its constant, for the classes learned: (n, classes).

        The same noise serves every input, so that an answer depends on nothing else.
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
        """Return n generated inputs, as many of each class that was learned as of any other: (n, inputs)."""
        known = left(self.n_met, self.gone)
        counts = evenly(n, len(known), rng).bincount().tolist()  # the last of them may have none
        parts = zip(known.tolist(), counts, strict=False)
        return torch.cat([self.vae(number).feedback.sample(size, rng) for number, size in parts])

    @property
    def likelihood(self) -> Likelihood:
        return self.vae(0).feedback.likelihood
