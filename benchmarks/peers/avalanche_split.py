"""Split MNIST with Avalanche, as its user would write it: one function per method, and what they share.

``python -m benchmarks.peers.run lines`` counts the lines of this file that each method needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from avalanche.benchmarks import tensors_benchmark
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.models import MultiHeadClassifier, MultiTaskModule, SimpleMLP
from avalanche.training.plugins import EvaluationPlugin, GenerativeReplayPlugin
from avalanche.training.supervised import EWC, GenerativeReplay, LwF, Naive, SynapticIntelligence, VAETraining
from torch import Tensor, nn


class StopAfter(SupervisedPlugin):  # type: ignore[misc]
    """Ends a task after a number of iterations, also within an epoch."""

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations

    def after_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        if strategy.clock.train_exp_iterations + 1 == self.iterations:  # the clock ticks after the other plugins
            strategy.stop_training()


class MultiHeadMLP(MultiTaskModule):  # type: ignore[misc]
    """The network of Task-IL: a head of two units for each task."""

    def __init__(self) -> None:
        super().__init__()
        self.features = SimpleMLP(hidden_size=400, hidden_layers=2, drop_rate=0).features
        self.classifier = MultiHeadClassifier(400)

    def forward(self, x: Tensor, task_labels: Tensor | None) -> Any:
        return self.classifier(self.features(x.flatten(1)), task_labels)


class PaperVAE(nn.Module):
    """A generator with the paper's sizes: two hidden layers of 400 units each way, 100 latent variables."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU())
        self.latent = nn.Linear(400, 200)
        hidden = nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU()
        self.decoder = nn.Sequential(*hidden, nn.Linear(400, 784), nn.Sigmoid(), nn.Unflatten(1, (1, 28, 28)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, logvar = self.latent(self.encoder(x)).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)
        return self.decoder(z), mean, logvar

    @torch.no_grad()
    def generate(self, batch_size: int) -> Tensor:
        pictures: Tensor = self.decoder(torch.randn(batch_size, 100))
        return pictures


def paper_vae_loss(x: Tensor, output: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return reconstruction and latent term, averaged over rows."""
    decoded, mean, logvar = output
    reconstruction = nn.functional.binary_cross_entropy(decoded, x, reduction="sum")
    latent = -0.5 * torch.sum(1 + logvar - mean**2 - logvar.exp())
    return (reconstruction + latent) / len(x)


def stream_of(tasks: Sequence[Any], scenario: str, normalise: bool) -> Any:
    """Return relive's tasks as Avalanche's stream; with its own SplitMNIST, a user does not need this."""

    def tensors(rows: Any, task: Any) -> tuple[Tensor, Tensor]:
        x = rows.inputs(slice(None)).reshape(-1, 1, 28, 28)
        labels = rows.labels if scenario == "task" else torch.tensor(task.classes)[rows.labels]
        return (x - 0.1307) / 0.3081 if normalise else x, labels

    return tensors_benchmark(
        train_tensors=[tensors(task.train, task) for task in tasks],
        test_tensors=[tensors(task.test, task) for task in tasks],
        task_labels=list(range(len(tasks))) if scenario == "task" else [0] * len(tasks),
        complete_test_set_only=False,
    )


def single_head() -> nn.Module:
    """Return the network of Class-IL: all ten units exist, and are in the softmax, from the start."""
    model: nn.Module = SimpleMLP(num_classes=10, hidden_size=400, hidden_layers=2, drop_rate=0)
    return model


def common(model: nn.Module, iterations: int) -> dict[str, Any]:
    """Return the arguments that every strategy shares."""
    return {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.001),
        "criterion": nn.CrossEntropyLoss(),
        "train_mb_size": 128,
        "train_epochs": iterations,  # more than needed: StopAfter ends it
        "eval_mb_size": 1000,
        "plugins": [StopAfter(iterations)],
        "evaluator": EvaluationPlugin(accuracy_metrics(experience=True)),
    }


def naive(model: nn.Module, iterations: int) -> Any:
    return Naive(**common(model, iterations))


def ewc(model: nn.Module, iterations: int) -> Any:
    return EWC(**common(model, iterations), ewc_lambda=5000)


def ewc_strong(model: nn.Module, iterations: int) -> Any:
    return EWC(**common(model, iterations), ewc_lambda=1e9)


def si(model: nn.Module, iterations: int) -> Any:
    return SynapticIntelligence(**common(model, iterations), si_lambda=0.2, eps=0.1)


def si_copied(model: nn.Module, iterations: int) -> Any:
    """Return SI with copied weights: on a CPU, Avalanche's are views of the parameters, which never seem to change."""
    from avalanche.training.plugins import SynapticIntelligencePlugin as Plugin

    def extract_weights(model: nn.Module, target: dict[str, Any], excluded: set[str]) -> None:
        for name, parameter in Plugin.allowed_parameters(model, excluded):
            target[name].data = parameter.detach().flatten().clone()

    Plugin.extract_weights = staticmethod(extract_weights)
    return si(model, iterations)


def lwf(model: nn.Module, iterations: int) -> Any:
    return LwF(**common(model, iterations), alpha=1, temperature=2)


def lwf_strong(model: nn.Module, iterations: int) -> Any:
    return LwF(**common(model, iterations), alpha=2, temperature=2)


def generative_replay(model: nn.Module, iterations: int) -> Any:
    strategy = GenerativeReplay(**common(model, iterations))
    strategy.generator_strategy.plugins.insert(0, StopAfter(iterations))
    return strategy


def generative_replay_paper(model: nn.Module, iterations: int) -> Any:
    vae = PaperVAE()
    generator = VAETraining(
        model=vae,
        optimizer=torch.optim.Adam(vae.parameters(), lr=0.001),
        criterion=paper_vae_loss,
        train_mb_size=128,
        train_epochs=iterations,
        plugins=[StopAfter(iterations), GenerativeReplayPlugin(increasing_replay_size=True)],
        evaluator=EvaluationPlugin(),
    )
    return GenerativeReplay(**common(model, iterations), generator_strategy=generator, increasing_replay_size=True)


def learn(strategy: Any, stream: Any) -> list[float]:
    """Learn task after task, and return the final accuracy on each."""
    for experience in stream.train_stream:
        strategy.train(experience, drop_last=True)
    found = strategy.eval(stream.test_stream)
    return [value for name, value in sorted(found.items()) if name.startswith("Top1_Acc_Exp")]
