"""Rebases loops over sliding windows: `x[i + d]` for d from -1 to 1, in place of `x[j]` for j from i - 1 to i + 1.

All iterations of the loop around then have the same inner loop, and can be vectorized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from tirlite.analysis.entry_space import ORDINARY
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import may_be_window, moved_by
from tirlite.ir.dtype import i64
from tirlite.ir.expr import EQ, GE, LT, Add, And, Binary, Expr, IntImm, Max, Min, Mul, Var, const
from tirlite.ir.faults import trap_of
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute, values_of
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import accesses_in, is_steady, statements, statements_of, variables_in, walk, without_number
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded, shifted
from tirlite.rewrite.loops.partition_loops import MOST_INSIDE
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.simplify.simplify import Simplify
from tirlite.sizes.poly import varies
from tirlite.sizes.unknown import is_nonnegative

# Windows that do not overlap are blocks; loops over larger ones may be an author's tiles.
_MOST_IN_BLOCK = 8
# Of wider windows that are cut off at edges, vectors of elements are faster than vectors of windows, which take masks.
_MOST_RADIUS = 16
_PLAIN = (Store, Let, For, IfThenElse, SeqStmt, Allocate)


@record(eq=False)
class _CounterRange:
    """The range of a new counter with step 1, the old one's value in terms of it, and further conditions on that."""

    start: int
    stop: Expr
    counter: Var
    value: Expr
    conditions: list[Expr]


def rewritten(facts: Facts) -> PrimFunc:
    """The function with loops over windows counting from the window's position, see `TightenLoops`."""
    found = _windows(facts)
    limited = _limited(facts, found)
    if limited is not None and len(more := _windows(limited)) > len(found):
        facts, found = limited, more
    if not found:
        return facts.func

    def moved(loop: For) -> For:
        window = found.get(loop.var)
        if window is None:
            return loop
        body = loop.body
        if window.conditions:
            body = SeqStmt((IfThenElse(reduce(And, window.conditions), body, span=loop.span),))
        body = folded(substitute(body, {loop.var: window.value}))
        start = const(window.start, i64)
        return loop.replaced(var=window.counter, start=start, stop=window.stop, body=body, step=1)

    return Simplify()(Normalize()(rewrite(facts.func, {For: moved})))


def _windows(facts: Facts) -> dict[Var, _CounterRange]:
    """The windows of a function, by the variables of the loops over them."""
    found: dict[Var, _CounterRange] = {}
    lets = values_of(let for let in statements_of(facts.func.body, Let) if let.var.dtype == i64)
    for around in statements_of(facts.func.body, For):
        if around.step == 1:
            for loop in filter(may_be_window, statements_of(around.body, For)):
                window = _window(loop, around, facts, lets)
                if window is not None:
                    found.setdefault(loop.var, window)
    return found


def _limited(facts: Facts, found: Mapping[Var, _CounterRange]) -> Facts | None:
    """The function with two versions of each nest with a window whose width depends on scalar parameters.

    One runs if they are within limits, with which no sum overflows; in it they are bound to variables that are clamped
    to the limits. The other is the nest as it was. None if there are no such nests.
    """
    func = facts.func
    scalars = {var for var in func.params if isinstance(var, Var) and var.dtype == i64}
    lets = values_of(let for let in statements_of(func.body, Let) if let.var.dtype == i64) if scalars else {}
    nests: dict[For, dict[Var, int]] = {}
    for loop in filter(may_be_window, statements_of(func.body, For) if scalars else ()):
        start, stop = (substitute(end, lets) for end in (loop.start, loop.stop))
        has_cuts = isinstance(start, Max) or isinstance(stop, Min) or IfThenElse in loop.body.kinds
        limit = _MOST_RADIUS if has_cuts else ORDINARY
        for var in variables_in(start, stop) if loop.var not in found else ():
            if var in scalars:
                limits = nests.setdefault(_nest_of(loop, func), {})
                limits[var] = min(limit, limits.get(var, limit))

    def twice(nest: For) -> For | tuple[Stmt, ...]:
        if nest not in nests:
            return nest
        named = {var: Var(var.name, i64) for var in nests[nest]}
        ends = ((var, const(limit, i64), const(-limit, i64)) for var, limit in nests[nest].items())
        bound = (Let(named[var], Min(Max(var, low), high)) for var, high, low in ends)
        conditions: list[Expr] = [EQ(new, var) for var, new in named.items()]
        limited = SeqStmt((substitute(nest, named),))
        return (*bound, IfThenElse(reduce(And, conditions), limited, SeqStmt((nest,)), span=nest.span))

    return Facts(Normalize()(rewrite(func, {For: twice}))) if nests else None


