"""How to show what is in no catalogue here: stored with a result, and read back from results. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from relive._util.registry import is_address
from relive.core.facts import COLOUR, MARKER, MethodFacts, Setting, facts_of
from relive.data.catalogue import PROTOCOLS, protocol_facts
from relive.experiments.spec import RunResult, RunSpec
from relive.methods import METHODS, method_class

SYMBOL, IN_PERCENT = "symbol of {}", "{} in percent"  # of a setting, in RunResult.shown


def display_facts(spec: RunSpec) -> dict[str, str]:
    """Return how a spec's method and protocol are shown, if they are not in a catalogue."""
    known = {}
    if is_address(spec.method) or METHODS.is_installed(spec.method):
        own = is_address(spec.method)
        facts = facts_of(method_class(spec.method)) if own else METHODS[spec.method]  # as the file has them now
        known = {"title": facts.title, "colour": facts.colour, "marker": facts.marker}
        known["keeps_data"] = "yes" if facts.keeps_data else ""
        for setting in facts.settings:
            known[SYMBOL.format(setting.name)] = setting.symbol
            known[IN_PERCENT.format(setting.name)] = "yes" if setting.percent else ""
    if is_address(spec.protocol) or PROTOCOLS.is_installed(spec.protocol):
        known["protocol"] = protocol_facts(spec.protocol).title
    return {name: value for name, value in known.items() if value}


def register_methods_in(results: Iterable[RunResult]) -> None:
    """Register methods that are known only from results, so that tables and figures have their titles and colours."""
    for result in results:
        name = result.spec.method
        if name not in METHODS:
            title = result.shown.get("title", name.rpartition(":")[2])
            keeps_data = "keeps_data" in result.shown
            colour, marker = (result.shown.get(what, "") for what in ("colour", "marker"))
            colour = colour if COLOUR.fullmatch(colour) else ""  # an invalid one is replaced
            marker = marker if MARKER.fullmatch(marker) else ""
            METHODS.register(
                MethodFacts(
                    name,
                    name,
                    title,
                    settings=tuple(_shown_setting(setting, result.shown) for setting in result.spec.settings),
                    keeps_data=keeps_data,
                    colour=colour,
                    marker=marker,
                )
            )


def _shown_setting(name: str, shown: Mapping[str, str]) -> Setting:
    """Return a setting as far as a result shows it: its default is not known."""
    return Setting(name, math.nan, symbol=shown.get(SYMBOL.format(name), ""), percent=IN_PERCENT.format(name) in shown)
