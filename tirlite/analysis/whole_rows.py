"""Tells nests that go over whole rows of arrays, and over all elements of each: these lie one behind the other."""

from __future__ import annotations

from tirlite.analysis.work import moved_by
from tirlite.ir.expr import Load, Var
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Store
from tirlite.ir.walk import statements, walk

_IN_ORDER = (ForKind.SERIAL, ForKind.PARALLEL)
_TAKEN = (Store, Let, IfThenElse, Allocate, SeqStmt)


def whole_rows(loop: For) -> list[For]:
    """A loop and those inside that go with it, the innermost last; the loop alone where rows are not whole."""
    nest = [loop]
    while len(nest[-1].body.stmts) == 1 and isinstance(inner := nest[-1].body.stmts[0], For):
        nest.append(inner)
    inside = nest[1:]
    if loop.step != 1 or not inside or not all(isinstance(stmt, _TAKEN) for stmt in statements(nest[-1].body)):
        return [loop]
    is_plain = all(each.kind in _IN_ORDER and each.step == 1 and _is_zero(each.start) for each in inside)
    return nest if is_plain and _goes_through(nest) else [loop]


def _goes_through(nest: list[For]) -> bool:
    """Whether a nest asks for its variables only to go through rows of arrays, and does so."""
    counted = {loop.var for loop in nest}
    goes = False
    todo: list[Node] = [*nest[-1].body.stmts]
    while todo:
        node = todo.pop()
        if isinstance(node, Load | Store) and any(part in counted for index in node.indices for part in walk(index)):
            if not _is_whole(node, nest, counted):
                return False
            goes = True
            todo += (node.value,) if isinstance(node, Store) else ()
        elif node in counted:
            return False
        else:
            todo += node.children()
    return goes


def _is_whole(node: Load | Store, nest: list[For], counted: set[Var]) -> bool:
    """Whether the last axes of an access are those of a nest, of which all but the first go from end to end."""
    from tirlite.ir.equal import are_equal

    buffer, first = node.buffer, len(node.indices) - len(nest)
    if first < 0 or buffer.dtype.lanes > 1 or buffer.strides or buffer.volatile:
        return False
    outermost, *inner = node.indices[first:]
    if not all(index is loop.var for index, loop in zip(inner, nest[1:], strict=True)):
        return False
    others = counted - {nest[0].var}
    moves = moved_by(outermost, nest[0].var) == 1 and not any(part in others for part in walk(outermost))
    is_steady = not any(part in counted for index in node.indices[:first] for part in walk(index))
    extents = tuple(buffer.shape[first + 1 :])
    return moves and is_steady and are_equal(extents, tuple(loop.stop for loop in nest[1:]))


def _is_zero(start: Node) -> bool:
    return getattr(start, "value", None) == 0
