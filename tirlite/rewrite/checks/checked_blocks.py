"""Cuts loops with checked indices into blocks: all indices of a block are checked first, at once.

If they are in bounds, the block runs without checks, and so can be vectorized; otherwise as written, with checks.
Nothing of the block is stored before, so a fault and the stores before it are those of the serial loop.

A nest in which each such index depends on a single loop, as where an image is resized, is one block: its rows and
columns are checked before it, and then workers may share it.
"""

from __future__ import annotations

from collections.abc import Set
from functools import reduce
from typing import TypeAlias

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
from tirlite.ir.walk import (
    aliased_in,
    is_plainly_positive,
    loads_in,
    may_skip_parts,
    statements,
    statements_of,
    stored_in,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.vectors.lanes import held, may_fault

# Iterations of a block, whose loads stay in the L1 cache, and the fewest for which vectors repay the check.
_BLOCK, _FEW = 1024, 16
_MOST_PLACES = 8
# An index, and the extent that it has to be below.
_Place: TypeAlias = tuple[Expr, Expr]
# The end of the nonnegative 32-bit indices.
_ENDS = const(1 << 31, u64)


def in_blocks(func: PrimFunc, *, rows: bool, nests: bool) -> PrimFunc:
    """The function with such loops cut into blocks: innermost ones, and nests that are one block."""
    loops = [loop for loop in statements_of(func.body, For) if has_check(loop.body) and _is_plain(loop)]
    if not loops:
        return func
    stored = stored_in(func.body)
    steady = {param for param in func.arrays if not param.volatile}
    steady -= stored | aliased_in(func.body)
    made: dict[For, tuple[Stmt, ...]] = {}
    whole: set[For] = set()
    for loop in statements_of(func.body, For) if nests else ():
        nest = _nest_from(loop)
        is_open = len(nest) > 1 and nest[-1] in loops and whole.isdisjoint(nest)
        if is_open and (stmts := _at_once(nest, steady)) is not None:
            made[loop] = stmts
            whole.update(nest)
    rest = [loop for loop in loops if loop not in whole] if rows else []
    made |= {loop: stmts for loop in rest if (stmts := _in_blocks(loop, steady)) is not None}
    return exchanged(func, made) if made else func


def _nest_from(loop: For) -> list[For]:
    """A loop and those inside of it, each the last statement of the one around, behind names alone."""
    nest = [loop]
    while (body := nest[-1].body.stmts) and isinstance(body[-1], For):
        if not all(isinstance(each, Let) for each in body[:-1]):
            break
        nest.append(body[-1])
    return nest


def _at_once(nest: list[For], steady: Set[Buffer]) -> tuple[Stmt, ...] | None:
    """The nest with all of its indices checked before it; None if one of them depends on several of its loops."""
    lets = {stmt.var: stmt for loop in nest for stmt in loop.body.stmts if isinstance(stmt, Let)}
    variables = {loop.var for loop in nest}
    inside = variables | lets.keys()
    is_serial = all(loop.kind is ForKind.SERIAL and loop.step == 1 for loop in nest)
    bounds = [end for loop in nest for end in (loop.start, loop.stop)]
    if not is_serial or any(isinstance(node, Load) or node in inside for node in walk(*bounds)):
        return None
    if any(has_check(let.value) for loop in nest[:-1] for let in loop.body.stmts if isinstance(let, Let)):
        return None
    found = _places(nest[-1], lets, steady)
    if found is None:
        return None
    looks: dict[Var, list[Stmt]] = {}
    checks: list[_Check] = []
    for place, needed in found:
        named = [lets[var].value for var in needed]
        own = {node for node in walk(place[0], *named) if node in variables} or {nest[0].var}
        if len(own) > 1:
            return None
        (var,) = own
        checks.append(check := _Check.of(place, nest[0]))
        body = looks.setdefault(var, [])
        body += [let for name, let in lets.items() if name in needed and let not in body]
        body.append(check.look)
    loops = (loop.replaced(body=SeqStmt((*looks[loop.var],))) for loop in nest if loop.var in looks)
    clean = rewrite(nest[0], {Call: bare})
    is_inside = reduce(And, [check.condition for check in checks])
    choice = IfThenElse(is_inside, SeqStmt((clean,)), SeqStmt((nest[0],)), span=nest[0].span)
    made = (*(stmt for check in checks for stmt in check.begun), *loops, choice)
    # Where one of the loops has no iteration, what places are made of may itself be out of bounds.
    runs: list[Expr] = [LT(loop.start, loop.stop) for loop in nest if not is_plainly_positive(loop.count)]
    return (IfThenElse(reduce(And, runs), SeqStmt(made), span=nest[0].span),) if runs else made


def _is_plain(loop: For) -> bool:
    """Whether iterations only load and store, and load nothing that they store."""
    stmts = [*statements(loop.body)]
    if loop.kind is not ForKind.SERIAL or loop.step != 1 or not all(isinstance(each, Let | Store) for each in stmts):
        return False
    stored = {stmt.buffer for stmt in stmts if isinstance(stmt, Store)}
    nodes = [*walk(loop.body)]
    if any(may_skip_parts(node) for node in nodes):
        return False
    is_safe = not any(isinstance(node, Store) and any(map(is_checked, node.indices)) for node in nodes)
    return is_safe and not any(isinstance(node, Load) and node.buffer in stored for node in nodes)


def _in_blocks(loop: For, steady: Set[Buffer]) -> tuple[Stmt, ...] | None:
    """The loop in blocks; None if it is short, or an index is not known before an iteration runs."""
    lets = {stmt.var: stmt for stmt in loop.body.stmts if isinstance(stmt, Let)}
    is_short = isinstance(loop.count, IntImm) and loop.count.value < _FEW
    found = None if is_short else _places(loop, lets, steady)
    if found is None:
        return None
    first, last = Var(f"{loop.var.name}.outer", i64), Var("last", i64)
    used = {var for _, needed in found for var in needed}
    checks = [_Check.of(place, loop) for place, _ in found]
    looks = [*(let for var, let in lets.items() if var in used), *(check.look for check in checks)]
    before = (*held(loop.stop, "stop", loop),)
    stop = before[0].var if before and isinstance(before[0], Let) else loop.stop
    rows = loop.replaced(start=first, stop=last)
    clean = rewrite(rows, {Call: bare})
    assert isinstance(clean, For)
    is_inside = reduce(And, [check.condition for check in checks])
    body = (
        Let(last, Add(first, Min(Sub(stop, first), const(_BLOCK, i64)))),
        *(stmt for check in checks for stmt in check.begun),
        rows.replaced(body=SeqStmt((*looks,))),
        IfThenElse(is_inside, SeqStmt((clean,)), SeqStmt((rows,)), span=loop.span),
    )
    blocks = For(first, loop.start, stop, SeqStmt(body), step=_BLOCK, span=loop.span)
    if isinstance(loop.count, IntImm):
        return (*before, blocks)
    is_long = LE(const(_FEW, i64), folded(Sub(stop, loop.start)))
    return (*before, IfThenElse(is_long, SeqStmt((blocks,)), SeqStmt((loop.replaced(stop=stop),)), span=loop.span))


@record(eq=False)
class _Check:
    """How an index is checked: what comes before, what looks at it in an iteration, and the condition afterwards."""

    begun: tuple[Stmt, ...]
    look: Stmt
    condition: Expr

    @classmethod
    def of(cls, place: _Place, loop: For) -> _Check:
        index, extent = place
        # As unsigned, a negative index exceeds every extent; a 32-bit one every extent up to 2**31.
        kind, limit = (u32, Min(Cast(u64, extent), _ENDS)) if index.dtype == i32 else (u64, Cast(u64, extent))
        most = Buffer("most", kind, (), "local")
        look = Store(most, (), Max(most[()], Cast(kind, index)), span=loop.span)
        begun = (Allocate(most), Store(most, (), const(0, kind)))
        return cls(begun, look, LT(most[()].astype(u64), limit))


def _places(loop: For, lets: dict[Var, Let], steady: Set[Buffer]) -> list[tuple[_Place, set[Var]]] | None:
    """The checked indices of a loop, each with the names that it uses; None if one is not known beforehand."""
    found: list[tuple[_Place, set[Var]]] = []
    for load in loads_in(loop.body):
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            place = bare(index), extent
            if is_checked(index) and not any(are_equal(place, each) for each, _ in found):
                needed: set[Var] = set()
                if len(found) == _MOST_PLACES or not _is_known(place[0], lets, steady, needed):
                    return None
                found.append((place, needed))
    return found


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
