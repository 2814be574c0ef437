"""What a run is asked to do and what came out: frozen, JSON, no torch."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from relive.errors import InputError, unknown
from relive.fidelity import AS_RUN, Fidelity

PROTOCOL_NAMES = ("split", "permuted")
SCENARIO_NAMES = ("task", "domain", "class")
PROBE_ROWS = 500  # test rows per task when the accuracy is only looked at in passing


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides the result of a run. Same spec, same machine: the same bits.

    Attributes
    ----------
    protocol
        How the data set becomes tasks: ``"split"`` or ``"permuted"``.
    scenario
        What is known of tasks: ``"task"``, ``"domain"`` or ``"class"``.
    method
        A name in ``relive.methods.METHODS``.
    dataset
        A name that ``relive data`` lists.
    seed
        Where all randomness comes from.
    tasks
        How many tasks.
    iters
        Training steps per task.
    learning_rate
        Adam's.
    batch_size
        Current rows per step; as many replayed ones.
    hidden
        Units in each hidden layer.
    latent
        Stochastic latent variables of the generators.
    settings
        The method's own settings, all of them, by name.
    fidelity
        Where the paper and its code differ.
    threads
        Threads of one matrix product; more than one changes the order of sums, and so the last bits.
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

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOL_NAMES:
            raise unknown("protocol", self.protocol, PROTOCOL_NAMES)
        if self.scenario not in SCENARIO_NAMES:
            raise unknown("scenario", self.scenario, SCENARIO_NAMES)
        for name in ("tasks", "iters", "batch_size", "hidden", "latent", "threads"):
            _whole(name, getattr(self, name), at_least=1)
        _whole("seed", self.seed, at_least=0)
        if self.seed >= 2**63:
            raise InputError(f"seed = {self.seed}: it must be below 2**63")
        if not isinstance(self.fidelity, Fidelity):
            raise InputError(f"fidelity = {self.fidelity!r}: it must be a Fidelity, such as relive.fidelity.AS_WRITTEN")
        if not isinstance(self.settings, Mapping):
            raise InputError(f"settings = {self.settings!r}: they must be numbers by name")
        # 9 and 9.0 are one strength: equal specs have one digest
        rate = _number("learning_rate", self.learning_rate)
        if rate <= 0:
            raise InputError(f"learning_rate = {rate!r}: it must be above 0")
        object.__setattr__(self, "learning_rate", rate)
        settings = {name: _number(f"setting {name}", value) for name, value in sorted(self.settings.items())}
        object.__setattr__(self, "settings", MappingProxyType(settings))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:  # frozen settings cannot be copied to another process as they are
        return RunSpec.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain JSON values."""
        return {name: getattr(self, name) for name in _names(RunSpec)} | {
            "settings": dict(self.settings),
            "fidelity": self.fidelity.to_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunSpec:
        """Return the spec that ``to_json`` described; unknown and missing keys are errors."""
        values = _checked(cls, values)
        if not isinstance(values["fidelity"], Mapping):
            raise InputError(f"fidelity = {values['fidelity']!r}: it must be choices by name")
        return cls(**values | {"fidelity": Fidelity(**_checked(Fidelity, values["fidelity"]))})

    @functools.cached_property
    def digest(self) -> str:
        """A short hash of everything in the spec."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """A name for people and for directories, different for every spec."""
        return f"{self.protocol}-{self.scenario}-{self.method}-{self.dataset}-seed{self.seed}-{self.digest}"


@dataclass(frozen=True)
class RunResult:
    """What came out of a run.

    Attributes
    ----------
    spec
        What was asked for.
    average_accuracy
        Mean over tasks of the final model's test accuracy, 0 to 1.
    accuracy_matrix
        Row i: after task i, the test accuracy on every task, those not learned yet included.
    forgetting
        How far the earlier tasks fell from their best, on average.
    backward_transfer
        How much later tasks changed earlier ones, on average.
    curve
        Accuracy while learning: (task, iteration, accuracy on each task so far, on part of the test rows).
    train_seconds
        Time spent learning, evaluation excluded.
    cpu_seconds
        Processor time spent in it, or None where it is not known. Less than ``train_seconds`` on one thread means that
        the run waited for a core, and its time says little.
    parameters
        Numbers that are trained.
    stored_numbers
        Numbers that the method keeps between tasks besides them.
    versions
        What ran it: packages, code and, since times depend on it, the kind of processor.
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

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {name: getattr(self, name) for name in _names(RunResult)} | {"spec": self.spec.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunResult:
        """Return the result that ``to_json`` described; unknown and missing keys are errors."""
        values = _checked(cls, values)
        curve = [(task, step, row) for task, step, row in values["curve"]]
        return cls(**values | {"spec": RunSpec.from_json(values["spec"]), "curve": curve})


def _checked(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values if their keys are exactly the fields of the dataclass."""
    known = _names(cls)
    if values.keys() == set(known):
        return dict(values)
    for name in values:
        if name not in known:
            raise unknown(f"key of {cls.__name__}", name, known)
    missing = [name for name in known if name not in values]
    raise InputError(f"{cls.__name__} lacks {', '.join(missing)}")


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} = {value!r}: it must be a finite number")
    return float(value)


def _whole(name: str, value: object, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise InputError(f"{name} = {value!r}: it must be a whole number of at least {at_least}")
