"""What forms offer, from the catalogues, and the specs of a filled-in form. Only catalogue names are accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from relive._util.errors import InputError, unknown
from relive._util.fidelity import FIDELITIES
from relive.core.catalogue import OPTIMIZERS
from relive.core.facts import MethodFacts, Setting
from relive.data.catalogue import DATASETS, PROTOCOLS
from relive.experiments.spec import SCENARIO_NAMES, RunSpec, make_spec
from relive.methods import METHODS
from relive.networks.catalogue import ENCODERS
from relive.report import style

FIELDS = ("methods", "scenario", "dataset", "protocol", "seed", "seeds", "encoder", "optimizer", "fidelity", "settings")
NUMBERS = ("tasks", "iters", "learning_rate", "hidden", "batch_size", "latent")
MOST_RUNS = 200  # per form
# The demo: small enough for a minute, with the classes in order and the generator's loss at full weight.
FIRST = {"methods": ["none", "rtf"], "scenario": "class", "protocol": "split", "seed": 1, "fidelity": "as_written"}
FIRST_SIZES = {"digits": {"iters": 500, "hidden": 200, "latent": 50}, "mnist": {"iters": 500}}


def catalogue() -> dict[str, Any]:
    """Return what can be chosen."""
    return {
        "methods": [_method(METHODS[name]) for name in METHODS],
        "datasets": [{"name": name, "title": DATASETS[name].title} for name in DATASETS],
        "protocols": [
            {"name": name, "title": facts.title, "preset": facts.preset} for name, facts in PROTOCOLS.items()
        ],
        "scenarios": [{"name": name, "title": style.SCENARIO_TITLES[name]} for name in SCENARIO_NAMES],
        "encoders": [{"name": name, "title": ENCODERS[name].title} for name in ENCODERS],
        "fidelities": list(FIDELITIES),
        "optimizers": [{"name": name, "title": OPTIMIZERS[name].title} for name in OPTIMIZERS],
        "first": FIRST["methods"],
    }


def _method(facts: MethodFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "title": facts.title,
        "reference": facts.reference,
        "scenarios": facts.scenarios,
        "why_not": facts.why_not,
        "keeps_data": facts.keeps_data,
        "colour": style.method_colour(facts.name),
        "settings": [_setting(setting) for setting in facts.settings],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "default": setting.default,
        "low": setting.low if math.isfinite(setting.low) else None,
        "high": setting.high if math.isfinite(setting.high) else None,
        "explain": setting.explain,
        "symbol": setting.symbol or setting.name,
    }


def specs_from(form: Any) -> list[RunSpec]:
    """Return the runs that a form asks for.

    Names must be in the catalogues: an address (``my_file.py:MyMethod``) or a path would let a request choose what this
    server runs or reads. The command line accepts both.
    """
    if not isinstance(form, dict):
        raise InputError("the body must be an object that describes the runs")
    for name in form:
        if name not in (*FIELDS, *NUMBERS):
            raise unknown("field", str(name), (*FIELDS, *NUMBERS))
    methods = form.get("methods")
    if not isinstance(methods, list) or not methods:
        raise InputError('"methods" must be a list of at least one method')
    for method in methods:
        _known("method", method, METHODS)
    dataset = _known("data set", form.get("dataset", "digits"), DATASETS)
    protocol = _known("protocol", form.get("protocol", "split"), PROTOCOLS)
    scenario = _known("scenario", form.get("scenario", "class"), SCENARIO_NAMES)
    given: dict[str, Any] = {name: form[name] for name in NUMBERS if form.get(name) is not None}
    for kind, names in (("encoder", ENCODERS), ("optimizer", OPTIMIZERS), ("fidelity", FIDELITIES)):
        if form.get(kind):
            given[kind] = _known(kind, form[kind], names)
    settings = form.get("settings") or {}
    if not isinstance(settings, dict) or (settings and len(methods) > 1):
        raise InputError('"settings" must map names to numbers, and needs exactly one method')
    seeds = _seeds(form)
    if len(methods) * len(seeds) > MOST_RUNS:
        raise InputError(f"{len(methods) * len(seeds)} runs are too many at once: ask for at most {MOST_RUNS}")
    return [
        make_spec(protocol, scenario, method, dataset=dataset, seed=seed, settings=settings, **given)
        for method in methods
        for seed in seeds
    ]


def _seeds(form: Mapping[str, Any]) -> list[int]:
    """Return the given seed, or seeds 1 to n as ``relive compare`` uses them."""
    if form.get("seeds") is None:
        return [form.get("seed", 0)]
    n = form["seeds"]
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_RUNS:
        raise InputError(f"seeds = {n!r}: it must be a whole number from 1 to {MOST_RUNS}")
    return list(range(1, n + 1))


def _known(kind: str, name: Any, names: Iterable[str]) -> str:
    if not isinstance(name, str) or name not in list(names):
        raise unknown(kind, str(name), names)
    return name
