"""The same run as a command and as Python: what the page starts, and what it lets people copy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from relive._util.fidelity import FIDELITIES, name_of
from relive.experiments.spec import RunSpec, make_spec

SIZES = ("tasks", "iters", "learning_rate", "hidden", "batch_size", "latent", "threads")
PARTS = ("encoder", "optimizer", "device")


def run_words(spec: RunSpec) -> list[str]:
    """Return what follows ``relive`` on the command line to do this run.

    >>> from relive.experiments.spec import make_spec
    >>> " ".join(run_words(make_spec("split", "task", "si", dataset="digits", iters=300, settings={"c": 0.5})))
    'run --dataset digits --scenario task --method si --seed 0 --iters 300 --set c=0.5'
    """
    usual = _usual(spec)
    words = ["run", "--dataset", spec.dataset]
    words += ["--protocol", spec.protocol] if spec.protocol != "split" else []
    words += ["--scenario", spec.scenario, "--method", spec.method, "--seed", str(spec.seed)]
    words += _rest(spec, usual)
    for choice in name_of(spec.fidelity).split(",")[1:]:
        words += ["--choose", choice]
    for name, value in spec.settings.items():
        words += ["--set", f"{name}={_plain(value)}"] if value != usual.settings.get(name) else []
    return words


def compare_words(specs: Sequence[RunSpec]) -> list[str]:
    """Return what follows ``relive`` to compare methods; the specs differ in method, scenario and seed alone."""
    first = specs[0]
    words = ["compare", "--dataset", first.dataset, *(["--protocol", first.protocol] * (first.protocol != "split"))]
    for option, values in (("--scenario", [s.scenario for s in specs]), ("--method", [s.method for s in specs])):
        for value in dict.fromkeys(values):
            words += [option, value]
    return [*words, "--seeds", str(len({spec.seed for spec in specs})), *_rest(first, _usual(first))]


def as_command(words: Sequence[str]) -> str:
    """Return a command as it is typed."""
    return shlex.join(["relive", *words])


def as_python(spec: RunSpec) -> str:
    """Return a program that does this run, and prints its average accuracy."""
    usual = _usual(spec)
    given: dict[str, Any] = {"dataset": spec.dataset, "seed": spec.seed}
    given |= {name: getattr(spec, name) for name in (*SIZES, *PARTS) if getattr(spec, name) != getattr(usual, name)}
    settings = {name: value for name, value in spec.settings.items() if value != usual.settings.get(name)}
    given |= {"settings": settings} if settings else {}
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    fidelity, imports = "", "make_spec, run"
    if spec.fidelity in FIDELITIES.values():
        fidelity = "" if spec.fidelity == usual.fidelity else f", fidelity={name_of(spec.fidelity)!r}"
    else:
        fidelity, imports = f", fidelity={spec.fidelity!r}", "Fidelity, make_spec, run"
    return (
        f"from relive import {imports}\n\n"
        f"spec = make_spec({spec.protocol!r}, {spec.scenario!r}, {spec.method!r}, {arguments}{fidelity})\n"
        "print(run(spec).result.average_accuracy)\n"
    )


def _usual(spec: RunSpec) -> RunSpec:
    """Return what the command would do if nothing but the names were given."""
    return make_spec(spec.protocol, spec.scenario, spec.method, dataset="digits")


def _rest(spec: RunSpec, usual: RunSpec) -> list[str]:
    """Return the options for what differs from the usual, that ``run`` and ``compare`` share."""
    words: list[str] = []
    for name in (*SIZES, *PARTS):
        value = getattr(spec, name)
        words += ["--" + name.replace("_", "-"), str(value)] if value != getattr(usual, name) else []
    preset = name_of(spec.fidelity).partition(",")[0]
    return [*words, *(["--fidelity", preset] if preset != "as_run" else [])]


def _plain(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
