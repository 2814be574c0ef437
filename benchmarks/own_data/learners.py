"""Every learner of the benchmark. To add one, add a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from benchmarks.own_data.incremental import OneByOne, PartialFit, of_linear, of_naive_bayes, of_network
from benchmarks.own_data.learner import Learner, Scaled, Setting
from benchmarks.own_data.own import Own
from benchmarks.own_data.sums import Gaussians, NearestMean, RandomConvolutions, RandomFeatures, Ridge
from benchmarks.own_data.whole import AllAtOnce, of_sklearn, same_network

OWN, SUMS, SKLEARN, RIVER, WHOLE = "relive", "sums, NumPy", "scikit-learn", "River", "everything at once"
SHRINKAGE = {"naive Bayes": 0.3, "LDA": 0.1, "Gaussians": 0.1}  # chosen by `tune`, as are the next two
STRENGTH = {"features": 100.0, "convolutions": 0.01}
PASSES = {"linear": 20, "network": 20}  # the network makes as many as relive's methods


@dataclass(frozen=True)
class Entry:
    """A learner in the catalogue.

    Attributes
    ----------
    make
        Makes one.
    family
        The library or approach it belongs to.
    keeps_data
        Whether it stores samples.
    pictures_only
        Whether it needs the shape of a picture.
    most
        At most so many training and test samples, because it is slow.
    """

    make: Callable[[Setting], Learner]
    family: str
    keeps_data: bool = False
    pictures_only: bool = False
    most: int | None = None


def own(method: str, keeps_data: bool = False) -> Entry:
    """Return one of relive's methods, with its default settings."""
    return Entry(lambda setting: Own(setting, method, keeps_data), OWN, keeps_data=keeps_data)


def sums(make: Callable[[Setting], Learner], pictures_only: bool = False) -> Entry:
    """Return a learner that keeps sums of scaled inputs."""
    return Entry(lambda setting: Scaled(make(setting)), SUMS, pictures_only=pictures_only)


def partial_fit(make: Callable[[int], Any], passes: int, numbers: Callable[[Any], int]) -> Entry:
    """Return a learner of scikit-learn, made with a seed."""
    return Entry(lambda setting: Scaled(PartialFit(make(setting.seed), setting, passes, numbers)), SKLEARN)


def river(name: str, most: int, seeded: bool = True) -> Entry:
    """Return a learner of River by the name of its class, such as ``tree.HoeffdingTreeClassifier``."""

    def make(setting: Setting) -> Learner:
        from importlib import import_module  # of the extra "bench"

        module, kind = name.split(".")
        model = getattr(import_module(f"river.{module}"), kind)
        return Scaled(OneByOne(model(seed=setting.seed) if seeded else model()))

    return Entry(make, RIVER, most=most)


def whole(make: Callable[[int], Any], most: int | None = None) -> Entry:
    """Return a classifier of scikit-learn that is given all samples at once."""
    return Entry(lambda setting: AllAtOnce(of_sklearn(make(setting.seed))), WHOLE, keeps_data=True, most=most)


LEARNERS: dict[str, Entry] = {
    "auto": own("auto"),
    "analytic": own("analytic"),
    "slda": own("slda"),
    "ncm": own("ncm"),
    "rtf": own("rtf"),
    "bir": own("bir"),
    "generative-classifier": own("generative-classifier"),
    "dgr-distill": own("dgr-distill"),
    "pseudo-rehearsal": own("pseudo-rehearsal"),
    "si": own("si"),
    "ewc": own("ewc"),
    "none (fine-tuning)": own("none"),
    "er, 200 samples kept": own("er", keeps_data=True),
    "nearest class mean": sums(lambda _: NearestMean()),
    "naive Bayes": sums(lambda _: Gaussians(diagonal=True, shrinkage=SHRINKAGE["naive Bayes"])),
    "streaming LDA": sums(lambda _: Gaussians(shared=True, shrinkage=SHRINKAGE["LDA"])),
    "a Gaussian per class": sums(lambda _: Gaussians(shrinkage=SHRINKAGE["Gaussians"])),
    "random features + ridge": sums(lambda setting: Ridge(RandomFeatures(setting), STRENGTH["features"])),
    "random convolutions + ridge": sums(
        lambda setting: Ridge(RandomConvolutions(setting), STRENGTH["convolutions"]), pictures_only=True
    ),
    "GaussianNB": partial_fit(lambda seed: GaussianNB(), 1, of_naive_bayes),
    "SGDClassifier, log loss": partial_fit(
        lambda seed: SGDClassifier(loss="log_loss", random_state=seed), PASSES["linear"], of_linear
    ),
    "Perceptron": partial_fit(lambda seed: Perceptron(random_state=seed), PASSES["linear"], of_linear),
    "passive-aggressive": partial_fit(  # what scikit-learn 1.8 has for PassiveAggressiveClassifier
        lambda seed: SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, random_state=seed),
        PASSES["linear"],
        of_linear,
    ),
    "MLPClassifier": partial_fit(
        lambda seed: MLPClassifier((400, 400), random_state=seed), PASSES["network"], of_network
    ),
    "River GaussianNB": river("naive_bayes.GaussianNB", 10000, seeded=False),
    "River softmax regression": river("linear_model.SoftmaxRegression", 10000, seeded=False),
    "River Hoeffding tree": river("tree.HoeffdingTreeClassifier", 10000, seeded=False),
    "River adaptive random forest": river("forest.ARFClassifier", 10000),
    "everything at once: the same MLP": Entry(
        lambda setting: AllAtOnce(same_network(setting.seed), scale=False), WHOLE, keeps_data=True
    ),
    "everything at once: RandomForest": whole(lambda seed: RandomForestClassifier(random_state=seed)),
    "everything at once: HistGradientBoosting": whole(
        lambda seed: HistGradientBoostingClassifier(random_state=seed), most=20000
    ),
    "everything at once: SVC": whole(lambda seed: SVC(random_state=seed), most=20000),
}
