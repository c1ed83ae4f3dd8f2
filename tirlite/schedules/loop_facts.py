"""Answers questions of steps about loops and indices: whole blocks, bounds, numbers of iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import moved_by
from tirlite.ir.dtype import i32, i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import GE, LT, Add, And, Broadcast, Cast, Expr, IntImm, Load, Min, Ramp, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Assert, For, IfThenElse, SeqStmt, Store, nested
from tirlite.ir.walk import conjuncts, is_steady, mentions, statements_of
from tirlite.rewrite.affine_exprs import folded
from tirlite.sizes import maximum


def is_block_of(inner: For, outer: For) -> bool:
    """Whether `inner` covers one block of `outer`: from its variable to its next value or its end."""
    stop = inner.stop
    return (
        inner.start is outer.var
        and inner.step >= 1
        and isinstance(stop, Min)
        and isinstance(stop.a, Add)
        and stop.a.a is outer.var
        and isinstance(stop.a.b, IntImm)
        and stop.a.b.value == outer.step
        and stop.b is outer.stop
    )


def is_whole(loops: Sequence[For], last: For, lanes: int) -> bool:
    """Whether `last` is sure to run a multiple of `lanes` iterations, as a block of one of these loops or not."""
    outer = next((each for each in loops if is_block_of(last, each)), None)
    if outer is None:
        count = last.count
        return isinstance(count, IntImm) and count.value % lanes == 0
    return outer.step % lanes == 0 and is_whole(loops, outer, lanes)


def has_whole_blocks(loops: Sequence[For], last: For, extent: Expr, lanes: int) -> bool:
    """Whether the last block of `last`, rounded up to `lanes`, stays within an axis of this extent."""
    outer = next((each for each in loops if is_block_of(last, each)), None)
    return (
        outer is not None
        and isinstance(outer.start, IntImm)
        and isinstance(extent, IntImm)
        and not any(each % lanes for each in (outer.start.value, outer.step, extent.value))
    )


def is_dense(indices: tuple[Expr, ...], var: Var) -> bool:
    """Whether consecutive values of `var` access consecutive elements."""
    return moved_by(indices[-1], var) == 1 and not mentions(indices[:-1], var)


def is_in_bounds(func: PrimFunc, around: Sequence[For], access: Load | Store, where: Expr | None = None) -> bool:
    """Whether an access is proved in bounds at any place inside of these loops, given the condition `where`."""
    pairs = [*zip(access.indices, access.buffer.shape, strict=True)]
    known = {loop.var: loop for loop in around}
    given = () if where is None else tuple(conjuncts(where))
    open_pairs = [pair for pair in pairs if not (_is_range_of(*pair, known) or _is_given(*pair, given))]
    if not open_pairs:
        return True
    from tirlite.rewrite.simplify.simplify import Simplify

    conditions = [And(GE(index, const(0, i64)), LT(index, extent)) for index, extent in open_pairs]
    body = SeqStmt(tuple(Assert(condition, "") for condition in conditions))
    if where is not None:
        body = SeqStmt((IfThenElse(where, body),))
    return next(statements_of(Simplify()(func.replaced(body=nested(around, body))).body, Assert), None) is None


def _is_range_of(index: Expr, extent: Expr, known: Mapping[Var, For]) -> bool:
    """Whether an index is the variable of a loop over an axis or a block of it: a quick test before the proof."""
    loop = known.get(index) if isinstance(index, Var) else None
    if loop is None or loop.step < 1:
        return False
    ends = any(_is_less(each, extent) for each in min_operands(loop.stop))
    start = loop.start
    while isinstance(start, Var) and start in known and known[start].step > 0:
        start = known[start].start
    return ends and isinstance(start, IntImm) and start.value >= 0


def _is_given(index: Expr, extent: Expr, given: Sequence[Expr]) -> bool:
    """Whether the conditions in `given` state that an index is in bounds, as those of a padded convolution do."""
    about = [
        each for each in given if is_steady(index) and isinstance(each, GE | LT) and are_equal((each.a,), (index,))
    ]
    starts = any(isinstance(each, GE) and _is_less(const(0, i64), each.b) for each in about)
    return starts and any(isinstance(each, LT) and _is_less(each.b, extent) for each in about)


def min_operands(expr: Expr) -> Iterator[Expr]:
    """The operands of nested `min`s, or the expression itself."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Min):
            stack += (node.b, node.a)
        else:
            yield node


def _is_less(one: Expr, other: Expr) -> bool:
    """Whether `one` is seen to be at most `other`: both are constants, or they are equal."""
    if isinstance(one, IntImm) and isinstance(other, IntImm):
        return one.value <= other.value
    return are_equal((one,), (other,))


def trips(facts: Facts, loop: For) -> Expr | None:
    """An upper bound on a loop's iterations, as an expression that is fixed before any loop; None if none is known."""
    from tirlite.sizes.poly import varies

    space = facts.space
    start = space.size(loop.start)
    known = [
        count
        for stop in space.operands(loop.stop, Min)
        if not varies(count := space.size(stop) - start) and space.is_exact(count)
    ]
    exact = [count for count in known if isinstance(count, int)]
    if not known:
        return None
    # The start of an empty loop may be beyond its stop.
    most = space.extents.expr(maximum(0, min(exact) if exact else known[0]))
    return most if isinstance(most, IntImm) or is_steady(most) else None


def lanes_before(start: Expr, stop: Expr, lanes: int) -> Expr:
    """The mask of the lanes from `start` on that lie before `stop`.

    The comparison is in i32, so that a vector register holds as many lanes as for most element types.
    """
    left = Cast(i32, Min(folded(Sub(stop, start)), const(lanes, i64)))
    return LT(Ramp.unit(const(0, i32), lanes), Broadcast(left, lanes))
