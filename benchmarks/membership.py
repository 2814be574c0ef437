"""Who was learned from? Membership attacks on models, by method and by samples per class, for docs/privacy.md.

python -m benchmarks.membership run      # what is missing in reproduction/membership.json
python -m benchmarks.membership write    # the tables of docs/privacy.md

Of a data set, 2m samples per class are drawn. Each of several models learns a random half of them, two classes at a
time; an attacker, who has a model and a sample with its label, scores how likely the model has learned it:

answers     by the log-odds that the model gives the true label (Yeom et al. 2018)
compared    … less the mean that it has in the other models that did not learn the sample (Watson et al. 2022)
file        from what the file keeps: for sums by the leverage h(x)·P⁻¹h(x), for a generator by how well it
            reconstructs the sample, for class means by the distance to the mean

0.5 is guessing, 1 is certainty.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track
from sklearn.metrics import roc_auc_score

from benchmarks import stored
from benchmarks.common import ROOT
from benchmarks.own_data.courses import samples_of
from benchmarks.page import put
from relive import ContinualClassifier
from relive._util.seeds import stream
from relive._util.threads import threads
from relive.methods.closed_form import ClosedForm
from relive.networks.models import ReconstructingClassifier

Array = npt.NDArray[Any]
OUTPUT, PAGE = ROOT / "reproduction/membership.json", ROOT / "docs/privacy.md"
DATA = ("digits", "satellite", "docstrings")
SIZES = (2, 5, 20, 80)  # samples per class that a model learns
MODELS = {"rtf": 4}  # attacked models of this learner; of others:
MANY = 6
RECONSTRUCTIONS = 8  # of a sample, each with other noise
TINY = 1e-11  # eigenvalues below this share of the largest are rounding
LEARNERS: dict[str, dict[str, Any]] = {
    "auto (2 million numbers)": {},
    "auto, 30 thousand numbers": {"settings": {"numbers": 3e4}},
    "slda": {"method": "slda"},
    "slda, noise 0.03": {"method": "slda", "settings": {"noise": 0.03}},
    "slda, noise 0.3": {"method": "slda", "settings": {"noise": 0.3}},
    "ncm": {"method": "ncm"},
    "rtf": {"method": "rtf"},
}


@dataclass(frozen=True)
class Attacked:
    """The mean over models of accuracy on samples that were not learned, and of each attack's AUROC."""

    data: str
    learner: str
    per_class: int
    models: int
    accuracy: float
    answers: float
    compared: float
    file: float


def learned(X: Array, y: Array, **settings: Any) -> ContinualClassifier:
    """Return a model that learned two classes at a time."""
    model, classes = ContinualClassifier(**settings), np.unique(y)
    for k in range(0, len(classes), 2):
        rows = np.isin(y, classes[k : k + 2])
        model.partial_fit(X[rows], y[rows])
    return model


def by_answers(model: ContinualClassifier, X: Array, y: Array) -> Array:
    """Return the log-odds of the true label, (n,)."""
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)].clip(1e-12, 1 - 1e-7)
    odds: Array = np.log(p / (1 - p))
    return odds


@torch.no_grad()
def by_file(model: ContinualClassifier, X: Array, y: Array) -> Array:
    """Return the evidence in the file that a sample was learned, (n,)."""
    x, net, method = model.features_.inputs(X), model.learner_.net, model.learner_.method
    if isinstance(net, ReconstructingClassifier):
        answers = [net.answer(x, stream(k, "reconstructions")) for k in range(RECONSTRUCTIONS)]
        score: Array = -torch.stack([net.likelihood.rows(a.reconstruction, x) for a in answers]).sum(0).numpy()
        return score
    assert isinstance(method, ClosedForm)
    h = net.encoder(x).double()
    if method.sums.products is None:
        unit = {label: k for k, label in enumerate(model.labels_.tolist())}
        means = method.sums.means[[unit[label] for label in y.tolist()]]
        score = -(h - means).square().sum(1).numpy()
        return score
    variance, axes = np.linalg.eigh(method.sums.products.numpy())
    score = -((h.numpy() @ axes) ** 2 / np.maximum(variance, TINY * variance[-1])).sum(1)
    return score


def attack(data: str, learner: str, per_class: int, folder: Path) -> Attacked | None:
    """Train on several random halves, and attack each model; None where the classes are too small."""
    samples, random = samples_of(data, folder), np.random.default_rng(per_class)
    if np.bincount(samples.y).min() < 2 * per_class:
        return None
    pool = np.concatenate(
        [random.permutation(np.flatnonzero(samples.y == c))[: 2 * per_class] for c in np.unique(samples.y)]
    )
    X, y, n = samples.X[pool], samples.y[pool], MODELS.get(learner, MANY)
    member, odds, file, accuracy = np.zeros((n, len(y)), bool), np.zeros((n, len(y))), [], []
    for k in range(n):
        for c in np.unique(y):
            member[k, random.permutation(np.flatnonzero(y == c))[:per_class]] = True
        model = learned(X[member[k]], y[member[k]], **LEARNERS[learner])
        odds[k], out = by_answers(model, X, y), ~member[k]
        file.append(float(roc_auc_score(member[k], by_file(model, X, y))))
        accuracy.append(model.score(X[out], y[out]))
    answers = [float(roc_auc_score(member[k], odds[k])) for k in range(n)]
    compared = []
    for k in range(n):
        others = ~member & (np.arange(n) != k)[:, None]  # models that did not learn the sample
        known = others.any(0)
        usual = (odds * others).sum(0)[known] / others.sum(0)[known]
        compared.append(float(roc_auc_score(member[k, known], odds[k, known] - usual)))
    means = (round(float(np.mean(values)), 3) for values in (accuracy, answers, compared, file))
    return Attacked(data, learner, per_class, n, *means)


def run(options: argparse.Namespace) -> None:
    """Do what is missing."""
    found = read()
    done = {(a.data, a.learner, a.per_class) for a in found}
    keys = [(d, name, m) for name in LEARNERS for d in DATA for m in SIZES if (d, name, m) not in done]
    with threads(1):
        for key in track(keys, "attacking"):
            result = attack(*key, options.data)
            if result is not None:
                found.append(result)
                stored.write(OUTPUT, [asdict(a) for a in found])


def read() -> list[Attacked]:
    """Return what is stored."""
    return [Attacked(**values) for values in stored.read(OUTPUT, [])]


def table(found: list[Attacked]) -> str:
    """Return a table for each data set: accuracy, and the three attacks."""
    text = []
    for data in DATA:
        text += [f"**{data}**", "", "| learner | " + " | ".join(f"{m} per class" for m in SIZES) + " |"]
        text += ["| --- |" + " --- |" * len(SIZES)]
        for learner in LEARNERS:
            cells = {a.per_class: a for a in found if (a.data, a.learner) == (data, learner)}
            shown = [
                f"{100 * a.accuracy:.0f} %: {a.answers:.2f}, {a.compared:.2f}, {a.file:.2f}" if a else "–"
                for a in map(cells.get, SIZES)
            ]
            text.append(f"| {learner} | " + " | ".join(shown) + " |")
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    stored.commands(__doc__, run, lambda: put(PAGE, "attacks", table(read())))
