"""Cuts loops with checked indices into blocks: all indices of a block are checked first, at once.

If they are in bounds, the block runs without checks, and so can be vectorized; otherwise as written, with checks.
Nothing of the block is stored before, so a fault and the stores before it are those of the serial loop.
"""

from __future__ import annotations

from collections.abc import Set
from functools import reduce

from tirlite.ir.checked import bare, has_check, is_checked
from tirlite.ir.dtype import i32, i64, u32, u64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    LE,
    LT,
    Add,
    And,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Max,
    Min,
    Select,
    Sub,
    Unary,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import aliased_in, loads_in, may_skip_parts, statements, statements_of, stored_in, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.vectors.lanes import held, may_fault

# Iterations of a block, whose loads stay in the L1 cache, and the fewest for which vectors repay the check.
_BLOCK, _FEW = 1024, 16
_MOST_PLACES = 8
# The end of the nonnegative 32-bit indices.
_ENDS = const(1 << 31, u64)


def in_blocks(func: PrimFunc) -> PrimFunc:
    """The function with such loops cut into blocks."""
    loops = [loop for loop in statements_of(func.body, For) if has_check(loop.body) and _is_plain(loop)]
    if not loops:
        return func
    stored = stored_in(func.body)
    steady = {param for param in func.arrays if not param.volatile}
    steady -= stored | aliased_in(func.body)
    made = {loop: stmts for loop in loops if (stmts := _in_blocks(loop, steady)) is not None}
    return exchanged(func, made) if made else func


def _is_plain(loop: For) -> bool:
    """Whether iterations only load and store, and load nothing that they store."""
    stmts = [*statements(loop.body)]
    if loop.kind is not ForKind.SERIAL or loop.step != 1 or not all(isinstance(each, Let | Store) for each in stmts):
        return False
    if isinstance(loop.count, IntImm) and loop.count.value < _FEW:
        return False
    stored = {stmt.buffer for stmt in stmts if isinstance(stmt, Store)}
    nodes = [*walk(loop.body)]
    if any(may_skip_parts(node) for node in nodes):
        return False
    is_safe = not any(isinstance(node, Store) and any(map(is_checked, node.indices)) for node in nodes)
    return is_safe and not any(isinstance(node, Load) and node.buffer in stored for node in nodes)


def _in_blocks(loop: For, steady: Set[Buffer]) -> tuple[Stmt, ...] | None:
    """The loop in blocks; None if an index is not known before an iteration runs."""
    checked = [node for node in loads_in(loop.body) if any(map(is_checked, node.indices))]
    lets = {stmt.var: stmt for stmt in loop.body.stmts if isinstance(stmt, Let)}
    needed: set[Var] = set()
    first, last = Var(f"{loop.var.name}.outer", i64), Var("last", i64)
    places: list[tuple[Expr, Expr]] = []
    for load in checked:
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            place = bare(index), extent
            if is_checked(index) and not any(are_equal(place, each) for each in places):
                if not _is_known(place[0], lets, steady, needed):
                    return None
                places.append(place)
    if len(places) > _MOST_PLACES:
        return None
    begun: list[Stmt] = []
    looks: list[Stmt] = [let for var, let in lets.items() if var in needed]
    conditions: list[Expr] = []
    for index, extent in places:
        # As unsigned, a negative index exceeds every extent; a 32-bit one every extent up to 2**31.
        kind, limit = (u32, Min(Cast(u64, extent), _ENDS)) if index.dtype == i32 else (u64, Cast(u64, extent))
        most = Buffer("most", kind, (), "local")
        begun += (Allocate(most), Store(most, (), const(0, kind)))
        looks.append(Store(most, (), Max(most[()], Cast(kind, index)), span=loop.span))
        conditions.append(LT(most[()].astype(u64), limit))
    before = (*held(loop.stop, "stop", loop),)
    stop = before[0].var if before and isinstance(before[0], Let) else loop.stop
    rows = loop.replaced(start=first, stop=last)
    clean = rewrite(rows, {Call: bare})
    assert isinstance(clean, For)
    body = (
        Let(last, Add(first, Min(Sub(stop, first), const(_BLOCK, i64)))),
        *begun,
        rows.replaced(body=SeqStmt((*looks,))),
        IfThenElse(reduce(And, conditions), SeqStmt((clean,)), SeqStmt((rows,)), span=loop.span),
    )
    blocks = For(first, loop.start, stop, SeqStmt(body), step=_BLOCK, span=loop.span)
    if isinstance(loop.count, IntImm):
        return (*before, blocks)
    is_long = LE(const(_FEW, i64), folded(Sub(stop, loop.start)))
    return (*before, IfThenElse(is_long, SeqStmt((blocks,)), SeqStmt((loop.replaced(stop=stop),)), span=loop.span))


def _is_known(place: Expr, lets: dict[Var, Let], steady: Set[Buffer], needed: set[Var]) -> bool:
    """Whether an index depends only on unwritten memory and cannot fault; adds the names that it uses to `needed`."""
    todo: list[Expr] = [place]
    while todo:
        expr = todo.pop()
        for node in walk(expr):
            if isinstance(node, Var):
                if node in lets and node not in needed:
                    needed.add(node)
                    todo.append(lets[node].value)
            elif isinstance(node, Load):
                if node.buffer not in steady or any(map(is_checked, node.indices)):
                    return False
            elif isinstance(node, Binary):
                if may_fault(node):
                    return False
            elif isinstance(node, Call):
                if not node.op.is_math or node.op.takes_fast:  # expensive functions are not computed twice
                    return False
            elif not isinstance(node, IntImm | FloatImm | Cast | Compare | Select | Unary):
                return False
    return True
