"""How much of an iteration is its matrix products: the floor below which no code around them can go.

Every product of a real iteration of the last task (``mm``, ``addmm``, or oneDNN's) is recorded with its shapes and
strides, and repeated by the same library on preallocated operands. The time of these bare products over the
time of the iteration is the floor share; the two are measured alternately, iteration by iteration.

``python -m benchmarks.floor '"split"' '"rtf"' 40`` prints the profile of one method as JSON; another PYTHONPATH makes
it that of another commit.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.common import Effort, Figure, Findings, Subject, fresh, one_thread, subject
from relive.report.style import PROTOCOL_TITLES, method_title

METHODS = ("none", "ewc", "si", "lwf", "dgr-distill", "rtf")
GOALS = {"split": 0.80, "permuted": 0.85}  # of the generative methods
GOAL = 0.70  # of the others
PRODUCTS = ("aten::mm", "aten::addmm", "mkldnn::_linear_pointwise")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """A product a b: shape and strides of each operand, and whether oneDNN computes it."""

    a: tuple[Shape, Shape]
    b: tuple[Shape, Shape]
    onednn: bool = False

    @property
    def flop(self) -> int:
        """How many multiplications and additions it is."""
        return 2 * self.a[0][0] * self.a[0][1] * self.b[0][1]

    def prepared(self) -> Callable[[], object]:
        """Return what computes it, with operands of these layouts."""
        a, b = _like(*self.a), _like(*self.b)
        if self.onednn:
            return lambda: torch.ops.mkldnn._linear_pointwise(a, b.T, None, "none", [], "")
        out = torch.empty(len(a), b.shape[1])
        return lambda: torch.mm(a, b, out=out)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the matrix products that are computed while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Product] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.products.append(_product(*args[-2:]))
        elif func is torch.ops.mkldnn._linear_pointwise.default:
            self.products.append(_product(args[0], args[1].T, onednn=True))
        return func(*args, **(kwargs or {}))


def _product(a: Tensor, b: Tensor, *, onednn: bool = False) -> Product:
    return Product((tuple(a.shape), a.stride()), (tuple(b.shape), b.stride()), onednn)


def recorded(work: Callable[[], object]) -> list[Product]:
    """Return the matrix products of a call."""
    recorder = _Recorder()
    with recorder:
        work()
    return recorder.products


class _Enough(Exception):  # noqa: N818
    """The iteration has been recorded."""


def products_of(of: Subject) -> list[Product]:
    """Return the matrix products of one iteration."""
    recorder = _Recorder()

    def on_step(iteration: int, loss: float) -> None:
        if iteration == 1:
            recorder.__enter__()  # type: ignore[no-untyped-call]
        else:
            recorder.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            raise _Enough

    of.learner.seen = len(of.tasks) - 1
    with contextlib.suppress(_Enough):
        of.learner.learn(of.tasks, 2, on_step)
    return recorder.products


def flop(products: Sequence[Product]) -> int:
    """Return how many multiplications and additions the products are."""
    return sum(product.flop for product in products)


class Floor:
    """The products alone, on preallocated operands."""

    def __init__(self, products: Sequence[Product]) -> None:
        self.work = [product.prepared() for product in products]

    @torch.no_grad()
    def __call__(self) -> float:
        """Do them, and return the seconds."""
        start = time.perf_counter()
        for compute in self.work:
            compute()
        return time.perf_counter() - start


def _like(shape: Shape, stride: Shape) -> Tensor:
    """Return a matrix stored by rows or by columns, as the recorded one was."""
    transposed = stride[0] == 1 and shape[0] != 1
    return torch.randn(shape[::-1]).T if transposed else torch.randn(shape)


def against_floor(of: Subject, floor: Floor, n: int, warm_up: int = 5) -> tuple[list[float], list[float]]:
    """Return the seconds of n iterations and of n times the bare products, measured alternately."""
    iterations, floors, last = list[float](), list[float](), 0.0

    def on_step(iteration: int, loss: float) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds = floor()
        if iteration > warm_up:
            iterations.append(now - last)
            floors.append(seconds)
        last = time.perf_counter()

    of.learner.seen = len(of.tasks) - 1
    of.learner.learn(of.tasks, n + warm_up, on_step)
    return iterations, floors


def share(protocol: str, method: str, n: int) -> dict[str, float]:
    """Return the milliseconds of an iteration of the last task and of its products, and one over the other."""
    of = subject(protocol, "class", method, rows=2000 if method == "ewc" else None)
    products = products_of(of)
    iterations, floors = against_floor(of, Floor(products), n)
    iteration, floor = statistics.median(iterations), statistics.median(floors)
    return {
        "iteration": 1000 * iteration,
        "floor": 1000 * floor,
        "share": floor / iteration,
        "products": len(products),
        "gflop": flop(products) / 1e9,
    }


def measure(effort: Effort) -> Findings:
    """Return the floor share of six methods in both protocols."""
    return _shares(effort, share)


def measure_avx2(effort: Effort) -> Findings:
    """Return the same where PyTorch is held to AVX2, as on older processors; the products are MKL's then."""
    found = _shares(effort, lambda *arguments: fresh("benchmarks.floor", *arguments, ATEN_CPU_CAPABILITY="avx2"))
    found.machine = {"vector_instructions": "AVX2", "products": "MKL"}
    return found


def _shares(effort: Effort, share: Callable[[str, str, int], dict[str, float]]) -> Findings:
    found = Findings()
    for protocol, full in (("split", 80), ("permuted", 25)):
        for method in METHODS:
            effort.say(f"{method_title(method)}, {PROTOCOL_TITLES[protocol]}")
            result = share(protocol, method, effort.n(full, 6))
            goal = GOALS[protocol] if method in ("dgr-distill", "rtf") else GOAL
            name = f"{method_title(method)}, {PROTOCOL_TITLES[protocol]}"
            found.figures.append(Figure(name, result["share"], "", goal))
            found.data[f"{protocol} {method}"] = result
    return found


def anatomy(protocol: str, method: str, n: int) -> dict[str, float]:
    """Return where an iteration's time goes, in units of its bare products.

    The profiler slows down small operations, so it only decides how the time outside the products is divided.
    """
    result = share(protocol, method, n)
    of = subject(protocol, "class", method)
    of.block(3)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        start = time.perf_counter()
        of.block(n)
        wall = time.perf_counter() - start
    spent = {event.key: event.self_cpu_time_total / 1e6 for event in profiled.key_averages()}
    products = sum(spent.get(name, 0.0) for name in PRODUCTS)
    adam = spent.get("aten::_fused_adam_", 0.0)
    operations = sum(seconds for name, seconds in spent.items() if name.startswith("aten::")) - products - adam
    scale = (1 / result["share"] - 1) / (wall - products)
    return result | {
        "matrix products": 1.0,
        "Adam's kernel": adam * scale,
        "other operations": operations * scale,
        "Python and autograd": (wall - products - adam - operations) * scale,
    }


if __name__ == "__main__":
    one_thread()
    print(json.dumps(anatomy(*map(json.loads, sys.argv[1:]))))
