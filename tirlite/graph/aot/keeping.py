"""Finds the tensors between the operators of a program that can be kept for a look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tirlite.diag import GraphError, Message
from tirlite.graph.aot.folding import folded_calls
from tirlite.graph.expr import Call, Expr, If
from tirlite.graph.program import Program
from tirlite.graph.types import TensorType


class CannotKeep(Message):
    """A compiled graph is to keep something that is not a tensor between its operators.

    Example: `tl.graph.compile(f, keep=[a])`, where `a` is computed in a branch of an If, or in another function.
    Fix: Name calls and Ifs that the body of the function computes in any case, with one tensor as their result.
    """

    code = "cannot-keep"
    raises = GraphError
    title = "`{function}` cannot keep {expr}"
    label = "this one"
    help = "calls and Ifs outside of all branches, with one tensor as their result, can be kept"

    function: str
    expr: str


def tensors_to_keep(made: Program) -> Iterator[Expr]:
    """All that can be kept, in program order."""
    folded = folded_calls(made)
    for step in made.body.steps:
        if isinstance(step, Call | If) and isinstance(step.type, TensorType) and step not in folded:
            yield step


def check_kept(made: Program, keep: Iterable[Expr]) -> frozenset[Expr]:
    """What to keep, as a set. Raises GraphError for what cannot be kept."""
    wanted = [made.resolved(expr) for expr in keep]
    if wanted:
        possible = frozenset(tensors_to_keep(made))
        for expr in wanted:
            if expr not in possible:
                raise CannotKeep(made.function.name, repr(expr), span=expr.span).error()
    return frozenset(wanted)
