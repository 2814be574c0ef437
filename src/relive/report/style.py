"""Names, colours and markers, the same for a method everywhere.

The facts about methods are in the catalogue; this is how they are presented.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from relive.core.facts import Setting
from relive.methods import METHODS

SCENARIO_TITLES = {"task": "Task-IL", "domain": "Domain-IL", "class": "Class-IL"}
PROTOCOL_TITLES = {"split": "Split MNIST", "permuted": "Permuted MNIST"}

WORDS = [  # what a reader of the report should know
    ("Task-IL", "the task is given when predicting, and only its own classes are in question."),
    ("Domain-IL", "the task is not given, nor asked: split, first or second digit of its pair; permuted, which digit."),
    (
        "Class-IL",
        "the task is not given and must be found: split, which of all digits; permuted, also which permutation.",
    ),
    ("Mean ± SEM", "the mean of n runs with different seeds, and its standard error."),
    ("Forgetting", "how far the accuracy on earlier tasks fell from its best, on average."),
    ("Backward transfer", "how much later tasks changed the accuracy on earlier ones, on average."),
    ("Kept besides", "numbers that a method stores between tasks, besides the network that it trains."),
    ("None, Offline", "plain training on each task in turn, and training on all tasks so far: the two bounds."),
    ("XdG", "switches off a share of the hidden units, other ones for each task."),
    ("EWC, Online EWC, SI", "hold those weights near their old values that mattered for earlier tasks."),
    ("LwF", "replays the current pictures with the old network’s answers to them."),
    ("DGR, DGR+distill", "replay pictures from a second, generating network; with hard or with soft targets."),
    ("RtF", "replays pictures that the network’s own feedback connections generate, with soft targets."),
    ("λ, γ, c, ξ, X", "the methods’ settings: strengths, a decay, a damping, the share of units switched off."),
]

# For methods without their own colour or marker; the most distinct colours come first.
SPARE_COLOURS = (
    "#117733",
    "#aa4499",
    "#999933",
    "#332288",
    "#1e40ff",
    "#33cc33",
    "#ff2fd0",
    "#a6761d",
    "#e6d400",
    "#ff8a80",
)
SPARE_MARKERS = ("p", "d", "8", "H", "+", "x", "1", "2", "3", "4", "|", "_")
TASK_COLOUR_MAP, TASK_COLOUR_RANGE = "viridis", (0.0, 0.88)  # tasks have an order, and so have these colours
ACCURACY_COLOUR_MAP = "cividis"
LINE_STYLES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")

SETTING_NAMES = {"lam": "λ", "c": "c", "proportion": "X (share of gated units)"}


def settings_text(settings: Mapping[str, float], method: str) -> str:
    """Format settings of a method with its symbols.

    >>> settings_text({"gamma": 1.0, "lam": 5000.0}, "online-ewc"), settings_text({"proportion": 0.95}, "xdg")
    ('λ = 5000, γ = 1', 'X = 95 %')
    >>> settings_text({"lam": 250000.0}, "ewc"), settings_text({"lam": 1e13}, "theirs.py:Other")
    ('λ = 2.5e5', 'lam = 1e13')
    """
    known = {setting.name: setting for setting in METHODS[method].settings} if method in METHODS else {}
    known |= {name: Setting(name, value) for name, value in settings.items() if name not in known}
    return ", ".join(
        f"{setting.symbol or name} = {_value(settings[name], setting.percent)}"
        for name, setting in known.items()
        if name in settings
    )


def _value(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:g} %"
    if value < 1e5:
        return f"{value:g}"
    digits, _, power = f"{value:e}".partition("e+")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def method_title(method: str) -> str:
    """Return a method's name for people.

    >>> method_title("dgr-distill"), method_title("theirs.py:Other")
    ('DGR+distill', 'Other')
    """
    return METHODS[method].title if method in METHODS else method.rpartition(":")[2]


def shades(colour: str, n: int) -> list[str]:
    """Return a colour and paler ones, for several settings of one method.

    >>> shades("#009e73", 3)
    ['#009e73', '#4cbb9d', '#99d8c7']
    """
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    paler = [0.6 * i / max(n - 1, 1) for i in range(n)]  # share of white
    return ["#" + "".join(f"{int(part + (255 - part) * white):02x}" for part in parts) for white in paler]


def method_names(methods: Iterable[str]) -> dict[str, str]:
    """Return each method's display name; those with the same title are distinguished by their location.

    >>> method_names(["si", "a.py:Mine", "b.py:Mine"])
    {'si': 'SI', 'a.py:Mine': 'Mine (a.py)', 'b.py:Mine': 'Mine (b.py)'}
    """
    titles = {method: method_title(method) for method in methods}
    often = Counter(titles.values())
    return {
        method: title if often[title] == 1 else f"{title} ({method.rpartition(':')[0] or method})"
        for method, title in titles.items()
    }


def keeps_data(method: str) -> bool:
    """Return whether a method stores inputs of earlier tasks, as far as known."""
    return method in METHODS and METHODS[method].keeps_data


def method_bound(method: str) -> str:
    """Return "lower bound" or "upper bound" for a method that is one."""
    return METHODS[method].bound if method in METHODS else ""


def method_colour(method: str) -> str:
    """Return a method's colour, the same everywhere."""
    taken = {facts.colour for facts in METHODS.values()}
    return _own(method, "colour") or _spare(method, _most_different(SPARE_COLOURS, taken), taken)


def method_marker(method: str) -> str:
    """Return a method's marker, the same everywhere."""
    return _own(method, "marker") or _spare(method, SPARE_MARKERS, {facts.marker for facts in METHODS.values()})


def _most_different(colours: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Order colours so that each is as different as possible from those taken and those before it.

    >>> _most_different(["#110000", "#0000ff", "#eeeeee"], ["#000000", "#ffffff"])
    ('#0000ff', '#eeeeee', '#110000')
    """
    order, left = [c for c in taken if c], list(colours)
    n = len(order)
    while left:
        order.append(max(left, key=lambda one: min((_distance(one, other) for other in order), default=0)))
        left.remove(order[-1])
    return tuple(order[n:])


def _distance(one: str, other: str) -> int:
    """Return the squared distance of two colours, #rrggbb."""
    a, b = (bytes.fromhex(colour.removeprefix("#")) for colour in (one, other))
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def _own(method: str, what: str) -> str:
    return str(getattr(METHODS[method], what)) if method in METHODS else ""


def _spare(method: str, spare: tuple[str, ...], taken: set[str]) -> str:
    """Return a spare colour or marker for a method without one: one that no other has, if there are any left."""
    without = [name for name, facts in METHODS.items() if not facts.colour or not facts.marker]
    free = [one for one in spare if one not in taken] or list(spare)
    return free[(without.index(method) if method in without else len(without)) % len(free)]
