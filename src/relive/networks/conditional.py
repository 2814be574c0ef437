r"""A classifier with class-conditional feedback connections: each class has a prior in latent space, and gates.

.. math:: p(z) = \sum_c w_c \, N(z;\, \mu_c, \sigma_c^2) \qquad h \leftarrow \Big(\sum_c w_c \, g_c\Big) \odot h

w are a row's class weights: one-hot, or probabilities. μ and σ are learned, g is drawn once and fixed.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

from relive._util.errors import InputError
from relive._util.seeds import fork
from relive.networks.blocks import full_width
from relive.networks.encoders import Sizes
from relive.networks.feedback import make_feedback
from relive.networks.likelihoods import Likelihood
from relive.networks.models import GenerativeClassifier


def log_normal(z: Tensor, mu: Tensor, logvar: Tensor) -> Tensor:
    r"""Return :math:`\log N(z; \mu, \sigma^2)`, summed over the latent variables, which are the last dimension."""
    return -0.5 * (math.log(2 * math.pi) + logvar + (z - mu).square() * (-logvar).exp()).sum(-1)


def mixture_latent(z: Tensor, mu: Tensor, logvar: Tensor, weight: Tensor, means: Tensor, logvars: Tensor) -> Tensor:
    r"""Return :math:`\log q(z|x) - \log \sum_c w_c N(z; \mu_c, \sigma_c^2)`, the latent term for one drawn z: (n,).

    Parameters
    ----------
    z, mu, logvar
        (n, latent) the sample, and the encoder's distribution.
    weight
        (n, classes) a probability for every class.
    means, logvars
        (classes, latent) of the classes' priors.
    """
    of_class = log_normal(z.unsqueeze(1), means, logvars)  # (n, classes)
    return log_normal(z, mu, logvar) - (weight.log() + of_class).logsumexp(1)


class ConditionalClassifier(GenerativeClassifier):
    """The network of brain-inspired replay.

    Parameters
    ----------
    sizes
        As for any network.
    n_classes
        How many classes have their own prior and gates; more may come.
    gate
        The share of each gated layer's units that is switched off for a class.
    rng
        The generator for weights, priors and gates.
    gone
        Numbers of forgotten classes, which are no longer generated.
    """

    met: Tensor
    gates: Tensor

    def __init__(
        self, sizes: Sizes, n_classes: int, gate: float, rng: torch.Generator, gone: Collection[int] = ()
    ) -> None:
        super().__init__(sizes, rng)
        self.gone = frozenset(gone)
        self.feedback = make_feedback(sizes, self.encoder, self.n_features, rng)
        width = full_width(n_classes)  # in blocks, like output units
        self.n_idle = width - n_classes
        draw = fork(rng)  # class by class, so that later classes change nothing
        priors = torch.stack([torch.randn(2, sizes.latent, generator=draw) for _ in range(width)])
        self.means = nn.Parameter(priors[:, 0].contiguous())  # (classes, latent)
        self.logvars = nn.Parameter(priors[:, 1].contiguous())
        order = torch.rand(width, sum(self.feedback.gated), generator=fork(rng))
        gates = [
            (part.argsort(1).argsort(1) >= int(gate * part.shape[1])).float()
            for part in torch.split(order, self.feedback.gated, dim=1)
        ]
        self.register_buffer("gates", torch.cat(gates, dim=1) if gates and gate else torch.empty(width, 0))
        self.register_buffer("met", torch.tensor(0))  # how many of the classes have been learned

    def idle(self, units: int) -> int:
        return super().idle(units) + self.n_idle * 2 * self.feedback.n_latent

    def check_state(self, state: dict[str, Tensor]) -> None:
        check_met(state["met"], len(self.means))

    def answer(self, x: Tensor, weight: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (n, units), the reconstruction (n, inputs) and the latent term (n,) of inputs.

        ``weight`` has a probability for each of the first classes, (n, classes), which selects priors and gates.
        """
        h = self.encoder(x)
        z, mu, logvar = self.feedback.encode(h, rng)
        n = weight.shape[1]
        latent = mixture_latent(z, mu, logvar, weight, self.means[:n], self.logvars[:n])
        return self.head(h), self.feedback.decode(z, self._gates(weight @ self.gates[:n])), latent

    def _gates(self, gates: Tensor) -> tuple[Tensor, ...]:
        """Return the gates of each layer, (n, units) each; empty if nothing is gated."""
        return torch.split(gates, self.feedback.gated, dim=1) if gates.shape[1] else ()

    @torch.no_grad()
    def generate_classes(self, classes: Tensor, rng: torch.Generator) -> Tensor:
        """Return one input for each of these classes, (n, inputs)."""
        mu, logvar = self.means[classes], self.logvars[classes]
        z = mu + (0.5 * logvar).exp() * torch.randn(mu.shape, generator=rng).to(mu.device)
        return self.likelihood.draw(self.feedback.decode(z, self._gates(self.gates[classes])), rng)

    def generate(self, n: int, rng: torch.Generator) -> Tensor:
        """Return n generated inputs, evenly divided among the learned classes: (n, inputs)."""
        known = left(max(1, int(self.met.item())), self.gone)
        return self.generate_classes(known[evenly(n, len(known), rng)].to(self.met.device), rng)

    @property
    def likelihood(self) -> Likelihood:
        return self.feedback.likelihood


def check_met(met: Tensor, n_classes: int) -> None:
    """Refuse a number of learned classes that a network for so many cannot have."""
    if not 0 <= int(met) <= n_classes:
        raise InputError(f"met = {int(met)}: a network for {n_classes} classes cannot have learned so many")


def left(met: int, gone: Collection[int]) -> Tensor:
    """Return the numbers of the first classes that are not forgotten.

    >>> left(4, {1}).tolist()
    [0, 2, 3]
    """
    return torch.tensor([number for number in range(met) if number not in gone])


def evenly(n: int, kinds: int, rng: torch.Generator) -> Tensor:
    """Divide n rows among some kinds as evenly as possible, starting from a random one, and return the kind of each.

    >>> evenly(7, 3, torch.Generator().manual_seed(0)).bincount().tolist()
    [2, 2, 3]
    """
    return (torch.arange(n) + torch.randint(kinds, (), generator=rng)) % kinds
