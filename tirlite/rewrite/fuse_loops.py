"""Fuses the loops of a function that fill temporaries with the loops that read them.

Two loops of step 1 become one over the range that holds both, in which each runs under conditions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.fusion import Fusion, Parts, can_be_reordered
from tirlite.analysis.integers.exactness import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir import (
    LE,
    LT,
    Allocate,
    And,
    AttrStmt,
    Buffer,
    Call,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    Max,
    Min,
    PrimFunc,
    SeqStmt,
    Steps,
    Stmt,
    Store,
    Var,
    While,
    run,
    statements,
    structural_equal,
    substitute,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.affine_exprs import shifted
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.rewrite.simplify.simplify import simplified
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends as ends_of, is_nonnegative

# How many iterations the second loop may stay behind.
_MOST_SHIFT = 4
# How many of the next loops are looked at for what they read.
_MOST_LATER = 8
# Loops with more statements are not fused: every proof looks at all of them.
_MOST_STATEMENTS = 64


@record
class FuseLoops(FactsPass):
    """Makes one loop of two in a row, where the second reads a temporary that the first fills.

    That is done where each access of the second still comes after those of the first to the same byte, by a proof. A
    serial loop may run a few iterations behind: `y[i - 1] = t[i - 2] + t[i - 1] + t[i]` beside `t[i] = ...`, under a
    condition that keeps it in its range. Then `SinkAllocations`, `CompactBuffers` and `ContractTemporaries` leave a
    scalar of the temporary, `FoldStorage` a few lines. Left alone are loops that call, assert, or hand out addresses,
    and innermost loops of which one sums up and the other does not: the latter can be vectorized. For functions in
    normal form (see `Normalize`).
    """

    shift: bool = True

    def rewritten(self, facts: Facts) -> PrimFunc:
        return self.on(facts).func

    def on(self, facts: Facts) -> Rewritten:
        func = facts.func
        allocated = {stmt.buffer for stmt in statements(func.body) if isinstance(stmt, Allocate)}
        if not allocated:
            return Rewritten(func)
        fused: Collection[For] | None = None
        while True:
            fuser = _Fuser(facts, allocated, self.shift, fused or ())
            body = run(fuser.block(facts.func.body, is_open=fused is None))
            if body is facts.func.body:
                return Rewritten(facts.func, facts=facts)
            # What stands in fused loops is looked at as it is then.
            facts, fused = Facts(facts.func.replaced(body=body)), fuser.parts


class _Fuser:
    """One walk from the outside in, which leaves what stands in fused loops to the next one.

    `fused` are the loops that the walk before has made.
    """

    def __init__(self, facts: Facts, allocated: set[Buffer], shift: bool, fused: Collection[For]) -> None:
        self.fused = fused
        self.fusion = Fusion(facts)
        self.space = facts.space
        self.allocated = allocated
        self.most_shift = _MOST_SHIFT if shift else 0
        self.parts: dict[For, Parts] = {}  # of each fused loop

    def block(self, body: SeqStmt, *, is_open: bool) -> Steps[SeqStmt]:
        """`is_open` says that its loops were not looked at in a walk before."""
        stmts: list[Stmt] = []
        later = _Later(body)
        for stmt in body.stmts:
            if is_open and isinstance(stmt, For):
                self._append(stmts, stmt, later)
            else:
                stmts.append(stmt)
        done = []
        for stmt in stmts:
            done.append((yield self._inside(stmt, is_open=is_open or stmt in self.fused)))
        is_same = len(done) == len(body.stmts) and all(a is b for a, b in zip(done, body.stmts, strict=True))
        return body if is_same else SeqStmt(tuple(done), span=body.span)

    def _inside(self, stmt: Stmt, *, is_open: bool) -> Steps[Stmt]:
        if isinstance(stmt, IfThenElse):
            then_body: SeqStmt = yield self.block(stmt.then_body, is_open=is_open)
            else_body: SeqStmt = yield self.block(stmt.else_body, is_open=is_open)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return stmt.replaced(then_body=then_body, else_body=else_body)
        if isinstance(stmt, For | While | AttrStmt) and stmt not in self.parts:
            body: SeqStmt = yield self.block(stmt.body, is_open=is_open)
            return stmt if body is stmt.body else stmt.replaced(body=body)
        return stmt

    def _append(self, stmts: list[Stmt], second: For, later: _Later) -> None:
        """Puts a loop behind statements, into the last loop among them if that is possible."""
        place = len(stmts)
        while place and _can_be_passed(stmts[place - 1]):
            place -= 1
        first = stmts[place - 1] if place else None
        later.pass_by(second)
        is_wanted = isinstance(first, For) and (self._feeds(first, second) or self._feed_together(first, second, later))
        fused = self._fused(first, second) if is_wanted and isinstance(first, For) else None
        if fused is None:
            stmts.append(second)
        else:
            stmts[place - 1 :] = [*stmts[place:], fused]

    def _fused(self, first: For, second: For) -> For | None:
        if first.kind is not second.kind or first.kind is ForKind.THREAD or not (first.step == second.step == 1):
            return None
        if not (can_be_reordered(first) and can_be_reordered(second)) or _sums_up(first) != _sums_up(second):
            return None
        if _statement_count(first) + _statement_count(second) > _MOST_STATEMENTS:
            return None
        most = self.most_shift if first.kind is ForKind.SERIAL else 0
        for shift in range(most + 1):
            joined = joined_range(first, second, shift, self.space)
            if joined is None or (joined.is_guarded and _is_innermost(second)):
                continue
            parts = self.parts.get(first, ((first, 0),))
            if self.fusion.keeps_order(parts, second, shift):
                fused = joined.loop(first, second)
                self.parts[fused] = (*parts, (second, shift))
                return fused
        return None

    def _feeds(self, first: For, second: For) -> bool:
        """Whether the second loop reads an allocation that the first one writes."""
        return not self._written(first).isdisjoint(self._read(second))

    def _feed_together(self, first: For, second: For, later: _Later) -> bool:
        """Whether one of the next loops reads what both of them write."""
        mine, others = self._written(first), self._written(second)
        return any(
            not (mine.isdisjoint(read) or others.isdisjoint(read)) for read in map(self._read, later.next_loops())
        )

    def _written(self, loop: For) -> set[Buffer]:
        """The allocations from outside that a loop writes."""
        roots = {self.fusion.root(stmt.buffer) for stmt in statements(loop) if isinstance(stmt, Store)}
        return roots & self.allocated

    def _read(self, loop: For) -> set[Buffer]:
        return {self.fusion.root(node.buffer) for node in walk(loop) if isinstance(node, Load)}


class _Later:
    """The loops of a block that a walk over it has not come to."""

    def __init__(self, body: SeqStmt) -> None:
        self.loops = [stmt for stmt in body.stmts if isinstance(stmt, For)]
        self.passed = 0

    def pass_by(self, loop: For) -> None:
        assert self.loops[self.passed] is loop
        self.passed += 1

    def next_loops(self) -> list[For]:
        return self.loops[self.passed : self.passed + _MOST_LATER]


def _can_be_passed(stmt: Stmt) -> bool:
    """Whether a statement between two loops may as well stand before both."""
    if isinstance(stmt, Allocate):
        return not any(isinstance(node, Load) for extent in stmt.buffer.shape for node in walk(extent))
    return isinstance(stmt, Let) and not any(isinstance(node, Load) for node in walk(stmt.value))


def _statement_count(loop: For) -> int:
    return sum(1 for _ in statements(loop.body))


def _is_innermost(loop: For) -> bool:
    return not any(isinstance(stmt, For) for stmt in statements(loop.body))


def _sums_up(loop: For) -> bool:
    """Whether an innermost loop stores to one place again and again."""
    if not _is_innermost(loop):
        return False
    return any(
        isinstance(stmt, Store) and not any(node is loop.var for index in stmt.indices for node in walk(index))
        for stmt in statements(loop.body)
    )


@record
class JoinedRange:
    """From `start` to `stop`, which holds both ranges; `first` and `second` are None where a loop runs all along.

    `second_var` is the value of the second loop's variable, which runs behind.
    """

    start: Expr
    stop: Expr
    first: Expr | None
    second: Expr | None
    second_var: Expr

    @property
    def is_guarded(self) -> bool:
        return self.first is not None or self.second is not None

    def guarded(self, stmts: Sequence[Stmt], condition: Expr | None) -> tuple[Stmt, ...]:
        """The statements, run under a condition."""
        return tuple(stmts) if condition is None else (IfThenElse(condition, SeqStmt(tuple(stmts))),)

    def loop(self, first: For, second: For) -> For:
        """One loop that does what both do."""
        mine = self.guarded(first.body.stmts, self.first)
        body = substitute(second.body, {second.var: self.second_var})
        if not isinstance(self.second_var, Var):
            body = simplified(body)  # of `t[i - 1 + 1]`
        others = self.guarded(body.stmts, self.second)
        loop = first.replaced(start=self.start, stop=self.stop, body=SeqStmt((*mine, *others)))
        if self.start is not first.start or self.stop is not first.stop:
            # What was known of the variable of the first loop does not hold in a longer one.
            var = Var(first.var.name, first.var.dtype)
            loop = substitute(loop, {first.var: var}).replaced(var=var)
        return _with_branches_joined(loop, len(mine))


def joined_range(first: For, second: For, shift: int, space: IndexSpace) -> JoinedRange | None:
    """The range in which each iteration of `second` runs `shift` iterations after the same one of `first`.

    None where a bound may wrap around or change, so that it cannot be moved.
    """
    ends = [end for loop in (first, second) for end in (loop.start, loop.stop)]
    if any(isinstance(node, Load | Call) for end in ends for node in walk(end)):
        return None
    bounds: list[tuple[Expr, Size]] = []
    for bound, by in ((first.start, 0), (first.stop, 0), (second.start, shift), (second.stop, shift)):
        size = space.size(bound) + by
        if not (isinstance(bound, Var) and by == 0) and not stays_exact(*ends_of(size)):
            return None
        bounds.append((shifted(bound, by), size))
    (start, low), (stop, high), (later, behind), (end, after) = bounds
    from_first, from_second = _is_least(low, behind), _is_least(behind, low)
    to_first, to_second = _is_least(after, high), _is_least(high, after)
    var: Expr = first.var
    return JoinedRange(
        start if from_first else later if from_second else Min(start, later),
        stop if to_first else end if to_second else Max(stop, end),
        _condition(var, None if from_first else start, None if to_first else stop),
        _condition(var, None if from_second else later, None if to_second else end),
        shifted(var, -shift),
    )


def _is_least(a: Size, b: Size) -> bool:
    """Whether `a` is proved to be at most `b`."""
    low = ends_of(b - a)[0]
    return low is not None and is_nonnegative(low)


def _condition(var: Expr, start: Expr | None, stop: Expr | None) -> Expr | None:
    above = None if start is None else LE(start, var)
    below = None if stop is None else LT(var, stop)
    if above is None:
        return below
    return above if below is None else And(above, below)


def _with_branches_joined(fused: For, count: int) -> For:
    """One branch of two in a row with the same condition, which nothing inside can change."""
    stmts = fused.body.stmts
    last, following = stmts[count - 1], stmts[count]
    if not (isinstance(last, IfThenElse) and isinstance(following, IfThenElse)):
        return fused
    is_steady = not any(isinstance(node, Load | Call) for node in walk(last.condition))
    if not is_steady or last.else_body.stmts or following.else_body.stmts:
        return fused
    if not structural_equal(last.condition, following.condition):
        return fused
    joined = last.replaced(then_body=SeqStmt((last.then_body, following.then_body)))
    return fused.replaced(body=SeqStmt((*stmts[: count - 1], joined, *stmts[count + 1 :])))
