"""Runs as commands and as Python: what the page starts, and what it lets people copy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from relive._util.fidelity import FIDELITIES, name_of
from relive.experiments.spec import RunSpec, make_spec
from relive.experiments.sweep import specs_of

SIZES = ("tasks", "iters", "learning_rate", "hidden", "batch_size", "latent", "threads")
PARTS = ("encoder", "optimizer", "device")


def run_words(spec: RunSpec) -> list[str]:
    """Return the arguments with which ``relive`` does this run.

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
    """Return the arguments with which ``relive`` compares methods; specs differ only in method, scenario and seed."""
    first = specs[0]
    words = ["compare", "--dataset", first.dataset, *(["--protocol", first.protocol] * (first.protocol != "split"))]
    for option, values in (("--scenario", [s.scenario for s in specs]), ("--method", [s.method for s in specs])):
        for value in dict.fromkeys(values):
            words += [option, value]
    return [*words, "--seeds", str(len({spec.seed for spec in specs})), *_rest(first, _usual(first))]


def words_of(specs: Sequence[RunSpec]) -> list[list[str]]:
    """Return the commands that do these runs: one comparison if it does exactly these, else one each."""
    words = compare_words(specs)
    first, usual = specs[0], _usual(specs[0])
    given = {name: getattr(first, name) for name in (*SIZES, *PARTS) if getattr(first, name) != getattr(usual, name)}
    asked = specs_of(
        [first.protocol],
        dict.fromkeys(spec.scenario for spec in specs),
        dict.fromkeys(spec.method for spec in specs),
        range(1, len({spec.seed for spec in specs}) + 1),
        dataset=first.dataset,
        fidelity=name_of(first.fidelity).partition(",")[0],
        **{name: value for name, value in given.items() if name != "threads"},  # not an option of `relive compare`
    )
    same = {spec.name for spec in asked} == {spec.name for spec in specs}
    return [words] if same and len(specs) > 1 else [run_words(spec) for spec in specs]


def as_command(*commands: Sequence[str]) -> str:
    """Return commands as they are typed, one per line."""
    return "\n".join(shlex.join(["relive", *words]) for words in commands)


def as_python(*specs: RunSpec) -> str:
    """Return a program that does the runs and prints the average accuracy of each."""
    plain = all(spec.fidelity in FIDELITIES.values() for spec in specs)
    imports = f"from relive import {'' if plain else 'Fidelity, '}make_spec, run\n\n"
    if len(specs) == 1:
        return f"{imports}spec = {_made(specs[0])}\nprint(run(spec).result.average_accuracy)\n"
    made = "".join(f"    {_made(spec)},\n" for spec in specs)
    told = "print(spec.method, spec.scenario, spec.seed, run(spec).result.average_accuracy)"
    return f"{imports}specs = [\n{made}]\nfor spec in specs:\n    {told}\n"


def _made(spec: RunSpec) -> str:
    """Return the Python expression that makes a spec, without arguments at their defaults."""
    usual = _usual(spec)
    given: dict[str, Any] = {"dataset": spec.dataset, "seed": spec.seed}
    given |= {name: getattr(spec, name) for name in (*SIZES, *PARTS) if getattr(spec, name) != getattr(usual, name)}
    settings = {name: value for name, value in spec.settings.items() if value != usual.settings.get(name)}
    given |= {"settings": settings} if settings else {}
    if spec.fidelity != usual.fidelity:
        named = spec.fidelity in FIDELITIES.values()
        given["fidelity"] = name_of(spec.fidelity) if named else spec.fidelity
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"make_spec({spec.protocol!r}, {spec.scenario!r}, {spec.method!r}, {arguments})"


def _usual(spec: RunSpec) -> RunSpec:
    """Return the spec with everything but the names at its default."""
    return make_spec(spec.protocol, spec.scenario, spec.method, dataset="digits")


def _rest(spec: RunSpec, usual: RunSpec) -> list[str]:
    """Return the options shared by ``run`` and ``compare`` that differ from their defaults."""
    words: list[str] = []
    for name in (*SIZES, *PARTS):
        value = getattr(spec, name)
        words += ["--" + name.replace("_", "-"), str(value)] if value != getattr(usual, name) else []
    preset = name_of(spec.fidelity).partition(",")[0]
    return [*words, *(["--fidelity", preset] if preset != "as_run" else [])]


def _plain(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
