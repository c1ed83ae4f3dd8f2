"""Folds calls whose operands are all constants, and finds the tensors between operators that can be kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tirlite.diag import GraphMessage, KernelRunError
from tirlite.graph.evaluate import applied
from tirlite.graph.expr import Call, Constant, Expr, If, constant
from tirlite.graph.op import Op
from tirlite.graph.program import Program
from tirlite.graph.types import TensorType
from tirlite.sizes import Size

# A folded value has at most this many bytes, or twice those of its operands: more would cost more than it saves.
_SMALL_BYTES = 1 << 16


def folded_calls(made: Program) -> dict[Expr, Constant]:
    """The value of each call of an operator with one tensor as its result, all of whose operands are known.

    Weights are dequantized here whatever their size: each run would do it again.
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


class CannotKeep(GraphMessage):
    """A compiled graph is to keep something that is not a tensor between its operators.

    Example: `tl.graph.compile(f, keep=[a])`, where `a` is computed in a branch of an If, or in another function.
    Fix: Name calls and Ifs that the body of the function computes in any case, with one tensor as their result.
    """

    title = "`{function}` cannot keep {expr}"
    label = "this one"
    help = "calls and Ifs outside of all branches, with one tensor as their result, can be kept"


def tensors_to_keep(made: Program) -> Iterator[Expr]:
    """The calls and Ifs whose tensors can be kept, in program order."""
    folded = folded_calls(made)
    for step in made.body.steps:
        if isinstance(step, Call | If) and isinstance(step.type, TensorType) and step not in folded:
            yield step


def check_kept(made: Program, keep: Iterable[Expr]) -> frozenset[Expr]:
    """The resolved expressions to keep. Raises GraphError if one cannot be kept."""
    wanted = [made.resolved(expr) for expr in keep]
    if wanted:
        possible = frozenset(tensors_to_keep(made))
        for expr in wanted:
            if expr not in possible:
                raise CannotKeep(made.function.name, repr(expr), span=expr.span).error()
    return frozenset(wanted)
