"""The methods by name. A new one is a file here and a line in ``METHODS``."""

from __future__ import annotations

from relive.errors import unknown
from relive.methods.base import Method, Problem, check_scenario, make, settings_of
from relive.methods.ewc import EWC, OnlineEWC
from relive.methods.generative_replay import DGR, DGRDistill, RtF
from relive.methods.lwf import LwF
from relive.methods.offline import Offline
from relive.methods.si import SI
from relive.methods.xdg import XdG

METHODS: dict[str, type[Method]] = {
    "none": Method,
    "xdg": XdG,
    "ewc": EWC,
    "online-ewc": OnlineEWC,
    "si": SI,
    "lwf": LwF,
    "dgr": DGR,
    "dgr-distill": DGRDistill,
    "rtf": RtF,
    "offline": Offline,
}


def make_method(name: str, /, **settings: float) -> Method:
    """Return the method of that name, with its settings by name; those not given keep their defaults.

    >>> make_method("ewc", lam=100.0).title
    'EWC'
    """
    return make(method_class(name), settings)


def method_class(name: str) -> type[Method]:
    """Return the method of that name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


__all__ = ["METHODS", "Method", "Problem", "check_scenario", "make_method", "method_class", "settings_of"]
