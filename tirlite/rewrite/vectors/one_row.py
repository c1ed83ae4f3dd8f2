"""Collapses a nest over whole rows, which are contiguous in memory, to one loop over all elements, and vectorizes it.

So vectors are full, however short rows are: `y[i, j] = tl.exp(x[i, j])` is computed on flat views of the arrays.
Rows shorter than a vector may have an inner loop for each element, such as filters of four channels:
`y[i, j] += f[p] * x[i + p, j]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import has_much_to_do, whole_rows
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Expr, Load, Mul, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import For, SeqStmt, Stmt, Store, nested
from tirlite.ir.walk import accesses_in, chain_from, is_constant
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.flat_views import declared
from tirlite.rewrite.vectors.groups import Grouped
from tirlite.rewrite.vectors.jam import is_repeatable
from tirlite.rewrite.vectors.lanes import NotVector
from tirlite.rewrite.vectors.local_elements import with_local_elements
from tirlite.rewrite.vectors.uniform import uniform_scalars
from tirlite.rewrite.vectors.vector_loops import VectorLoops, stencil_widths_of, widths_of
from tirlite.target import Processor


def one_row(
    chain: Sequence[For], facts: Facts, inside: Callable[[Load], bool], processor: Processor
) -> tuple[Stmt, ...] | None:
    """The statements that replace perfectly nested independent loops.

    None if not even the innermost two go over whole rows of parameters and nothing else, or have no vector form.
    """
    touches = facts.touches_in.get(chain[-1], {})
    body = with_local_elements(chain[-1], touches)
    if body is not chain[-1].body:
        (outermost,) = nested(chain, *body.stmts).stmts
        assert isinstance(outermost, For)
        chain = chain_from(outermost)[: len(chain)]
    places = range(len(chain) - 1)
    found = [(at, rows) for at in places if (rows := as_one_row(chain[at:], facts.params, of_loops=True)) is not None]
    if not found:
        return None
    at, (row, flat) = found[0]
    widths = widths_of(row, processor) if has_much_to_do(row) else stencil_widths_of(row, processor)
    lanes = partial(Grouped, row, {}, inside, uniform_scalars(row.body, row.var))
    repeats = is_repeatable(chain[-1], touches)
    made = VectorLoops(row, row.body, lanes, widths, is_repeatable=repeats, processor=processor)
    try:
        stmts: tuple[Stmt, ...] = (*made.statements(),)
    except NotVector:
        return None
    return (*declared(flat, nested(chain[:at], *stmts).stmts),)


def as_one_row(
    nest: Sequence[For], buffers: Iterable[Buffer], *, of_loops: bool = False
) -> tuple[For, dict[Buffer, Buffer]] | None:
    """The loop over all elements of whole rows, and its flat views of these buffers."""
    if len(whole_rows(nest[0], of_loops=of_loops)) != len(nest):
        return None
    accesses = [node for node in accesses_in(nest[-1].body) if node.indices]
    moving = dict.fromkeys(node.buffer for node in accesses if _goes_along(node, nest))
    if not moving.keys() <= {*buffers} or not all(
        _goes_along(node, nest) for node in accesses if node.buffer in moving
    ):
        return None
    if any(isinstance(node, Store) and node.buffer not in moving for node in accesses):
        return None
    outermost, *inner = nest
    axes, length = len(nest), reduce(Mul, (loop.stop for loop in inner))
    flat = {
        each: replace(each, name=f"{each.name}.flat", shape=(*each.shape[:-axes], _product(each.shape[-axes:])))
        for each in moving
    }
    var = Var(nest[-1].var.name)

    def moved(node: Load | Store) -> Node:
        if node.buffer not in flat:
            return node
        first = folded(substitute(node.indices[-axes], {outermost.var: const(0, i64)}))
        at = folded(Add(_product((first, length)), var))
        return node.replaced(buffer=flat[node.buffer], indices=(*node.indices[:-axes], at))

    body = rewrite(nest[-1].body, {Load: moved, Store: moved})
    assert isinstance(body, SeqStmt)
    start, stop = (_product((bound, length)) for bound in (outermost.start, outermost.stop))
    return For(var, start, stop, body, outermost.kind, span=outermost.span), flat


def _goes_along(node: Load | Store, nest: Sequence[For]) -> bool:
    """Whether an access moves with the innermost loop; `whole_rows` has checked the others."""
    return node.indices[-1] is nest[-1].var


def _product(factors: Sequence[Expr]) -> Expr:
    if any(is_constant(each, 0) for each in factors):
        return const(0, i64)
    return folded(reduce(Mul, factors))
