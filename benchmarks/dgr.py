"""Training time of Replay-through-Feedback over that of DGR+distill, and the ratio that operation counts predict.

``relive`` trains DGR's two networks in one loop, on the same rows. The 2018 code trained them in two, each drawing its
rows and generating its replay; here that is two learners whose times are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.common import Effort, Figure, Findings, in_turns, medians, milliseconds, subject
from benchmarks.floor import flop, products_of
from relive.core.batch import Batch, hard_rows
from relive.core.method import Method, Problem
from relive.methods.generative_replay import DGRDistill
from relive.networks import Classifier, ClassifierWithVAE
from relive.networks.feedback import latent
from relive.networks.likelihoods import reconstruction
from relive.report.style import PROTOCOL_TITLES


class _TrainsGenerator(ClassifierWithVAE):
    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        return self.vae.parameters(recurse)


class _TrainsMain(ClassifierWithVAE):
    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters(recurse)
        yield from self.head.parameters(recurse)


class GeneratorLoop(DGRDistill):
    """The loop that trains DGR's generator: it needs no targets."""

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        return _TrainsGenerator(problem.sizes, rng)

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if seen == 1:
            return None
        n_groups = len(self.problem.scenario.groups(seen - 1))
        n = n_groups * math.ceil(self.problem.batch_size / n_groups)
        zero = torch.zeros(n, dtype=torch.long)
        return hard_rows(self.teacher_.generate(n, rng), zero, self.problem.scenario.active(0, seen), zero)

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        assert isinstance(net, _TrainsGenerator)
        pixels, mu, logvar = net.vae.feedback(net.vae.encoder(batch.x), rng)
        loss: Tensor = batch.weight @ (reconstruction(pixels, batch.x) + latent(mu, logvar)) / batch.x.shape[1]
        return loss


class MainLoop(DGRDistill):
    """The loop that trains DGR's main model, on inputs of the generator."""

    def build(self, problem: Problem, rng: torch.Generator) -> Classifier:
        self.problem = problem
        return _TrainsMain(problem.sizes, rng)

    def loss(self, net: Classifier, batch: Batch, rng: torch.Generator) -> Tensor:
        return Method.loss(self, net, batch, rng)


def compare(protocol: str, rounds: int, size: int) -> dict[str, dict[str, float]]:
    """Return milliseconds and GFLOP per iteration of the last task, Class-IL."""
    methods: dict[str, str | Method] = {
        "RtF": "rtf",
        "DGR+distill": "dgr-distill",
        "generator's loop": GeneratorLoop(),
        "main model's loop": MainLoop(),
    }
    subjects = {name: subject(protocol, "class", method) for name, method in methods.items()}
    gflop = {name: flop(products_of(of)) / 1e9 for name, of in subjects.items()}
    times = milliseconds(medians(in_turns({name: of.block for name, of in subjects.items()}, rounds, size)))
    for numbers in (times, gflop):
        numbers["DGR+distill, two loops"] = numbers["generator's loop"] + numbers["main model's loop"]
    return {"milliseconds": times, "gflop": gflop}


def measure(effort: Effort) -> Findings:
    """Compare in both protocols."""
    found = Findings()
    for protocol in ("split", "permuted"):
        effort.say(PROTOCOL_TITLES[protocol])
        result = compare(protocol, effort.n(6, 1), effort.n(6, 3))
        found.data[protocol] = result
        times, gflop = result["milliseconds"], result["gflop"]
        for other in ("DGR+distill", "DGR+distill, two loops"):
            found.figures.append(
                Figure(
                    f"RtF over {other}, {PROTOCOL_TITLES[protocol]}",
                    times["RtF"] / times[other],
                    note=f"counted operations predict {gflop['RtF'] / gflop[other]:.2f}",
                )
            )
    return found
