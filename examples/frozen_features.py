"""Features of a frozen network as inputs of a classifier that keeps learning.

This is how to use the model on photographs: a pre-trained network that is never changed turns each image
into a few dozen numbers, and a ContinualClassifier with a Gaussian likelihood learns and replays these numbers instead
of pixels.

The frozen network here is only a stand-in: a small convolutional net, trained for a few seconds on the four
digits of the first task and nothing else, since this example downloads nothing. It has never seen the digits of the
later tasks. For real use, replace ``pretrained`` with a network trained on many images (torchvision, timm).

    python examples/frozen_features.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from relive import ContinualClassifier

TASKS = ([0, 1, 2, 3], [4, 5, 6], [7, 8, 9])


def pretrained(pictures: Tensor, labels: Tensor, steps: int) -> nn.Module:
    """Return a network that turns pictures (n, 1, 8, 8) into features (n, 48), trained on these few classes."""
    torch.manual_seed(0)
    features = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 48),
    )
    whole = nn.Sequential(features, nn.ReLU(), nn.Linear(48, int(labels.max()) + 1))
    optimizer = torch.optim.Adam(whole.parameters(), lr=0.001)
    for _ in range(steps):
        rows = torch.randint(len(labels), (64,))
        loss = nn.functional.cross_entropy(whole(pictures[rows]), labels[rows])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return features.eval()


def main() -> None:
    """Learn ten digits in three tasks, from frozen features and, to compare, from pixels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only a few steps, to see that it works")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x / 16, y, test_size=0.25, random_state=0, stratify=y)

    first = np.isin(y, TASKS[0])
    frozen = pretrained(as_pictures(x[first]), torch.from_numpy(y[first]), steps=20 if quick else 300)

    def features(data: Any) -> Any:
        with torch.no_grad():
            return frozen(as_pictures(data)).numpy()

    iterations = 20 if quick else 500
    print("                   " + "".join(f"  digits {min(task)}-{max(task)}" for task in TASKS))
    for method in ("none", "rtf"):
        model = ContinualClassifier(method, likelihood="gaussian", hidden=200, latent=50, iterations=iterations)
        learn(model, f"features, {method}", features(x), y, features(x_test), y_test)
    model = ContinualClassifier(hidden=200, latent=50, iterations=iterations)
    learn(model, "pixels, rtf", x, y, x_test, y_test)


def as_pictures(data: Any) -> Tensor:
    """Return rows of 64 numbers as pictures."""
    return torch.from_numpy(data).float().reshape(-1, 1, 8, 8)


def learn(model: ContinualClassifier, name: str, x: Any, y: Any, x_test: Any, y_test: Any) -> None:
    """Teach a model task after task, and print how well it knows each in the end."""
    for task in TASKS:
        rows = np.isin(y, task)
        model.partial_fit(x[rows], y[rows])
    scores = [model.score(x_test[rows], y_test[rows]) for rows in (np.isin(y_test, task) for task in TASKS)]
    print(f"{name:19}" + "".join(f"{100 * score:10.1f} %" for score in scores), flush=True)


if __name__ == "__main__":
    main()
