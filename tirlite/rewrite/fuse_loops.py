"""Fuses the loops of a function that fill temporaries with the loops that read them."""

from __future__ import annotations

from collections.abc import Collection

from tirlite.analysis.facts import Facts
from tirlite.analysis.fusion import Fusion, Parts, can_be_reordered
from tirlite.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    PrimFunc,
    SeqStmt,
    Steps,
    Stmt,
    Store,
    While,
    run,
    statements,
    walk,
)
from tirlite.record import record
from tirlite.rewrite.joined_range import joined_range
from tirlite.rewrite.pipeline import FactsPass, Rewritten

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
    name: str = "fuse-loops"

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
