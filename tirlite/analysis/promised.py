"""Finds the arrays whose elements a function looks at, all of them, before anything else: what bounds them."""

from __future__ import annotations

from tirlite.analysis.integers.extents import Extents
from tirlite.ir import GE, GT, LE, LT, Assert, Buffer, Cast, Expr, For, IntImm, Load, PrimFunc, Stmt, Var, conjuncts
from tirlite.record import record
from tirlite.sizes import Size, maximum, minimum
from tirlite.sizes.poly import varies


@record(eq=False)
class Promise:
    """A loop nest at the top of a function, and the ends between which it finds the elements of a parameter."""

    loop: For
    buffer: Buffer
    low: Size | None
    high: Size | None


def promises_of(func: PrimFunc, extents: Extents) -> list[Promise]:
    """The loops at the top of a function in normal form that assert something of each element of a parameter."""
    found: list[Promise] = []
    for stmt in func.body.stmts:
        promise = _promise(stmt, extents)
        if promise is None or promise.buffer not in func.params:
            return found
        found.append(promise)
    return found


def _promise(stmt: Stmt, extents: Extents) -> Promise | None:
    loops: list[For] = []
    while isinstance(stmt, For) and len(stmt.body.stmts) == 1 and stmt.step == 1:
        loops.append(stmt)
        (stmt,) = stmt.body.stmts
    if not loops or not isinstance(stmt, Assert):
        return None
    low: Size | None = None
    high: Size | None = None
    buffers: set[Buffer] = set()
    for each in conjuncts(stmt.condition):
        told = _told(each, loops, extents)
        if told is None:
            return None
        buffer, is_low, end = told
        buffers.add(buffer)
        if is_low:
            low = end if low is None else maximum(low, end)
        else:
            high = end if high is None else minimum(high, end)
    return Promise(loops[0], buffers.pop(), low, high) if len(buffers) == 1 else None


def _told(node: Expr, loops: list[For], extents: Extents) -> tuple[Buffer, bool, Size] | None:
    """A buffer whose elements are all bounded by a comparison, whether from below, and by what."""
    if not isinstance(node, LE | LT | GE | GT):
        return None
    less, more = (node.a, node.b) if isinstance(node, LE | LT) else (node.b, node.a)
    strict = int(isinstance(node, LT | GT))
    for element, other, is_low in ((more, less, True), (less, more, False)):
        load = _bare(element)
        size = extents.size(other)
        if isinstance(load, Load) and size is not None and not varies(size) and _goes_over_all(load, loops):
            return load.buffer, is_low, size + strict if is_low else size - strict
    return None


def _bare(expr: Expr) -> Expr:
    """An element that was made wider for a comparison."""
    while isinstance(expr, Cast) and expr.value.dtype.is_integer and expr.dtype.bits > expr.value.dtype.bits:
        expr = expr.value
    return expr


def _goes_over_all(load: Load, loops: list[For]) -> bool:
    if len(loops) != len(load.indices) or {*load.indices} != {loop.var for loop in loops}:
        return False
    extents: dict[Var, Expr] = {}
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        assert isinstance(index, Var)
        extents[index] = extent
    return all(
        isinstance(loop.start, IntImm) and loop.start.value == 0 and _is_same(loop.stop, extents[loop.var])
        for loop in loops
    )


def _is_same(a: Expr, b: Expr) -> bool:
    return a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
