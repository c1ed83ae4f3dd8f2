"""What each operator writes while a graph runs, in the order of computation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from graph.leaves import leaves

from tirlite.graph import NUMPY, Call, Function, Library, trace


class Recorder:
    """A library of NumPy's out-variants that keeps a copy of all that is written; copies of whole tensors apart."""

    def __init__(self) -> None:
        self.written: list[np.ndarray] = []
        self.library = Library(self.variant)

    def variant(self, call: Call):
        inner = NUMPY.variant(call)

        def run(args: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
            inner(args, outs)
            if call.op.name != "identity":
                self.written += [out.copy() for out in outs]

        return run


def written_by_meaning(function: Function, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the operators give that do more than change the shape."""
    traced = trace(function, *arguments)
    calls = [value for expr, value in traced.items() if isinstance(expr, Call) and not expr.op.is_view]
    return leaves(tuple(calls))
