"""Rebases loops over sliding windows: `x[i + d]` for d from -1 to 1, in place of `x[j]` for j from i - 1 to i + 1.

All iterations of the loop around then have the same inner loop, and can be vectorized.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.work import may_be_window, moved_by
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, LT, Add, And, Binary, Expr, IntImm, Max, Min, Var, const
from tirlite.ir.faults import trap_of
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Store
from tirlite.ir.walk import accesses_in, is_steady, statements, statements_of, walk, without_number
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded, shifted
from tirlite.rewrite.loops.partition_loops import MOST_INSIDE
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.simplify.simplify import Simplify
from tirlite.sizes.poly import varies

# Windows that do not overlap are blocks: loops over more elements may be tiles that an author wrote.
_MOST_IN_BLOCK = 8
_PLAIN = (Store, Let, For, IfThenElse, SeqStmt, Allocate)


@record(eq=False)
class _Window:
    """What a counter is counted from, which numbers it then has, and what else it must meet."""

    base: Expr
    first: int
    stop: Expr
    conditions: list[Expr]


def rewritten(facts: Facts) -> PrimFunc:
    """The function with loops over windows that count from where these lie, see `TightenLoops`."""
    found: dict[Var, _Window] = {}
    for around in statements_of(facts.func.body, For):
        if around.step == 1:
            for loop in filter(may_be_window, statements_of(around.body, For)):
                window = _window(loop, around, facts)
                if window is not None:
                    found.setdefault(loop.var, window)
    if not found:
        return facts.func

    def moved(loop: For) -> For:
        window = found.get(loop.var)
        if window is None:
            return loop
        counter, body = Var(loop.var.name, i64), loop.body
        if window.conditions:
            body = SeqStmt((IfThenElse(reduce(And, window.conditions), body, span=loop.span),))
        body = folded(substitute(body, {loop.var: Add(window.base, counter)}))
        return loop.replaced(var=counter, start=const(window.first, i64), stop=window.stop, body=body)

    return Simplify()(Normalize()(rewrite(facts.func, {For: moved})))


def _window(loop: For, around: For, facts: Facts) -> _Window | None:
    """The window that a loop goes over, which moves with the counter of one around; None where there is none."""
    lows, highs = [*_operands(loop.start, Max)], [*_operands(loop.stop, Min)]
    low = next((each for each in lows if moved_by(each, around.var)), None)
    high = next((each for each in highs if moved_by(each, around.var)), None)
    # What is computed in each iteration must be the same in all of them.
    if low is None or high is None or not is_steady(*lows, *highs) or not _cannot_fail(loop, facts):
        return None
    space = facts.space
    base, first = without_number(low)
    if not all(space.is_exact(space.size(each)) for each in (base, low, high)):
        return None
    length = space.size(high) - space.size(low)
    most = MOST_INSIDE if moved_by(low, around.var) == 1 else _MOST_IN_BLOCK
    is_short = isinstance(length, int) and 1 < length <= most
    is_clipped = len(lows) + len(highs) > 2
    if varies(length) or not (is_short if is_clipped else is_short or not isinstance(length, int)):
        return None
    stop = const(length + first, i64) if isinstance(length, int) else shifted(facts.extents.expr(length), first)
    conditions: list[Expr] = [GE(loop.var, each) for each in lows if each is not low]
    conditions += [LT(loop.var, each) for each in highs if each is not high]
    return _Window(base, first, stop, conditions)


def _operands(end: Expr, kind: type[Max | Min]) -> Iterator[Expr]:
    todo = [end]
    while todo:
        each = todo.pop()
        if isinstance(each, kind):
            todo += each.children()
        else:
            yield each


def _cannot_fail(loop: For, facts: Facts) -> bool:
    """Whether nothing in a loop is told with its counter: what is out of bounds, or divides by 0."""
    if not all(isinstance(stmt, _PLAIN) for stmt in statements(loop.body)):
        return False
    if any(isinstance(node, Binary) and _may_trap(node) for node in walk(loop.start, loop.stop, loop.body)):
        return False
    return all(map(facts.bounds.is_inside, accesses_in(loop.body)))


def _may_trap(node: Binary) -> bool:
    trap = trap_of(type(node), node.dtype)
    if trap is None:
        return False
    return not isinstance(node.b, IntImm) or trap(node.dtype.scalar.min, node.b.value, None) is not None
