"""How a prediction is computed, in operations with ONNX's names: NumPy executes them, an ONNX file holds them.

Values are identified by name. The operations have ONNX's semantics (opset 17) and attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relive.inference.operators import OPERATORS

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Operation:
    """One step: an operator, the names of its inputs and of its output, and its attributes."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass
class Graph:
    """Operations in execution order.

    >>> graph = Graph()
    >>> total = graph.add("Add", "x", np.array([1.0, 2.0]))
    >>> graph.run({"x": np.array([10.0, 20.0])}, total).tolist()
    [11.0, 22.0]
    """

    constants: dict[str, Array] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def add(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        """Append an operation, and return the name of its output; arrays among its inputs become constants."""
        names = tuple(value if isinstance(value, str) else self._constant(value) for value in inputs)
        output = f"v{len(self.operations)}"
        self.operations.append(Operation(operator, names, output, attributes))
        return output

    def _constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        return name

    def run(self, given: Mapping[str, Array], wanted: str) -> Array:
        """Execute the operations, and return one value."""
        values: dict[str, Array] = self.constants | dict(given)
        for step in self.operations:
            values[step.output] = OPERATORS[step.operator](*(values[name] for name in step.inputs), **step.attributes)
            if step.output == wanted:
                break
        return values[wanted]

    # ---- building blocks ---------------------------------------------------------------------------------------------

    def linear(self, x: str, weight: Array, bias: Array) -> str:
        """Return x Wᵀ + b, (n, units)."""
        return self.add("Gemm", x, weight, bias, transB=1)

    def gathered(self, rows: Array, task: str) -> str:
        """Return each sample's row of an array with one row per task, (n, …)."""
        return self.add("Gather", rows, task, axis=0)

    def cast(self, x: str, dtype: npt.DTypeLike) -> str:
        """Return a value converted to another numeric type."""
        return self.add("Cast", x, to=CAST[np.dtype(dtype)])


CAST = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(np.float64): 11}  # ONNX's type numbers
