"""The estimator's parameters: valid values, and which of them are fixed for good."""

from __future__ import annotations

import copy
import math
import numbers
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relive._util import schema
from relive._util.errors import InputError, unknown
from relive._util.fidelity import Fidelity, fidelity_of
from relive.core.scenarios import SCENARIOS
from relive.methods import method_facts
from relive.networks.catalogue import ENCODERS, LIKELIHOODS, encoder_factory

if TYPE_CHECKING:
    from torch import Tensor

    from relive.data.tasks import Examples

Parameters = Mapping[str, Any]  # by name, as get_params returns them
STRUCTURE = (
    "method",
    "scenario",
    "settings",
    "encoder",
    "shape",
    "hidden",
    "latent",
    "likelihood",
    "fidelity",
    "forgettable",
)
THREADS = 10_000  # more than any machine has cores for
SIZES = ("hidden", "latent", "batch_size")
COUNTS = (*SIZES, "n_iter_no_change")
DEFAULTS: dict[str, Any] = {  # the estimator's, for reading a model file without it
    "method": "auto",
    "scenario": "class",
    "settings": None,
    "iterations": None,
    "encoder": None,
    "shape": None,
    "hidden": 400,
    "latent": 100,
    "learning_rate": 0.001,
    "batch_size": 128,
    "likelihood": "auto",
    "fidelity": "as_written",
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 5,
    "holdout": 0.0,
    "calibrate": True,
    "consolidate_every": None,
    "allow_stored_data": False,
    "forgettable": False,
    "random_state": 0,
    "n_jobs": None,
    "device": "cpu",
}


def check(given: Parameters) -> None:
    """Refuse invalid parameters."""
    for name in ("method", "scenario", "likelihood"):
        if not isinstance(given[name], str):
            own = ", or the address of your own: 'my_file.py:MyMethod'" if name == "method" else ""
            raise InputError(f"{name} = {given[name]!r}: it must be a name{own}")
    if given["settings"] is not None and not isinstance(given["settings"], dict):
        raise InputError(f"settings = {given['settings']!r}: it must be a dictionary, or None")
    if given["scenario"] not in SCENARIOS:
        raise unknown("scenario", given["scenario"], SCENARIOS)
    if given["likelihood"] not in ("auto", *LIKELIHOODS):
        raise unknown("likelihood", given["likelihood"], ["auto", *LIKELIHOODS])
    for name in ("allow_stored_data", "forgettable", "early_stopping", "calibrate"):
        if not isinstance(given[name], bool):
            raise InputError(f"{name} = {given[name]!r}: it must be True or False")
    fidelity_from(given["fidelity"])
    thread_count(given["n_jobs"])
    _check_network(given)
    _check_numbers(given)


def _check_network(given: Parameters) -> None:
    if isinstance(given["encoder"], str):
        ENCODERS.check(given["encoder"])
    elif given["encoder"] is not None:
        encoder_factory(given["encoder"])
    if not isinstance(given["device"], str):
        raise InputError(f"device = {given['device']!r}: it must be a name, such as 'cpu' or 'auto'")
    shape = given["shape"]
    whole = isinstance(shape, tuple | list) and all(isinstance(n, numbers.Integral) for n in shape)
    if shape is not None and not whole:
        raise InputError(f"shape = {shape!r}: it must be whole numbers, such as (28, 28), or None")


def _check_numbers(given: Parameters) -> None:
    for name in (*COUNTS, *(name for name in ("iterations", "consolidate_every") if given[name] is not None)):
        value = given[name]
        value = int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value
        schema.whole(value, name, 1, schema.SIZE if name in SIZES else schema.LARGEST)
    if isinstance(given["random_state"], numbers.Integral):
        schema.whole(int(given["random_state"]), "random_state (--seed)")
    if not 0 <= _real(given["holdout"]) < 1:
        raise InputError(f"holdout = {given['holdout']!r}: it must be at least 0 and below 1")
    for name, below in (("learning_rate", math.inf), ("validation_fraction", 1.0)):
        value = given[name]
        if not 0 < _real(value) < below:
            raise InputError(f"{name} = {value!r}: it must be above 0 and below {below:g}")


