"""What a run should do, and its result: frozen, JSON, no torch."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from relive._util import schema
from relive._util.errors import InputError, unknown
from relive._util.fidelity import AS_RUN, Fidelity, fidelity_of
from relive._util.records import LATER, from_json, to_json
from relive._util.registry import Registry, digest_of_address, is_address, short_name, warn_of_neighbours
from relive.core.catalogue import OPTIMIZERS
from relive.data.catalogue import PROTOCOLS, protocol_facts
from relive.data.datasets.dataset import Dataset
from relive.data.datasets.sources import digest_of_data
from relive.methods import METHODS, method_facts
from relive.networks.catalogue import ENCODERS

SCENARIO_NAMES = ("task", "domain", "class")
PROBE_ROWS = 500  # test rows per task when the accuracy is only probed


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines the result of a run. The same spec on the same machine gives the same bits.

    Attributes
    ----------
    protocol
        How the data set becomes tasks: ``"split"``, ``"permuted"``, ``"rotated"``, another registered one, or an
        address: ``my_file.py:PROTOCOL``.
    scenario
        ``"task"``, ``"domain"`` or ``"class"``.
    method
        A name that ``relive methods`` lists, or an address: ``my_file.py:MyMethod``.
    dataset
        A name that ``relive data`` lists; or a file, a folder of images, or a loader, ``my_file.py:load``.
    seed
        Determines all randomness.
    tasks
        How many tasks.
    iters
        Training steps per task.
    learning_rate
        Adam's.
    batch_size
        Current rows per step; as many are replayed.
    hidden
        Units in each hidden layer.
    latent
        Stochastic latent variables of the generators.
    settings
        All of the method's settings, by name.
    fidelity
        Where the paper and its code differ.
    threads
        Threads per matrix product; more than one changes the order of sums, and hence the last bits.
    sources
        A digest of every file that an address refers to, of the file of everything from an installed package, and of a
        data set outside the catalogue: other contents are another spec.
    encoder
        ``"mlp"``, ``"conv"``, another registered one, or an address: ``my_file.py:make``.
    optimizer
        ``"adam"``, ``"sgd"``, another registered one, or an address.
    device
        Where tensors live: ``"cpu"``, ``"cuda"`` or ``"mps"``. Bit-identical results need the CPU.
    """

    protocol: str
    scenario: str
    method: str
    dataset: str
    seed: int
    tasks: int
    iters: int
    learning_rate: float
    batch_size: int
    hidden: int
    latent: int
    settings: Mapping[str, float] = field(default_factory=dict)
    fidelity: Fidelity = AS_RUN
    threads: int = 1
    sources: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    encoder: str = field(default="mlp", metadata=LATER)
    optimizer: str = field(default="adam", metadata=LATER)
    device: str = field(default="cpu", metadata=LATER)

    def __post_init__(self) -> None:
        for name in ("protocol", "scenario", "method", "dataset", "encoder", "optimizer", "device"):
            if not schema.text(getattr(self, name), name):
                raise InputError(f"{name} = '': it must be a name")
        if self.scenario not in SCENARIO_NAMES:
            raise unknown("scenario", self.scenario, SCENARIO_NAMES)
        for name in ("tasks", "iters", "batch_size", "hidden", "latent", "threads"):
            schema.whole(getattr(self, name), name, 1, schema.LARGEST if name == "iters" else schema.SIZE)
        schema.whole(self.seed, "seed")
        if not isinstance(self.fidelity, Fidelity):
            raise InputError(f"fidelity = {self.fidelity!r}: it must be a relive.Fidelity")
        schema.texts(self.sources, "sources")
        # 9 and 9.0 are the same strength: equal specs have one digest
        rate = schema.number(self.learning_rate, "learning_rate")
        if rate <= 0:
            raise InputError(f"learning_rate = {rate!r}: it must be above 0")
        object.__setattr__(self, "learning_rate", rate)
        given = sorted(schema.record(self.settings, "settings").items())
        settings = {name: schema.number(value, f"setting {name}") for name, value in given}
        object.__setattr__(self, "settings", MappingProxyType(settings))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:  # frozen settings cannot be copied to another process as they are
        return RunSpec.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain JSON values."""
        own = {"settings": dict(self.settings), "fidelity": self.fidelity.to_json()}
        return to_json(self) | own | ({"sources": dict(self.sources)} if self.sources else {})

    @property
    def homes(self) -> list[str]:
        """Where its method, protocol, encoder and optimizer are defined: ``package.module:Thing``."""
        named = _registries(self.method, self.protocol, self.encoder, self.optimizer)
        return [name if is_address(name) else registry[name].home for registry, name in named]

    @property
    def method_source(self) -> str:
        """What the file with the method is called in ``sources``."""
        return _source(METHODS, self.method)

    def check_sources(self) -> None:
        """Refuse to run a file that has changed since the spec was created."""
        for source, now in _digests(self.method, self.protocol, self.encoder, self.optimizer).items():
            if source in self.sources:
                self._check_same(source, now)

    def check_data(self, data: Dataset) -> None:
        """Refuse a data set other than the one that the spec was created for."""
        if data.name == self.dataset and self.dataset in self.sources:
            self._check_same(self.dataset, data.digest)
        elif data.name != self.dataset or data.digest:
            raise InputError(
                f"this run is for the data set {self.dataset!r}, but got different data, named {data.name!r}: "
                "create its spec with make_spec(..., dataset=data)"
            )

    def _check_same(self, source: str, now: str) -> None:
        then = self.sources[source]
        if now != then:
            raise InputError(
                f"{source} has changed since the run was requested ({then}, now {now}): start the command again"
            )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunSpec:
        """Return the spec that ``to_json`` described; unknown and missing keys are errors."""
        values = from_json(cls, values)
        if not isinstance(values["fidelity"], Mapping):
            raise InputError(f"fidelity = {values['fidelity']!r}: it must be named choices")
        return cls(**values | {"fidelity": Fidelity(**from_json(Fidelity, values["fidelity"]))})

    @functools.cached_property
    def digest(self) -> str:
        """A short hash of everything in the spec."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """A readable name, also for directories, unique for every spec."""
        method = self.method.rpartition(":")[2]
        protocol, dataset = short_name(self.protocol), short_name(self.dataset)
        words = (protocol, self.scenario, method, dataset, f"seed{self.seed}", self.digest)
        return re.sub(r"[^\w.+-]+", "-", "-".join(words))


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    Attributes
    ----------
    spec
        What was requested.
    average_accuracy
        Mean over tasks of the final model's test accuracy, 0 to 1.
    accuracy_matrix
        Row i: after task i, the test accuracy on every task, including those not learned yet.
    forgetting
        How far the earlier tasks fell from their best, on average.
    backward_transfer
        How much later tasks changed earlier ones, on average.
    curve
        Accuracy while learning: (task, iteration, accuracy on each task so far, on part of the test rows).
    train_seconds
        Time spent learning, without evaluation.
    cpu_seconds
        CPU time of it, or None if not known. Less than ``train_seconds`` on one thread means that
        the run waited for a core, and its time says little.
    parameters
        Trained parameters.
    stored_numbers
        Other numbers that the method stores between tasks.
    versions
        What ran it: packages, code and, since times depend on it, the processor model.
    shown
        How to show what is not in a catalogue: a method's title, whether it stores data, and its colour and marker if
        it has them, its settings' symbols, and which of them are in percent; the title of a protocol.
    """

    spec: RunSpec
    average_accuracy: float
    accuracy_matrix: list[list[float]]
    forgetting: float
    backward_transfer: float
    curve: list[tuple[int, int, list[float]]]
    train_seconds: float
    cpu_seconds: float | None
    parameters: int
    stored_numbers: int
    versions: dict[str, str]
    shown: dict[str, str] = field(default_factory=dict, metadata=LATER)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return to_json(self) | {"spec": self.spec.to_json()}

    @property
    def protocol_title(self) -> str:
        """The protocol's title, wherever it comes from."""
        return self.shown.get("protocol") or short_name(self.spec.protocol)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunResult:
        """Return the result that ``to_json`` described; unknown and missing keys are errors."""
        values = from_json(cls, values)
        spec = RunSpec.from_json(schema.record(values["spec"], "spec"))
        schema.number(values["average_accuracy"], "average_accuracy", 0, 1)
        for name in ("forgetting", "backward_transfer"):
            schema.number(values[name], name, -1, 1)
        schema.number(values["train_seconds"], "train_seconds", low=0)
        if values["cpu_seconds"] is not None:
            schema.number(values["cpu_seconds"], "cpu_seconds", low=0)
        for name in ("parameters", "stored_numbers"):
            schema.whole(values[name], name)
        for name in ("versions", "shown"):
            schema.texts(values.get(name, {}), name)
        matrix, curve = matrix_of(values["accuracy_matrix"], spec.tasks), curve_of(values["curve"], spec.tasks)
        if len(matrix) != spec.tasks:
            raise InputError(f"accuracy_matrix has {len(matrix)} rows for {spec.tasks} tasks")
        return cls(**values | {"spec": spec, "accuracy_matrix": matrix, "curve": curve})