def _nest_of(loop: For, func: PrimFunc) -> For:
    """The outermost loop around a loop, or the loop itself."""
    outer = statements_of(func.body, For)
    return next(each for each in outer if each is loop or loop in {*statements_of(each.body, For)})


def _window(loop: For, around: For, facts: Facts, lets: Mapping[Var, Expr]) -> _CounterRange | None:
    """The window that a loop covers, which moves with the counter of the loop `around`; None if there is none."""
    start, stop = (substitute(end, lets) for end in (loop.start, loop.stop))
    lows, highs = ([*_operands(start, Max)], [*_operands(stop, Min)]) if loop.step == 1 else ([start], [stop])
    low = next((each for each in lows if moved_by(each, around.var)), None)
    high = next((each for each in highs if moved_by(each, around.var)), None)
    # Bounds read from memory might differ between iterations.
    if low is None or high is None or not is_steady(start, stop):
        return None
    space, counter = facts.space, Var(loop.var.name, i64)
    base, first = without_number(low)
    length = space.size(high) - space.size(low)
    if varies(length) or not all(space.is_exact(space.size(each)) for each in (base, low, high)):
        return None
    if not _cannot_fail(loop, (start, stop), facts):
        return None
    most = MOST_INSIDE if moved_by(low, around.var) == 1 else _MOST_IN_BLOCK
    if isinstance(length, int):
        if not 1 < (trips := len(range(0, length, loop.step))) <= most:
            return None
        if loop.step != 1:
            value = Add(base, Add(Mul(counter, const(loop.step, i64)), const(first, i64)))
            return _CounterRange(0, const(trips, i64), counter, value, [])
        end: Expr = const(first + length, i64)
    elif loop.step != 1 or (len(lows) + len(highs) > 2 and not is_nonnegative(2 * _MOST_RADIUS + 1 - length)):
        return None
    else:
        end = shifted(facts.extents.expr(length), first)
    conditions: list[Expr] = [GE(loop.var, each) for each in lows if each is not low]
    conditions += [LT(loop.var, each) for each in highs if each is not high]
    return _CounterRange(first, end, counter, Add(base, counter), conditions)


def _operands(end: Expr, kind: type[Max | Min]) -> Iterator[Expr]:
    todo = [end]
    while todo:
        each = todo.pop()
        if isinstance(each, kind):
            todo += each.children()
        else:
            yield each


def _cannot_fail(loop: For, ends: Sequence[Expr], facts: Facts) -> bool:
    """Whether no fault in a loop could report its counter: all accesses are in bounds, and nothing divides by 0."""
    if not all(isinstance(stmt, _PLAIN) for stmt in statements(loop.body)):
        return False
    if any(isinstance(node, Binary) and _may_trap(node) for node in walk(*ends, loop.body)):
        return False
    doubtful = {each for each in accesses_in(loop.body) if not facts.bounds.is_inside(each)}
    if not doubtful:
        return True
    from tirlite.analysis.in_bounds.guarded import guarded_accesses

    met = [each for each in guarded_accesses(facts.func, facts.space) if each.node in doubtful]
    are_proved = all(next(facts.bounds.open_goals(each), None) is None for each in met)
    return are_proved and doubtful == {each.node for each in met}


def _may_trap(node: Binary) -> bool:
    trap = trap_of(type(node), node.dtype)
    if trap is None:
        return False
    return not isinstance(node.b, IntImm) or trap(node.dtype.scalar.min, node.b.value, None) is not None
