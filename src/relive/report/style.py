"""How everything is called and drawn: names, colours and markers, the same for a method everywhere.

The colours are safe for the colour-blind (Okabe & Ito, with a violet, a wine red and a darker grey); where methods
share a panel, each also has a marker of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

METHOD_TITLES = {
    "none": "None",
    "xdg": "XdG",
    "ewc": "EWC",
    "online-ewc": "Online EWC",
    "si": "SI",
    "lwf": "LwF",
    "dgr": "DGR",
    "dgr-distill": "DGR+distill",
    "rtf": "RtF",
    "offline": "Offline",
}
BOUNDS = {"none": "lower bound", "offline": "upper bound"}
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

METHOD_COLOURS = {
    "none": "#6f6f6f",
    "xdg": "#4b2e83",
    "ewc": "#0072b2",
    "online-ewc": "#56b4e9",
    "si": "#009e73",
    "lwf": "#e69f00",
    "dgr": "#882255",
    "dgr-distill": "#cc79a7",
    "rtf": "#d55e00",
    "offline": "#000000",
}
METHOD_MARKERS = {
    "none": "X",
    "xdg": "P",
    "ewc": "s",
    "online-ewc": "D",
    "si": "^",
    "lwf": "v",
    "dgr": "<",
    "dgr-distill": ">",
    "rtf": "o",
    "offline": "h",
}
TASK_COLOUR_MAP, TASK_COLOUR_RANGE = "viridis", (0.0, 0.88)  # tasks have an order, and so have these colours
ACCURACY_COLOUR_MAP = "cividis"
LINE_STYLES = ("-", "--", "-.", ":")

SYMBOLS = {"lam": "λ", "gamma": "γ", "c": "c", "xi": "ξ", "proportion": "X"}  # in the order they are said
SETTING_NAMES = {"lam": "λ", "c": "c", "proportion": "X (share of gated units)"}


def settings_text(settings: Mapping[str, float]) -> str:
    """Say a method's settings in the paper's symbols.

    >>> settings_text({"gamma": 1.0, "lam": 5000.0}), settings_text({"proportion": 0.95})
    ('λ = 5000, γ = 1', 'X = 95 %')
    >>> settings_text({"lam": 250000.0}), settings_text({"lam": 1e13})
    ('λ = 2.5e5', 'λ = 1e13')
    """
    names = [*(name for name in SYMBOLS if name in settings), *(name for name in settings if name not in SYMBOLS)]
    return ", ".join(f"{SYMBOLS.get(name, name)} = {_value(name, settings[name])}" for name in names)


def _value(name: str, value: float) -> str:
    if name == "proportion":
        return f"{100 * value:g} %"
    if value < 1e5:
        return f"{value:g}"
    digits, _, power = f"{value:e}".partition("e+")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def method_title(method: str) -> str:
    """Return a method's name for people; one that the paper does not have keeps its own."""
    return METHOD_TITLES.get(method, method)
