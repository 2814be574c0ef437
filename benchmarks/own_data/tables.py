"""Tables and pictures that come with scikit-learn, with Debian's ``r-cran-mlbench``, and MNIST and Fashion-MNIST."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.own_data.samples import Array, Samples, checked
from relive import load_data

MLBENCH = Path("/usr/lib/R/site-library/mlbench/data")  # apt-get install r-cran-mlbench
SHA256 = {
    "BreastCancer": "1fcf1b82128c287b2777005a93a2b76fdb4d6749ed6df05231f85953f1fc7c2b",
    "DNA": "df941ad89a49f705a29bf38e52c91dc34029539cedb13fa24f803f1224278c9e",
    "Glass": "dd6d25227d9b49c30a4de04566bec1a2877e790b7690544ad848d847144f32b7",
    "HouseVotes84": "18318b91a4b1dfaa2d1f9ff915aff018c2bb3140386073bfc02136fbf8e232b7",
    "Ionosphere": "1e72974db40749e025434dbb45c815c826d3cce7c1b324fd07ee89aee44e08b7",
    "LetterRecognition": "967a1a3e10b548d7269cbe50182bcecd6365cc58ea07638bbc34c51f17f34f1d",
    "PimaIndiansDiabetes": "fc134e041577d3ff2b784e1610b6fbbe165f815abc83652ba77a28f4bccb89ec",
    "Satellite": "29f8cf9bb1bc51b769d694c9caf740fd1c36ed6a7c87603edf5985962e330f64",
    "Shuttle": "5b1db218b76a47c83f575f1ff38d7a7d36e569b0e27d8bf4aa92eae6c0bcb826",
    "Sonar": "e75dbab91efeba53ff00d13281977619a9e584bd2ccff48550e8a252f7c49cd4",
    "Soybean": "0f879952da961c845724bebecca44cd57ebbc60f22f7b3c0b6bf72812aafe842",
    "Vehicle": "ea993a1fe72b2611a609101aa6ebee43b6a9dd07c329c9acd1a184ba971a2710",
    "Vowel": "6577f9ca304153797ec7621d79020b010d160c425da2007639b9e6a2b23fb127",
    "Zoo": "aaeb45ab999a580252ebbde20efc085692080dc38a1446d846d263832578a6a0",
}


def from_sklearn(load: Callable[[], Any]) -> Samples:
    """Return a table that comes with scikit-learn, as it is."""
    bunch = load()
    return Samples(np.asarray(bunch.data, dtype=np.float64), bunch.target.astype(np.int64))


def digits() -> Samples:
    """Return scikit-learn's digits, from 0 to 16, as numbers in [0, 1]."""
    bunch = load_digits()
    return Samples(bunch.data / 16, bunch.target.astype(np.int64), shape=(8, 8))


def pixels(name: str) -> Samples:
    """Return MNIST or Fashion-MNIST as bytes, with its own test set."""
    data = load_data(name, quiet=True)
    train, test = (images.reshape(len(images), -1) for images in (data.train_inputs, data.test_inputs))
    return Samples(
        train,
        data.train_labels.astype(np.int64),
        (test, data.test_labels.astype(np.int64)),
        shape=data.train_inputs.shape[1:],
    )


def mlbench(name: str) -> Any:
    """Return one of mlbench's data frames."""
    import rdata  # of the extra "bench"

    path = checked(MLBENCH / f"{name}.rda", SHA256[name], "apt-get install r-cran-mlbench (2.1-3)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rdata's, about R attributes that pandas cannot hold
        return rdata.read_rda(path)[name]


def numeric(name: str, target: str, leave_out: tuple[str, ...] = (), group: str | None = None) -> Samples:
    """Return an mlbench table with every column as a number; rows with missing values are left out.

    Levels that are numbers (``"0"``, ``"1"``; one to ten) count as those numbers, false and true as 0 and 1. The
    column ``group``, which says which rows belong together, is not a feature.
    """
    frame = mlbench(name).dropna()
    known = [] if group is None else [group]
    columns = frame.drop(columns=[target, *leave_out, *known]).astype(str).replace({"False": "0", "True": "1"})
    groups = None if group is None else codes(frame[group])
    return Samples(columns.astype(float).to_numpy(), codes(frame[target]), group=groups)


def one_hot(name: str, target: str) -> Samples:
    """Return an mlbench table of nominal columns with a 0 or 1 per level; a missing value is all zeros."""
    import pandas

    frame = mlbench(name)
    columns = pandas.get_dummies(frame.drop(columns=[target]).astype("category"), dtype=float)
    return Samples(columns.to_numpy(), codes(frame[target]))


def codes(labels: Any) -> Array:
    """Return 0, 1, … for the classes in alphabetical order."""
    return np.unique(labels.astype(str).to_numpy(dtype=str), return_inverse=True)[1].astype(np.int64)