def _registries(method: str, protocol: str, encoder: str, optimizer: str) -> list[tuple[Registry[Any], str]]:
    return [(METHODS, method), (PROTOCOLS, protocol), (ENCODERS, encoder), (OPTIMIZERS, optimizer)]


def _source(registry: Registry[Any], name: str) -> str:
    """Return what the file of something is called in ``sources``; a method and a protocol may have the same name."""
    return name if is_address(name) else f"{registry.kind} {name}"


def _digests(*names: str) -> dict[str, str]:
    """Return a digest of the file of each thing that does not come with this package."""
    found = {
        _source(registry, name): digest_of_address(name) if is_address(name) else registry.digest(name)
        for registry, name in _registries(*names)
    }
    return {source: digest for source, digest in found.items() if digest}


def matrix_of(values: Any, tasks: int) -> list[list[float]]:
    """Return rows of an accuracy matrix, checked."""
    return [schema.shares(row, "a row of accuracy_matrix", tasks) for row in schema.items(values, "accuracy_matrix")]


def curve_of(values: Any, tasks: int) -> list[tuple[int, int, list[float]]]:
    """Return the accuracies while learning, checked."""
    curve = []
    for entry in schema.items(values, "curve"):
        if len(schema.items(entry, "curve")) != 3:
            raise schema.wrong("curve", entry, "a task, a step and accuracies each")
        task, step, row = entry
        whole = schema.whole(task, "curve", 0, tasks - 1), schema.whole(step, "curve")
        curve.append((*whole, schema.shares(row, "curve")))
    return curve


