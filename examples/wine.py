"""Classify wines by chemistry, one grower after another, without keeping old measurements.

The data ship with scikit-learn: 178 wines of three growers, 13 measurements each, in different units. They are not in
[0, 1], so the model standardises them and its generator is Gaussian. The first two growers are learned
together; the third comes later. Three ways to learn them: fine-tuning, which forgets; Replay-through-Feedback, the same
network with replay; and the method that relive chooses.

    python examples/wine.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from relive import ContinualClassifier

TASKS = {"first year": ["grower 0", "grower 1"], "second year": ["grower 2"]}


def main() -> None:
    """Learn both years with each method, and say what is remembered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only a few steps, to see that it works")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    wine = load_wine()
    growers = np.array([f"grower {c}" for c in wine.target])
    split = train_test_split(wine.data, growers, test_size=0.3, random_state=0, stratify=growers)

    for method in ("none", "auto", "rtf"):
        model = ContinualClassifier(method, hidden=100, latent=20, iterations=20 if quick else 500)
        learn(model, *split)
    print("\nWhat the last model replays, in the units of the measurements, beside the wines it learned from:")
    samples, labels = model.replay(2000)
    feature = wine.feature_names.index("proline")
    for grower in np.unique(growers):
        mine, real = samples[labels == grower, feature], split[0][split[2] == grower, feature]
        if len(mine):
            print(f"  {grower}: proline {spread(mine)}, really {spread(real)}")


def spread(values: Any) -> str:
    """Return mean and deviation."""
    return f"{values.mean():6.0f} ± {values.std():3.0f}"


def learn(model: ContinualClassifier, x: Any, x_test: Any, y: Any, y_test: Any) -> None:
    """Teach a model year after year, and print how well it knows the wines of each."""
    for year, growers in TASKS.items():
        rows = np.isin(y, growers)
        model.partial_fit(x[rows], y[rows], task=year)
    reason = f" ({model.choice_.reason})" if model.choice_.reason else ""
    print(f"\nmethod {model.choice_.method}{reason}")
    for year, growers in TASKS.items():
        rows = np.isin(y_test, growers)
        print(f"  wines of the {year}: {100 * model.score(x_test[rows], y_test[rows]):.1f} % right")
    for memory in model.report():
        if memory.kept is not None:
            print(f"  {memory.label}: about {100 * memory.kept:.0f} % kept, by its own account")


if __name__ == "__main__":
    main()
