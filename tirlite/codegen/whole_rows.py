"""Writes loops that go over whole rows of arrays, and over all elements of each, as one loop over these elements.

In `for i in range(h): for j in range(w): y[c, i, j] = x[c, i, j] * g[c]` rows lie one behind the other, so the loop
over j may go on from row to row: with i = 0, `y[c, i, j]` is the element j of the image. Vectors are full then, however
short rows are.
"""

from __future__ import annotations

from tirlite.analysis.work import moved_by
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.values import Value, integer
from tirlite.ir.expr import Load, Var
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Store
from tirlite.ir.walk import statements, walk

_IN_ORDER = (ForKind.SERIAL, ForKind.PARALLEL)
_TAKEN = (Store, Let, IfThenElse, Allocate, SeqStmt)


def as_one_row(values: Expressions, loop: For, *bounds: Value) -> tuple[For, tuple[Value, ...]]:
    """The loop to write in the place of one, with its bounds: the innermost of a nest over whole rows, or itself."""
    nest = _whole_rows(loop)
    if len(nest) == 1:
        return loop, bounds
    *outer, innermost = nest
    for each in outer:
        values.bind(each.var, integer(0))
    for inner in nest[1:]:
        extent = values.value(inner.stop)
        bounds = tuple(values.out.product(bound, extent) for bound in bounds)
    return innermost, bounds


def _whole_rows(loop: For) -> list[For]:
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
