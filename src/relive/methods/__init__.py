"""The methods, one file per idea. ``catalogue`` has the facts; torch is imported when a method is first created."""

from __future__ import annotations

import warnings
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from relive._util.errors import InputError, nearest
from relive._util.registry import is_address, load_object
from relive.core.facts import MethodFacts, arguments_of, facts_of
from relive.methods.catalogue import METHODS

if TYPE_CHECKING:
    from relive.core.method import Method

MISSPELT = 0.8  # how alike two names are, from 0 to 1, if one is likely meant to be the other


def make_method(name: str, /, **settings: float) -> Method:
    """Create a method by name, with its settings by name; those not given keep their defaults.

    >>> make_method("ewc", lam=100.0).facts.title
    'EWC'
    >>> make_method("si", c=-1)
    Traceback (most recent call last):
    ...
    relive._util.errors.InputError: setting c = -1 of SI is out of range: it must be at least 0 and at most 1e+38
    """
    cls = method_class(name)
    facts_of(cls).check_settings(settings)
    whole = {name for name, default in arguments_of(cls).items() if isinstance(default, int)}
    for name, value in settings.items():
        if name in whole and value != int(value):
            raise InputError(f"setting {name} = {value:g} of {facts_of(cls).title} must be a whole number")
    return cls(**{name: int(value) if name in whole else value for name, value in settings.items()})


def method_class(name: str) -> type[Method]:
    """Return a method's class by name or address: ``my_file.py:MyMethod``, ``package.module:MyMethod``."""
    from relive.core.method import Method

    cls = load_object(name if is_address(name) else METHODS[name].home)
    if not isinstance(cls, type) or not issubclass(cls, Method):
        raise InputError(f"{name} is {cls!r}: a method must be a class that extends relive.Method")
    _warn_of_misspelt_hooks(cls, Method)
    return cls


def _warn_of_misspelt_hooks(cls: type[Method], base: type[Method]) -> None:
    """Warn of functions that are named almost like a hook, and are never called."""
    hooks = [name for name in vars(base) if not name.startswith("_") and callable(getattr(base, name))]
    for name, value in vars(cls).items():
        near = nearest(name, hooks) if callable(value) and not name.startswith("_") and name not in hooks else None
        if near is not None and SequenceMatcher(None, name, near).ratio() > MISSPELT:
            warnings.warn(
                f"{cls.__name__}.{name} is not a hook and is never called: did you mean {near}?",
                stacklevel=1,  # one place, so that it is said once, whoever asks for the class
            )


def method_facts(name: str) -> MethodFacts:
    """Return a method's facts by name or address; torch is only needed for an address."""
    if name in METHODS or not is_address(name):
        return METHODS[name]
    METHODS.register(replace(facts_of(method_class(name)), name=name, home=name))
    return METHODS[name]


def is_shipped(name: str) -> bool:
    """Return whether a method comes with this package, so that its facts are tested."""
    return method_facts(name).home.startswith(f"{__name__}.")


__all__ = ["METHODS", "is_shipped", "make_method", "method_class", "method_facts"]
