"""Structure-aware mutations."""

from __future__ import annotations

import copy
import math
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-300, 1e308, -1e308, math.inf, -math.inf, math.nan),
    *(2**31, 2**63 - 1, 2**63, -(2**63), 10**400, "", "x", "\0", "a\0", "\x1b[2J", "\ud800", "é", "1", "nan", "=1+1"),
    *("[/]", "$\\frac{", "../../x", "a" * 5000, [], {}, [[]], [0], [None], ["x"], {"x": 1}, {"": ""}, [1] * 1000),
    *("cpu", "cuda", "auto", "class", "task", "domain", "ewc", "rtf", "offline", "mlp", "conv", "gaussian", "int64"),
]


def of_json(value: Any, rng: Random) -> Any:
    """Return JSON values with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        place, key = _somewhere(value, rng)
        if place is None:
            return rng.choice(VALUES)
        how = rng.random()
        if how < 0.5:
            place[key] = copy.deepcopy(rng.choice(VALUES))
        elif how < 0.65:
            del place[key]
        elif how < 0.8 and isinstance(place[key], int | float):
            old = place[key]
            place[key] = rng.choice([-old, old + 1, old - 1, old * 1000, 0.25, str(old), [old]])
        elif how < 0.9 and isinstance(place, list):
            place.insert(rng.randrange(len(place) + 1), copy.deepcopy(rng.choice(place or [0])))
        elif isinstance(place, dict):
            place[rng.choice(["x", "seed", "name", "0", "-1", *place])] = copy.deepcopy(rng.choice(VALUES))
    return value


def _somewhere(value: Any, rng: Random) -> tuple[Any, Any]:
    """Return a container in the value, at any depth, and one of its keys."""
    places = []
    stack = [value]
    while stack:
        at = stack.pop()
        keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        places += [(at, key) for key in keys[:50]]
        stack += [at[key] for key in keys[:50]]
    return rng.choice(places) if places else (None, None)


def of_bytes(raw: bytes, rng: Random, interesting: int | None = None) -> bytes:
    """Return bytes with some changed, removed, repeated or inserted, mostly in the first ``interesting``."""
    damaged = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 5])):
        if not damaged:
            break
        end = min(interesting or len(damaged), len(damaged)) if rng.random() < 0.7 else len(damaged)
        at, how = rng.randrange(end), rng.random()
        if how < 0.5:
            damaged[at] = rng.choice([0, 1, 9, 10, 34, 44, 127, 128, 255, rng.randrange(256)])
        elif how < 0.65:
            del damaged[at : at + rng.choice([1, 2, 8, 100, len(raw)])]
        elif how < 0.8:
            damaged[at:at] = damaged[at : at + rng.choice([1, 4, 50])]
        elif how < 0.9:
            damaged[at:at] = rng.choice(
                [b"\0", b"\xff" * 8, b"nan", b"1e999", b'"', b"\n", b",", b"9" * 400, b"{[" * 50]
            )
        else:
            damaged[at : at + 8] = rng.choice([2**63, 2**64 - 1, 0, 10**7]).to_bytes(8, "little")
    return bytes(damaged)


def of_arrays(arrays: dict[str, Array], rng: Random) -> dict[str, Array]:
    """Return named arrays with one or two changed in values, shape, type or name, or removed."""
    arrays = dict(arrays)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(sorted(arrays))
        how = rng.random()
        if how < 0.4:
            arrays[name] = _other_values(arrays[name], rng)
        elif how < 0.6:
            types = [np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64]
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name].astype(rng.choice(types))
        elif how < 0.8:
            old = arrays[name]
            flat = old.reshape(-1)
            arrays[name] = rng.choice([old[None], old[..., None], flat, flat[:0], np.zeros(3, old.dtype)])
            if old.ndim and len(old) and rng.random() < 0.5:
                arrays[name] = np.concatenate([old, old[:1]])
        elif how < 0.9:
            del arrays[name]
        else:
            arrays[rng.choice(["learner.more", "learner.method.x9", "waiting.x", "", name + "0"])] = arrays[name]
    return arrays


def _other_values(array: Array, rng: Random) -> Array:
    array = np.array(array)
    if not array.size:
        return array
    flat = array.reshape(-1)
    where = rng.choice([slice(None), slice(0, 1), slice(-1, None), slice(None, None, 3)])
    values: list[Any] = [0, 1, -1, 255]
    if array.dtype.kind == "f":
        values += [math.nan, math.inf, -math.inf, 1e38, 3e38, -3e38, 1e18, 1e-40, -1e-3, 1e300, -1e300]
    if array.dtype.kind == "i":
        values += [2**62, -(2**62), 10**6]
    with np.errstate(all="ignore"):
        flat[where] = np.array(rng.choice(values)).astype(array.dtype)
    return flat.reshape(array.shape)
