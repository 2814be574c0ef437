"""The inputs to damage: small models of every kind, results, tables, pictures."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from relive._util.arrayfile import digest_of, read_arrays
from relive.classifier.estimator import ContinualClassifier
from relive.classifier.modelheader import KIND, VERSION

Array = npt.NDArray[Any]

SIZES: dict[str, Any] = {"hidden": 4, "latent": 2, "iterations": 2, "batch_size": 8}
X = np.random.default_rng(0).random((24, 5))
NETWORKS = ("none", "ewc", "online-ewc", "si", "lwf", "rtf", "bir", "generative-classifier", "pseudo-rehearsal")
CLOSED_FORMS = ("ncm", "slda", "analytic", "discriminant")
SMALL: dict[str, dict[str, float]] = {
    "generative-classifier": {"hidden": 4, "latent": 2, "samples": 2},
    "analytic": {"numbers": 1000},
    "discriminant": {"numbers": 1000},
    "domains": {"numbers": 1000},
}
WORDS = np.array(["rose", "tulip", "Ölbaum"])


def models(folder: Path) -> dict[str, bytes]:
    """Return the files of models of many methods, by the method's name."""
    made: dict[str, ContinualClassifier] = {}
    for method in NETWORKS + CLOSED_FORMS:
        model = ContinualClassifier(method, settings=SMALL.get(method), **SIZES)
        made[method] = model.partial_fit(X, np.arange(24) % 2)
        made[method].partial_fit(X, np.arange(24) % 2 + 1)
    for method in ("er", "agem", "icarl"):
        made[method] = ContinualClassifier(method, allow_stored_data=True, **SIZES).partial_fit(
            X, WORDS[np.arange(24) % 3]
        )
    for method in ("xdg", "dgr", "domains"):
        scenario = "domain" if method == "domains" else "task"
        model = ContinualClassifier(method, scenario, settings=SMALL.get(method), **SIZES)
        made[method] = model.partial_fit(X, np.arange(24) % 2, task="a").partial_fit(X, np.arange(24) % 2, task="b")
    made["booleans"] = ContinualClassifier("slda", **SIZES).partial_fit(X * 9, np.arange(24) % 4 < 2)
    changed = ContinualClassifier("slda", forgettable=True, **SIZES).partial_fit(X, WORDS[np.arange(24) % 3])
    made["changed"] = changed.forget("rose").rename("tulip", "Tulpe")
    made["asked"] = ContinualClassifier("discriminant", settings=SMALL["discriminant"], holdout=0.3, **SIZES)
    made["asked"].partial_fit(np.repeat(X, 4, 0), np.arange(96) % 3)
    waits = ContinualClassifier("none", consolidate_every=24, allow_stored_data=True, **SIZES)
    made["waiting"] = waits.partial_fit(X, np.arange(24) % 2).partial_fit(X[:5], np.arange(5) % 2)
    files = {}
    for name, model in made.items():
        model.notes_["image"] = [1, 5]
        model.save(folder / "seed.safetensors")
        files[name] = (folder / "seed.safetensors").read_bytes()
    return files


def taken_apart(raw: bytes, folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a model's file."""
    (folder / "whole.safetensors").write_bytes(raw)
    header, arrays = read_arrays(folder / "whole.safetensors", KIND, VERSION)
    return header, {name: array.copy() for name, array in arrays.items()}


def put_together(header: Any, arrays: dict[str, Array]) -> bytes:
    """Return the file of any header and arrays, with a matching digest."""
    metadata = {"format": KIND, "version": str(VERSION), "header": json.dumps(header)}
    whole = {name: array.copy() for name, array in arrays.items()}
    metadata["sha256"] = digest_of(whole, metadata)
    return save(whole, metadata=metadata)


def resigned(values: dict[str, Any]) -> bytes:
    """Return a result's file with a matching digest, whatever its contents."""
    from relive.experiments.resultfile import to_bytes

    try:
        return to_bytes(values | {"sha256": hashlib.sha256(to_bytes(values)).hexdigest()})
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can represent
        return json.dumps(values).encode()


def npz(**arrays: Any) -> bytes:
    raw = io.BytesIO()
    np.savez(raw, **arrays)
    return raw.getvalue()


def picture(rng: np.random.Generator, kind: str = "PNG", shape: tuple[int, ...] = (6, 6)) -> bytes:
    from PIL import Image

    raw = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8)).save(raw, kind)
    return raw.getvalue()
