"""Gives all dims of one name in a function one variable: within a function a dim is its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tirlite.ir.expr import Buffer, Expr, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, View
from tirlite.ir.walk import distinct
from tirlite.sizes.dim import contradiction


def with_one_dim_each(func: PrimFunc) -> PrimFunc:
    """`func` with the variable that is met first in the place of all that stand for the same dim.

    Functions that it calls have dims of their own. Raises KernelError for dims of one name with different facts.
    """
    met = dict.fromkeys(_dims(func))
    first: dict[str, Var] = {}
    others: dict[Var, Expr] = {}
    for var in met:
        assert var.dim is not None
        kept = first.setdefault(var.dim.name, var)
        if kept is not var:
            others[var] = kept
    if not others:
        return func
    from tirlite.ir.rewrite import Substitution, substitute  # for the few functions that have several

    message = contradiction(var.dim for var in met if var.dim is not None)
    if message is not None:
        raise message.replaced(span=func.span).error()
    shapes = Substitution(others, {})
    params = {each: replace(each, shape=shapes.shape(each)) for each in func.params if isinstance(each, Buffer)}
    return func.replaced(
        params=tuple(params[each] if isinstance(each, Buffer) else each for each in func.params),
        outputs=tuple(params[each] for each in func.outputs),
        body=substitute(func.body, others, params),
    )


def _dims(func: PrimFunc) -> Iterator[Var]:
    """The dims of the parameters, then those that the body mentions."""
    yield from (var for var in func.dims if var.dim is not None)
    for node in distinct(func.body):
        yield from _variables((node,))
        if isinstance(node, (Allocate, View)):
            for extent in node.buffer.shape:
                yield from _variables(distinct(extent))


def _variables(nodes: Iterable[object]) -> Iterator[Var]:
    return (node for node in nodes if isinstance(node, Var) and node.dim is not None)