def make_spec(
    protocol: str = "split",
    scenario: str = "class",
    method: str = "rtf",
    *,
    dataset: str | os.PathLike[str] | Dataset = "mnist",
    encoder: str | None = None,
    optimizer: str = "adam",
    device: str = "cpu",
    seed: int = 0,
    fidelity: Fidelity | str = AS_RUN,
    settings: Mapping[str, float] | None = None,
    **changes: Any,
) -> RunSpec:
    """Return a spec with the protocol's presets and the method's default settings, with any field changed by name.

    A ``Dataset`` created in Python is identified by a digest of its contents; pass it again to ``run(spec, data=...)``.

    >>> spec = make_spec("split", "class", "si", seed=3, iters=100)
    >>> spec.iters, spec.hidden, dict(spec.settings)
    (100, 400, {'c': 0.1, 'xi': 0.1})

    Raises
    ------
    InputError
        If a name is unknown, a value is out of range, or the method does not support the scenario.
    """
    facts, preset = method_facts(method), protocol_facts(protocol)
    encoder = encoder or facts.encoder
    for name in changes:
        if name not in preset.preset and name != "threads":
            raise unknown("field of RunSpec", name, [f.name for f in fields(RunSpec)])
    chosen = facts.defaults | dict(preset.settings.get(method, {})) | dict(settings or {})
    facts.check_settings(chosen)
    spec = RunSpec(
        protocol=protocol,
        scenario=scenario,
        method=method,
        dataset=dataset.name if isinstance(dataset, Dataset) else os.fspath(dataset),
        encoder=encoder,
        optimizer=optimizer,
        device=_resolved(device),
        seed=seed,
        fidelity=fidelity_of(fidelity) if isinstance(fidelity, str) else fidelity,
        settings=chosen,
        sources=_digests(method, protocol, encoder, optimizer),
        **preset.preset | changes,
    )
    facts.check_scenario(scenario)
    for name in spec.sources:
        warn_of_neighbours(name)
    ENCODERS.check(encoder)
    OPTIMIZERS.check(optimizer)
    digest = dataset.digest if isinstance(dataset, Dataset) else digest_of_data(spec.dataset)
    return replace(spec, sources={**spec.sources, spec.dataset: digest}) if digest else spec


def _resolved(device: str) -> str:
    """Return the name of an available device; only the CPU is known to be available without asking torch."""
    if device == "cpu":
        return device
    from relive.core.devices import device_of

    return str(device_of(device))
