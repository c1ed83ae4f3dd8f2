"""Splits a loop over several flattened axes, whose counter is divided to recover them, into nested loops."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Expr, FloorDiv, FloorMod, IntImm, Mul, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Assert, For, ForKind, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import is_constant, loads_in, statements, statements_of, walk

# LLVM unrolls rows of up to the first length, and vectorizes across rows. From the second length on, a row is a loop.
_MOST_WRITTEN_OUT, _LEAST = 8, 16
_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


def rewritten(facts: Facts) -> PrimFunc:
    """The function with loops over rows and within rows, see `DivideLoops`."""
    rows = {loop: length for loop in statements_of(facts.func.body, For) if (length := _length_of_rows(loop))}
    whole = {loop: is_whole(loop, length, facts) for loop, length in rows.items()}
    parted = {loop for loop in rows if whole[loop] or (rows[loop] < _LEAST and _is_exact(loop, facts))}
    apart = {loop for loop in parted if facts.is_independent(loop)}
    if not apart:
        return facts.func
    from tirlite.rewrite.simplify.simplify import Simplify
    from tirlite.rewrite.vectors.lanes import last_whole

    def in_rows(loop: For) -> Stmt | tuple[Stmt, ...]:
        if loop not in apart:
            return loop
        if whole[loop]:
            return divided(loop, rows[loop])
        end = last_whole(loop, loop.count, rows[loop])
        return divided(loop.replaced(stop=end), rows[loop]), loop.replaced(start=end)

    return Simplify()(rewrite(facts.func, {For: in_rows}))


def _length_of_rows(loop: For) -> int:
    """The number of iterations in a row; 0 if there are no rows."""
    if loop.kind not in _PLAIN or loop.step != 1 or not is_constant(loop.start, 0):
        return 0
    # Assertions stay whole: they print their operands as written.
    if any(isinstance(stmt, Assert | For | While) for stmt in statements(loop.body)):
        return 0
    divisors = set(_divisors(loop))
    length = min(divisors, default=0)
    serves = length >= _LEAST or (1 < length <= _MOST_WRITTEN_OUT and _looks_up(loop))
    return 0 if not serves or any(each % length for each in divisors) or has_check(loop) else length


def _looks_up(loop: For) -> bool:
    """Whether a quotient or remainder is an index of a load, for which LLVM would gather lanes one by one.

    Elsewhere, vectors with masks do as well.
    """
    indices = (index for node in loads_in(loop.body) for index in node.indices)
    return any(isinstance(node, FloorDiv | FloorMod) and node.a is loop.var for node in walk(*indices))


def _divisors(loop: For) -> Iterator[int]:
    """The constants that the loop's variable is divided by."""
    for node in walk(loop.body):
        if isinstance(node, FloorDiv | FloorMod) and node.a is loop.var and isinstance(node.b, IntImm):
            yield node.b.value


def is_whole(loop: For, length: int, facts: Facts) -> bool:
    """Whether the loop is proved to consist of whole rows, more than one."""
    if loop.values is not None:
        return len(loop.values) > length and len(loop.values) % length == 0
    from tirlite.sizes import Proof, prove_divides

    size = facts.extents.size(loop.stop)
    return size is not None and _is_exact(loop, facts) and prove_divides(length, size) is Proof.YES


def _is_exact(loop: For, facts: Facts) -> bool:
    """Whether the end of a loop is a product of extents, which does not overflow."""
    from tirlite.sizes import dims_of

    size, given = facts.extents.size(loop.stop), facts.extents.given
    return loop.values is None and size is not None and {*dims_of(size)} <= {given[dim] for dim in facts.func.dims}


def divided(loop: For, length: int) -> For:
    """The loop over rows, which contains the loop within a row."""
    row, place = Var(f"{loop.var.name}.outer"), Var(f"{loop.var.name}.inner")

    def named(var: Var) -> Expr:
        return whole if var is loop.var else var

    def part(node: FloorDiv | FloorMod) -> Expr:
        if node.a is not whole or not isinstance(node.b, IntImm) or node.b.value <= 0 or node.b.value % length:
            return node
        times = const(node.b.value // length, i64)
        if isinstance(node, FloorDiv):
            return FloorDiv(row, times)
        return Add(Mul(FloorMod(row, times), const(length, i64)), place)

    whole = Add(Mul(row, const(length, i64)), place)
    body = rewrite(loop.body, {Var: named, FloorDiv: part, FloorMod: part})
    assert isinstance(body, SeqStmt)
    # With loops or storage inside, only the loop over rows is parallel.
    stays = loop.kind is not ForKind.PARALLEL or body.kinds <= {Store, Let}
    kind = loop.kind if stays else ForKind.SERIAL
    through = For(place, loop.start, const(length, i64), body, kind, span=loop.span)
    rows = FloorDiv(loop.stop, const(length, i64))
    return loop.replaced(var=row, stop=rows, body=SeqStmt((through,)))
