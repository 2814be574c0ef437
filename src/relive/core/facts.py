"""What is known about a method without running it: its name, title, scenarios and settings. No torch."""

from __future__ import annotations

import inspect
import math
import numbers
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relive._util.errors import InputError, unknown

ALL_SCENARIOS = ("task", "domain", "class")
LARGEST = sys.float_info.max
COLOUR = re.compile("#[0-9a-fA-F]{6}")
MARKER = re.compile(r"[ov^<>12348spP*hH+xXDd|_.,]|\$[A-Za-z0-9]\$")  # Matplotlib's, or a letter


@dataclass(frozen=True)
class Setting:
    """A numeric setting of a method.

    Attributes
    ----------
    name, default
        The constructor's argument.
    low, high
        The valid range.
    explain
        What it is, in half a sentence.
    symbol
        Its symbol in the paper: λ.
    percent
        Whether it is usually given in percent.
    """

    name: str
    default: float
    low: float = -math.inf
    high: float = math.inf
    explain: str = ""
    symbol: str = ""
    percent: bool = False


@dataclass(frozen=True)
class MethodFacts:
    """What other parts of the package know about a method.

    Attributes
    ----------
    name
        On the command line.
    home
        ``package.module:Class``, or ``file.py:Class``.
    title, reference
        For people: a short name, and the source of the idea.
    scenarios, why_not
        Where it works, and why not elsewhere.
    settings
        What can be set, with defaults and limits.
    choices
        The fidelity choices that affect it.
    encoder
        The default encoder.
    keeps_data
        Whether it stores inputs of earlier tasks.
    needs_earlier_tasks
        Whether it trains on the data of earlier tasks, which must be passed again with every task.
    bound
        "lower bound" or "upper bound", if it is shown as one.
    use_when, not_when
        Advice for people, each the end of a sentence: "Use it …", "Do not use it …".
    colour, marker
        How it is drawn: ``#rrggbb``, and a marker of Matplotlib's, such as ``s`` or ``$A$``; if empty, a combination
        that no other method has is assigned.
    """

    name: str
    home: str
    title: str
    reference: str = ""
    scenarios: tuple[str, ...] = ALL_SCENARIOS
    why_not: str = ""
    settings: tuple[Setting, ...] = ()
    choices: tuple[str, ...] = ()
    encoder: str = "mlp"
    keeps_data: bool = False
    needs_earlier_tasks: bool = False
    bound: str = ""
    use_when: str = ""
    not_when: str = ""
    colour: str = ""
    marker: str = ""

    def __post_init__(self) -> None:
        if self.colour and not COLOUR.fullmatch(self.colour):
            raise InputError(f"colour = {self.colour!r} of {self.title}: it must be written as #rrggbb")
        if self.marker and not MARKER.fullmatch(self.marker):
            raise InputError(
                f"marker = {self.marker!r} of {self.title}: it must be one of o v ^ < > 1 2 3 4 8 s p P * h H + x X D "
                "d | _ . , or a letter between dollar signs, $A$"
            )

    @property
    def defaults(self) -> dict[str, float]:
        """Every setting's default, by name."""
        return {setting.name: setting.default for setting in self.settings}

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest value of every setting, by name."""
        return {setting.name: (setting.low, setting.high) for setting in self.settings}

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Refuse unknown settings, or values out of range."""
        known = {setting.name: setting for setting in self.settings}
        for name, value in settings.items():
            if name not in known:
                if not known:
                    raise InputError(f"unknown setting {name!r}: {self.title} has no settings")
                raise unknown(f"setting of {self.title}", name, known)
            low, high = known[name].low, known[name].high
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not number or not -LARGEST <= value <= LARGEST or not low <= value <= high:
                bounds = f"at least {low:g} and at most {high:g}"
                raise InputError(f"setting {name} = {value} of {self.title} is out of range: it must be {bounds}")

    def check_scenario(self, scenario: str) -> None:
        """Refuse a scenario that the method does not support, and say why."""
        if scenario not in self.scenarios:
            raise InputError(
                f"{self.title} does not work in scenario {scenario!r}: {self.why_not}. "
                f"It supports: {', '.join(self.scenarios)}"
            )


def facts_of(method: type) -> MethodFacts:
    """Return a method's facts: its class attribute ``facts``, or derived from its other attributes and its constructor.

    Every attribute is optional: ``title`` defaults to the class's name, ``reference`` to the first line of its
    docstring, ``scenarios`` to all three, the settings to the constructor's arguments, without ``limits``.
    """
    if "facts" in vars(method):
        found: MethodFacts = vars(method)["facts"]
        return found
    said: dict[str, Any] = {}  # attributes of the class and its bases, up to one that has facts
    known: dict[str, Any] = {}  # their settings
    for cls in method.__mro__:
        if "facts" in vars(cls):
            break
        said, known = dict(vars(cls)) | said, arguments_of(cls) | known
    limits, symbols, explain = (
        _by_setting(f"{name} of {method.__name__}", said.get(name, {}), known)
        for name in ("limits", "symbols", "explain")
    )
    settings = []
    for name, default in arguments_of(method).items():
        if default is inspect.Parameter.empty:
            raise InputError(
                f"setting {name} of {method.__name__} has no default: a setting is a number with a default"
            )
        if not isinstance(default, numbers.Real) or isinstance(default, bool):
            raise InputError(
                f"setting {name} of {method.__name__} is {default!r} by default: a setting is a number with a default"
            )
        low, high = _range(f"limits of {method.__name__}, {name}", limits.get(name, (-math.inf, math.inf)))
        settings.append(Setting(name, float(default), low, high, explain.get(name, ""), symbols.get(name, "")))
    words = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", method.__name__)
    return MethodFacts(
        name=said.get("name", "-".join(words).lower() or method.__name__),
        home=f"{method.__module__}:{method.__qualname__}",
        title=said.get("title", method.__name__),
        reference=said.get("reference", (inspect.getdoc(method) or "").partition("\n")[0].rstrip(".")),
        scenarios=_scenarios(f"scenarios of {method.__name__}", said.get("scenarios", ALL_SCENARIOS)),
        why_not=said.get("why_not", "its class says so"),
        settings=tuple(settings),
        choices=tuple(said.get("choices", ())),
        encoder=said.get("encoder", "mlp"),
        keeps_data=bool(said.get("keeps_data", False)),
        needs_earlier_tasks=bool(said.get("needs_earlier_tasks", False)),
        colour=said.get("colour", ""),
        marker=said.get("marker", ""),
    )


def _by_setting(what: str, given: Any, known: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} = {given!r}: it must be a dictionary, by the name of a setting")
    for name in given:
        if name not in known:
            raise unknown(f"setting in {what}", name, known)
    return given


def _range(what: str, given: Any) -> tuple[float, float]:
    pair = tuple(given) if isinstance(given, Sequence) else ()
    if len(pair) != 2 or not all(isinstance(end, numbers.Real) for end in pair) or not pair[0] <= pair[1]:
        raise InputError(f"{what} = {given!r}: it must be the lowest and the highest value, such as (0, math.inf)")
    return pair


def _scenarios(what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InputError(f"{what} = {given!r}: it must be a tuple of names, such as ('class',)")
    for name in given:
        if name not in ALL_SCENARIOS:
            raise unknown(f"scenario in {what}", str(name), ALL_SCENARIOS)
    return tuple(given)


def arguments_of(method: type) -> dict[str, Any]:
    """Return the constructor's arguments with their defaults."""
    if method.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    parameters = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in parameters}
