"""Joins the last two axes of arrays of small groups, such as complex numbers or colours, in views.

What lanes access of neighbouring groups lies a few elements apart there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Expr, IntImm, Load, Mul, Ramp, const
from tirlite.ir.stmt import For, Stmt, Store, View
from tirlite.ir.walk import accesses_in, is_constant, loads_in, mentions, statements
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import MOST_APART, Lanes

_PAIR = 2


def flat_views(loop: For, buffers: Iterable[Buffer]) -> dict[Buffer, Buffer]:
    """Flat views of the buffers in which a loop accesses neighbouring groups."""
    nodes = (node for node in accesses_in(loop) if len(node.indices) > 1)
    grouped = {
        node.buffer
        for node in nodes
        if mentions(node.indices[-2], loop.var) and not mentions(node.indices[-1], loop.var)
    }
    return {each: _flat(each) for each in buffers if each in grouped and _has_groups(each)}


def flat_sums(loop: For, buffers: Iterable[Buffer]) -> dict[Buffer, Buffer]:
    """Flat views of the buffers whose whole groups a loop takes into sums of floats.

    LLVM vectorizes sums of integers itself, and makes a vector of more sums than two. Of groups of four, which take
    many shuffles, up to 20 would take longer.
    """
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    if not all(store.buffer.dtype.is_float for store in stores) or (len(stores) > _PAIR and not has_much_to_do(loop)):
        return {}
    flat, loads = flat_views(loop, buffers), [*loads_in(loop.body)]
    parts = {buffer: {str(load.indices[-1]) for load in loads if load.buffer is buffer} for buffer in flat}
    are_whole = all(is_constant(each.shape[-1], len(parts[each])) for each in flat)
    return flat if are_whole and all(len(each) < MOST_APART for each in parts.values()) else {}


def _has_groups(buffer: Buffer) -> bool:
    apart = buffer.shape[-1]
    is_few = isinstance(apart, IntImm) and 2 <= apart.value <= MOST_APART
    return is_few and not buffer.strides and buffer.dtype.lanes == 1 and not buffer.volatile


def _flat(buffer: Buffer) -> Buffer:
    *rows, number, apart = buffer.shape
    return replace(buffer, name=f"{buffer.name}.flat", shape=(*rows, folded(Mul(number, apart))))


def declared(flat: dict[Buffer, Buffer], stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """The declarations of the views that statements use, and the statements."""
    stmts = (*stmts,)
    used = {node.buffer for node in accesses_in(*stmts)}
    yield from (View(view, buffer, const(0, i64)) for buffer, view in flat.items() if view in used)
    yield from stmts


def flat_place(lanes: Lanes, node: Load | Store) -> tuple[Expr, ...] | None:
    """The indices in the flat view of a buffer, if lanes access elements of neighbouring groups."""
    *rows, group, last = node.indices
    base = lanes.of(group)
    if any(map(lanes.differs, (*rows, last))) or not isinstance(base, Ramp) or not is_constant(base.stride, 1):
        return None
    apart = node.buffer.shape[-1]
    return (*rows, Ramp(folded(Add(Mul(base.base, apart), last)), apart, lanes.lanes))
