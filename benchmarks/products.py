"""Iterations whose large products oneDNN computes, against the same iterations with MKL's, and one product alone.

Both are measured on any processor, so that the rule in ``relive.networks.products`` can be judged on it. One thread:
``OPENBLAS_NUM_THREADS=1`` holds NumPy to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import torch

from benchmarks.common import Block, Effort, Figure, Findings, in_turns, medians, milliseconds, subject
from benchmarks.floor import METHODS
from relive.networks import products
from relive.report.style import PROTOCOL_TITLES, method_title

SHAPE = 256, 784, 400  # rows, inputs, outputs: the largest layer of split MNIST


def with_onednn(block: Block, uses: bool) -> Block:
    """Return the block with oneDNN's products, or without."""

    def inside(n: int) -> list[float]:
        with patch.object(products, "uses_onednn", lambda: uses):
            return block(n)

    return inside


def repeated(work: Callable[[], object]) -> Block:
    """Return what does some work n times, and returns the seconds of each."""

    def block(n: int) -> list[float]:
        seconds = []
        for _ in range(n):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return seconds

    return block


def gflops(rounds: int, size: int) -> dict[str, float]:
    """Return the GFLOP/s of one product by each library."""
    n, inputs, outputs = SHAPE
    x, weight = torch.rand(n, inputs), torch.rand(outputs, inputs)
    a, b = x.numpy(), weight.numpy()
    by_torch = repeated(lambda: products.affine(x, weight))
    blocks = {
        "MKL": with_onednn(by_torch, False),
        "oneDNN": with_onednn(by_torch, True),
        "NumPy": repeated(lambda: a @ b.T),
    }
    seconds = medians(in_turns(blocks, rounds, size))
    return {name: round(2 * n * inputs * outputs / value / 1e9, 1) for name, value in seconds.items()}


def measure(effort: Effort) -> Findings:
    """Compare six methods in both protocols."""
    effort.say("one product")
    alone = gflops(effort.n(20, 2), 20)
    name = f"the product of {SHAPE[0]} × {SHAPE[1]} and {SHAPE[1]} × {SHAPE[2]} alone"
    note = f"GFLOP/s: oneDNN {alone['oneDNN']:.0f}, MKL {alone['MKL']:.0f}, NumPy's OpenBLAS {alone['NumPy']:.0f}"
    found = Findings([Figure(name, alone["oneDNN"] / alone["MKL"], note=note)], {"GFLOP/s": alone})
    for protocol, full in (("split", 12), ("permuted", 5)):
        for method in METHODS:
            effort.say(name := f"{method_title(method)}, {PROTOCOL_TITLES[protocol]}")
            rows = 2000 if method == "ewc" else None
            subjects = {library: subject(protocol, "class", method, rows=rows) for library in ("MKL", "oneDNN")}
            blocks = {library: with_onednn(of.block, library == "oneDNN") for library, of in subjects.items()}
            times = milliseconds(medians(in_turns(blocks, effort.n(6, 1), effort.n(full, 2))))
            found.figures.append(Figure(name, times["MKL"] / times["oneDNN"]))
            found.data[f"{protocol} {method}"] = times
    return found
