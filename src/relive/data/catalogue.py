"""The data sets and the protocols: everything known about them without torch, and without loading anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relive._util.errors import unknown
from relive._util.registry import Registry, is_address


@dataclass(frozen=True)
class DatasetFacts:
    """A named data set.

    Attributes
    ----------
    name, title
        On the command line, and for people.
    home
        What loads it: a :class:`relive.data.datasets.recipes.Recipe`, or a function without arguments that returns a
        :class:`relive.data.datasets.dataset.Dataset` or inputs and labels.
    train, test, shape
        The numbers of training and test inputs, and the shape of each, if known beforehand.
    sha256
        Checked when it is loaded: of a recipe's files, or of what a function returned
        (``Dataset.sha256``).
    origin
        Where it comes from, if it need not be downloaded.
    """

    name: str
    title: str
    home: str
    train: int = 0
    test: int = 0
    shape: tuple[int, ...] = ()
    sha256: tuple[str, ...] = ()
    origin: str = ""


DATASETS = Registry(
    "data set",
    "relive.datasets",
    [
        DatasetFacts(
            "mnist",
            "MNIST",
            "relive.data.datasets.recipes:MNIST",
            60_000,
            10_000,
            (28, 28),
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
        DatasetFacts(
            "fashion-mnist",
            "Fashion-MNIST",
            "relive.data.datasets.recipes:FASHION_MNIST",
            60_000,
            10_000,
            (28, 28),
            (
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ),
        DatasetFacts(
            "digits",
            "Digits",
            "relive.data.datasets.digits:load",
            1_438,
            359,
            (8, 8),
            origin="comes with scikit-learn",
        ),
    ],
)


USUAL = {"tasks": 5, "iters": 2000, "learning_rate": 0.001, "hidden": 400, "batch_size": 128, "latent": 100}


@dataclass(frozen=True)
class ProtocolFacts:
    """How a data set becomes a sequence of tasks.

    Attributes
    ----------
    name, title
        On the command line, and for people.
    home
        Where the :class:`relive.data.protocols.Protocol` is.
    preset
        The defaults of a run: tasks, iters, learning_rate, hidden, batch_size, latent. Those not given are split's.
    settings
        Settings of methods that differ on this protocol from the method's own defaults, by method.
    choice
        The fidelity choice that affects its tasks, if any.
    """

    name: str
    title: str
    home: str
    preset: dict[str, Any]
    settings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    choice: str = ""

    def __post_init__(self) -> None:
        for field_name in self.preset:
            if field_name not in USUAL:
                raise unknown(f"field in the preset of {self.name}", field_name, USUAL)
        object.__setattr__(self, "preset", USUAL | self.preset)


PROTOCOLS = Registry(
    "protocol",
    "relive.protocols",
    [
        ProtocolFacts(
            "split",
            "Split",
            "relive.data.protocols:SPLIT",
            USUAL,
            choice="class_order",
        ),
        ProtocolFacts(
            "permuted",
            "Permuted",
            "relive.data.protocols:PERMUTED",
            {"tasks": 10, "iters": 5000, "learning_rate": 0.0001, "hidden": 1000, "batch_size": 128, "latent": 100},
            settings={"xdg": {"proportion": 0.55}},
            choice="permutations",
        ),
        ProtocolFacts(  # as many tasks as permuted; pictures as large, and so a network and a rate, as split
            "rotated",
            "Rotated",
            "relive.data.protocols:ROTATED",
            {"tasks": 10},
        ),
        ProtocolFacts(  # split without boundaries
            "blurred",
            "Blurred",
            "relive.data.protocols:BLURRED",
            {},
            choice="class_order",
        ),
    ],
)


def protocol_facts(name: str) -> ProtocolFacts:
    """Return the facts of a protocol by name or address; torch is only needed for an address."""
    if not is_address(name):
        return PROTOCOLS[name]
    from relive.data.protocols import protocol_of

    own = protocol_of(name)
    return ProtocolFacts(name, own.title or own.name, name, dict(own.preset))
