"""DropUnitAxes sees parameters without their last axes of one element, which hide that others go along memory."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import Buffer, Expr, IntImm, Load, Node, PrimFunc, SeqStmt, Store, View, const, i64, walk
from tirlite.record import record
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import FactsPass


@record
class DropUnitAxes(FactsPass):
    """Accesses `b[p, 0]` of a parameter of shape `[n, 1]` as `b[p]` of a view of shape `[n]`.

    So loops over p are seen to go from neighbour to neighbour. Parameters with strides stay, and those that are used
    otherwise than element by element. For functions in normal form (see `Normalize`); the result is in it too.
    """

    name: str = "drop-unit-axes"

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        views = {each: _without_units(each) for each in func.params if isinstance(each, Buffer) and _has_unit(each)}
        for node in walk(func.body) if views else ():
            for buffer in _refused(node):
                views.pop(buffer, None)
        if not views:
            return func
        from tirlite.ir import rewrite

        def moved(node: Load | Store) -> Node:
            if (view := views.get(node.buffer)) is None:
                return node
            return node.replaced(buffer=view, indices=node.indices[: len(view.shape)])

        body = rewrite(func.body, {Load: moved, Store: moved})
        assert isinstance(body, SeqStmt)
        front = (View(view, buffer, const(0, i64)) for buffer, view in views.items())
        return Normalize()(func.replaced(body=SeqStmt((*front, *body.stmts))))


def _has_unit(buffer: Buffer) -> bool:
    return len(buffer.shape) > 1 and _is_one(buffer.shape[-1]) and not buffer.strides and not buffer.volatile


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _without_units(buffer: Buffer) -> Buffer:
    shape = buffer.shape
    while len(shape) > 1 and _is_one(shape[-1]):
        shape = shape[:-1]
    return Buffer(buffer.name, buffer.dtype, shape, buffer.scope)


def _refused(node: Node) -> tuple[Buffer, ...]:
    """The buffers that a node uses as a whole, or of which it takes several elements at once."""
    if isinstance(node, Load | Store):
        return (node.buffer,) if any(index.dtype.lanes > 1 for index in node.indices) else ()
    used = [getattr(node, name) for name in node.USES]
    return tuple(
        each for use in used for each in (use if isinstance(use, tuple) else (use,)) if isinstance(each, Buffer)
    )
