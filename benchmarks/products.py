"""Iterations whose products oneDNN computes, against the same iterations with PyTorch's usual ones (MKL on x86).

Both are measured on any processor, so that the rule in ``relive.networks.products`` can be judged on it.
"""

from __future__ import annotations

from unittest.mock import patch

from benchmarks.common import Block, Effort, Figure, Findings, in_turns, medians, milliseconds, subject
from benchmarks.floor import METHODS
from relive.networks import products
from relive.report.style import PROTOCOL_TITLES, method_title


def block_with(method: str, protocol: str, *, onednn: bool) -> Block:
    """Return what does iterations of the last task with oneDNN's products, or without."""
    of = subject(protocol, "class", method, rows=2000 if method == "ewc" else None)

    def block(n: int) -> list[float]:
        with patch.object(products, "uses_onednn", lambda: onednn):
            return of.block(n)

    return block


def measure(effort: Effort) -> Findings:
    """Compare six methods in both protocols."""
    found = Findings()
    for protocol, full in (("split", 12), ("permuted", 5)):
        for method in METHODS:
            name = f"{method_title(method)}, {PROTOCOL_TITLES[protocol]}"
            effort.say(name)
            blocks = {kind: block_with(method, protocol, onednn=kind == "oneDNN") for kind in ("MKL", "oneDNN")}
            times = milliseconds(medians(in_turns(blocks, effort.n(6, 1), effort.n(full, 2))))
            found.figures.append(Figure(name, times["MKL"] / times["oneDNN"]))
            found.data[f"{protocol} {method}"] = times
    return found
