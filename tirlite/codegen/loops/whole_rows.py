"""Emits nests over whole rows of arrays as one loop over all their elements.

In `for i in range(h): for j in range(w): y[c, i, j] = x[c, i, j] * g[c]` rows are contiguous in memory, so the loop
over j may continue from row to row: with i = 0, `y[c, i, j]` is element j of the image. So vectors are full however
short the rows are.
"""

from __future__ import annotations

from tirlite.analysis.loops.patterns import whole_rows
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.values import Value, integer
from tirlite.ir.stmt import For


def as_one_row(values: Expressions, loop: For, *bounds: Value) -> tuple[For, tuple[Value, ...]]:
    """The loop to emit and its bounds: the innermost of a nest over whole rows, else `loop` itself."""
    nest = whole_rows(loop) if values.joins_rows else [loop]
    if len(nest) == 1:
        return loop, bounds
    *outer, innermost = nest
    for each in outer:
        values.bind(each.var, integer(0))
    for inner in nest[1:]:
        extent = values.value(inner.stop)
        bounds = tuple(values.out.product(bound, extent) for bound in bounds)
    return innermost, bounds
