"""Strip-mines loops that reduce columns of an array: each strip of columns is read row by row.

`for j: s = 0; for i: s += a[i, j]` over a vector of columns reads each row from another page, which suits neither
caches nor prefetchers. In a strip, whose results fit into the first-level cache, rows are read in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, Add, Buffer, Expr, FloorDiv, IntImm, Load, Min, Mul, Sub, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import is_steady, loads_in, statements, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.loops.shared_columns import strip_width
from tirlite.rewrite.vectors.columns import takes_rows_of_lanes
from tirlite.rewrite.vectors.jam import Jam, by_rows
from tirlite.rewrite.vectors.lanes import may_fault

# The bytes of a result over a strip: an eighth of the first-level cache of most processors. At most this many results.
_STRIP_BYTES = 4096
_MOST_RESULTS = 2
# For fewer columns or rows, vectors that stay in registers are better: the widest has 64 columns.
_FEWEST_COLUMNS = 65
_FEWEST_ROWS = 32


def in_strips(loop: For, rows: int) -> SeqStmt | None:
    """The strip-mined loop, this many rows at once; None if it does anything but reduce columns.

    The iterations must be independent. Each result is combined in the order written.
    """
    parts = _parts(loop)
    if parts is None or loop.step != 1 or not takes_rows_of_lanes(loop) or any(map(_stays, walk(loop.body))):
        return None
    before, inner, behind = parts
    scalars = [stmt.buffer for stmt in before if isinstance(stmt, Allocate)]
    if not 1 <= len(scalars) <= _MOST_RESULTS or not _combines(inner, loop, scalars):
        return None
    lanes = _STRIP_BYTES // max(scalar.dtype.bytes for scalar in scalars)
    return _strips(loop, lanes, scalars, before, inner, behind, rows)


def where_many(loop: For, strips: SeqStmt, plain: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The strip-mined loop if there are many columns, else the plain statements."""
    count = loop.count
    if isinstance(count, IntImm):
        return strips.stmts if count.value >= _FEWEST_COLUMNS else plain
    return (IfThenElse(GE(count, const(_FEWEST_COLUMNS, i64)), strips, SeqStmt(plain), span=loop.span),)


def _parts(loop: For) -> tuple[Sequence[Stmt], For, Sequence[Stmt]] | None:
    """The initialization of scalars before the only inner loop, the loop, and the straight code after it."""
    stmts = loop.body.stmts
    place = next((at for at, stmt in enumerate(stmts) if isinstance(stmt, For)), None)
    if place is None:
        return None
    before, inner, behind = stmts[:place], stmts[place], stmts[place + 1 :]
    assert isinstance(inner, For)
    own = [stmt.buffer for stmt in before if isinstance(stmt, Allocate)]
    sets = all(isinstance(each, Allocate) or (isinstance(each, Store) and each.buffer in own) for each in before)
    is_plain = all(not buffer.shape and buffer.dtype.lanes == 1 and not buffer.volatile for buffer in own)
    if not sets or not is_plain or not all(isinstance(each, Let | Store) for each in behind):
        return None
    return before, inner, behind


def _stays(node: Node) -> bool:
    """Whether a node keeps the order of iterations: a fault, a check, a volatile load, or an index from memory."""
    if isinstance(node, Load):
        return node.buffer.volatile or not is_steady(*node.indices)
    return isinstance(node, Expr) and (may_fault(node) or has_check(node))


def _combines(inner: For, loop: For, scalars: Sequence[Buffer]) -> bool:
    """Whether an inner loop only updates scalars, each from its own old value."""
    count = inner.count
    is_long = not isinstance(count, IntImm) or count.value >= _FEWEST_ROWS
    is_plain = inner.kind in (ForKind.SERIAL, ForKind.REDUCE) and inner.step == 1 and not has_check(inner)
    ends = [*walk(inner.start, inner.stop)]
    if not is_long or not is_plain or any(node is loop.var or isinstance(node, Load) for node in ends):
        return False
    for stmt in inner.body.stmts:
        if not isinstance(stmt, Let | Store) or (isinstance(stmt, Store) and stmt.buffer not in scalars):
            return False
        own = [stmt.buffer] if isinstance(stmt, Store) else []
        loaded = (node.buffer for node in loads_in(stmt.value))
        if any(buffer in scalars and buffer not in own for buffer in loaded):
            return False
    return any(isinstance(stmt, Store) for stmt in statements(inner.body))


def _strips(
    loop: For,
    lanes: int,
    scalars: Sequence[Buffer],
    before: Sequence[Stmt],
    inner: For,
    behind: Sequence[Stmt],
    rows: int,
) -> SeqStmt:
    """The loop over strips: sets the results of a strip, adds its rows, and runs the code after the inner loop."""
    strip, width, lane = Var("strip"), Var("width"), Var("lane")
    column = Add(strip, lane)
    results = {each: Buffer(each.name, each.dtype, (const(lanes, i64),), "local") for each in scalars}

    def moved(node: Load | Store) -> Node:
        return node.replaced(buffer=results[node.buffer], indices=(lane,)) if node.buffer in results else node

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved}

    def over_lanes(stmts: Sequence[Stmt]) -> For:
        body = rewrite(folded(substitute(SeqStmt((*stmts,)), {loop.var: column})), rules)
        assert isinstance(body, SeqStmt)
        return For(lane, const(0, i64), width, body, span=loop.span)

    def body(wide: Expr) -> Iterator[Stmt]:
        yield Let(width, Min(Sub(loop.stop, strip), wide), span=loop.span)
        yield from (Allocate(result, span=loop.span) for result in results.values())
        yield over_lanes([stmt for stmt in before if not isinstance(stmt, Allocate)])
        row = over_lanes(inner.body.stmts)
        together = Jam(inner.var, rows).block(SeqStmt((row,))).stmts
        yield from by_rows(inner.replaced(kind=ForKind.SERIAL), rows, together, (row,))
        yield over_lanes(behind)

    if loop.kind is not ForKind.PARALLEL:
        every = SeqStmt((*body(const(lanes, i64)),))
        return SeqStmt((For(strip, loop.start, loop.stop, every, loop.kind, step=lanes, span=loop.span),))
    # Two workers share fewer columns than two strips have.
    wide, number = Var("wide"), Var("number")
    every = SeqStmt((Let(strip, folded(Add(loop.start, Mul(number, wide))), span=loop.span), *body(wide)))
    strips = FloorDiv(Sub(Add(loop.count, wide), const(1, i64)), wide)
    shared = For(number, const(0, i64), strips, every, loop.kind, span=loop.span)
    return SeqStmt((Let(wide, strip_width(loop.count, lanes), span=loop.span), shared))