def _real(value: Any) -> float:
    """Return a number as a float; NaN for anything else, or for a number that is too large."""
    try:
        return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def check_method(given: Parameters) -> None:
    """Refuse a method that does not work with these parameters, or with one task's data at a time."""
    facts = method_facts(given["method"])
    if facts.needs_earlier_tasks:
        raise InputError(
            f"method = {given['method']!r} trains on the data of all tasks so far, but partial_fit only gets "
            "one task's: learn everything at once with method='none' and fit, or choose another of `relive "
            "methods`"
        )
    check_stored_data(given)
    facts.check_scenario(given["scenario"])
    facts.check_settings(given["settings"] or {})


def check_stored_data(given: Parameters) -> None:
    """Refuse a method that stores data of earlier tasks, unless that is allowed."""
    if method_facts(given["method"]).keeps_data and not given["allow_stored_data"]:
        raise InputError(
            f"method = {given['method']!r} stores samples of earlier tasks, in the model and in its file. If "
            "that is acceptable, set allow_stored_data=True (relive fit --allow-stored-data)"
        )


def check_no_samples(given: Parameters, state: Mapping[str, Tensor], learned: Examples) -> None:
    """Refuse the state of a user's method if it contains learned samples without permission."""
    from relive.core.state import holding_rows

    if given["allow_stored_data"]:
        return
    found = holding_rows(state, learned.inputs(slice(None))) or holding_rows(state, learned.pixels)
    if found:
        raise InputError(
            f"method = {given['method']!r} stores samples without declaring it: state() has rows of the data "
            f"in {', '.join(found)}, which would end up in the model file. Set keeps_data = True in the "
            "method, and allow_stored_data=True (relive fit --allow-stored-data) to use it"
        )


def structure_of(given: Parameters) -> dict[str, Any]:
    """Return the parameters that a model is created with, and that are fixed for good."""
    return {name: copy.deepcopy(given[name]) for name in STRUCTURE}


def check_unchanged(structure: Parameters, given: Parameters) -> None:
    """Refuse to continue or save with parameters that can no longer change."""
    for name, was in structure.items():
        if given[name] != was:
            raise InputError(
                f"{name} was {was!r} when this model was created and is now {given[name]!r}: it can no longer "
                "change. Set it back, or use fit to start over"
            )


def learner_arguments(structure: Parameters) -> dict[str, Any]:
    """Return a learner's arguments."""
    return {
        "encoder": structure["encoder"],
        "shape": tuple(map(int, structure["shape"] or ())),
        "hidden": int(structure["hidden"]),
        "latent": int(structure["latent"]),
        "fidelity": fidelity_from(structure["fidelity"]),
        "forgettable": bool(structure["forgettable"]),
    }


def fidelity_from(fidelity: Any) -> Fidelity:
    """Return the fidelity choices of a parameter."""
    if isinstance(fidelity, Fidelity):
        return fidelity
    if not isinstance(fidelity, str):
        raise InputError(f"fidelity = {fidelity!r}: it must be a name, or a Fidelity")
    return fidelity_of(fidelity)


def thread_count(n_jobs: Any) -> int:
    """Return the requested number of threads.

    >>> thread_count(None), thread_count(2)
    (1, 2)
    """
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or (n_jobs != -1 and not 1 <= n_jobs <= THREADS)):
        raise schema.wrong("n_jobs", n_jobs, "a whole number of at least 1, -1 for all cores, or None")
    return os.cpu_count() or 1 if n_jobs == -1 else int(n_jobs or 1)


def seed_from(random_state: Any) -> int:
    """Return the seed given by a ``random_state``, or one drawn from it."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31))
