"""Computes the calls of a program whose value is known already: those of constants alone."""

from __future__ import annotations

import numpy as np

from tirlite.diag import KernelRunError
from tirlite.graph.evaluate import applied
from tirlite.graph.expr import Call, Constant, Expr, constant
from tirlite.graph.op import Op
from tirlite.graph.program import Program
from tirlite.graph.types import TensorType
from tirlite.sizes import Size

# A value may be this many bytes, or twice those that it is made of: more would be kept than is saved.
_SMALL_BYTES = 1 << 16


def folded_calls(made: Program) -> dict[Expr, Constant]:
    """The value of each call of an operator with one tensor as its result, all of whose operands are known.

    Weights that stay floats are dequantized here, whatever that takes: each call would do it anew.
    """
    found: dict[Expr, Constant] = {}
    for step in made.steps():
        if not isinstance(step, Call) or not isinstance(step.op, Op) or not isinstance(step.type, TensorType):
            continue
        args = [_known(made.resolved(arg), found) for arg in step.args]
        operands = [arg for arg in args if arg is not None]
        is_small = step.op.name == "dequantize_linear" or _is_small(step.type.bytes, operands)
        if len(operands) == len(args) and not step.attrs.symbolic_sizes() and is_small:
            try:
                value = applied(step, [each.value for each in operands], {})
            except KernelRunError:  # which tells of it if it is ever computed
                continue
            assert isinstance(value, np.ndarray)
            found[step] = constant(value, step.type.dtype, name=step.name, span=step.span)
    return found


def _known(expr: Expr, found: dict[Expr, Constant]) -> Constant | None:
    return expr if isinstance(expr, Constant) else found.get(expr)


def _is_small(size: Size, operands: list[Constant]) -> bool:
    limit = max(_SMALL_BYTES, 2 * sum(each.value.nbytes for each in operands))
    return isinstance(size, int) and size <= limit
