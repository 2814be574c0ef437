"""Your own network in your own file: convolutions with batch normalisation and dropout.

    relive run --encoder examples/own_network.py:make --dataset digits --iters 300
    relive compare --encoder examples/own_network.py:make --dataset digits --iters 300 --method lwf --method rtf

It also provides a decoder, for methods with generative replay.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """From rows of pixels to features; any module will do that returns (n, features)."""

    def __init__(self, height: int, width: int, hidden: int) -> None:
        super().__init__()
        self.height, self.width = height, width
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(16 * (height // 2) * (width // 2), hidden),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x.reshape(len(x), 1, self.height, self.width))
        return features

    def make_decoder(self, latent: int, rng: torch.Generator) -> nn.Module:
        """Say how a generative method is to draw pictures; without this it uses two hidden layers."""
        return nn.Sequential(nn.Linear(latent, 200), nn.ReLU(), nn.Linear(200, self.height * self.width))


def make(shape: tuple[int, ...], hidden: int, rng: torch.Generator) -> nn.Module:
    """Return a new network: this is what --encoder names."""
    height, width = shape
    return Network(height, width, hidden)


if __name__ == "__main__":
    from relive import make_spec, run

    iterations = 20 if "--quick" in sys.argv else 100
    for method in ("none", "lwf", "rtf"):
        spec = make_spec("split", "class", method, dataset="digits", encoder=f"{__file__}:make", iters=iterations)
        print(f"{method:<6} {100 * run(spec).result.average_accuracy:.1f} %")
