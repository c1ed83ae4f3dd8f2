"""Simplify simplifies a function's integers, conditions and loops by facts known where they occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, overload

from tirlite.ir.demand import pass_call
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.expr import And, Call, Expr, IntImm, LetExpr, Or, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rebuild, substitute
from tirlite.ir.stmt import Assert, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import walk
from tirlite.record import record
from tirlite.rewrite.simplify.program_point import ProgramPoint
from tirlite.rewrite.simplify.rules import RULES


@record
class Simplify:
    """Simplifies integer expressions, conditions and loops by loop ranges, facts of dims, and enclosing conditions.

    Removes branches never taken, loops that never run or do nothing, and loops around a single iteration. Float
    arithmetic stays, values are the same bit by bit, and what would stop the kernel still does, as loads that may be
    out of bounds. Idempotent.
    """

    name: str = "simplify"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        while True:
            walk = _Walk(ProgramPoint(func))
            body = walk.block(func.body)
            if body is func.body:
                return func
            func = func.replaced(body=body)
            if not walk.tells_more:
                return func


@overload
def simplified(root: SeqStmt) -> SeqStmt: ...


@overload
def simplified(root: Expr) -> Expr: ...


def simplified(root: SeqStmt | Expr) -> SeqStmt | Expr:
    """An expression or a block as `Simplify` would write it; of its free variables only the facts of dims are known."""
    nodes = list(walk(root))
    bound = {node.var for node in nodes if isinstance(node, For | Let | LetExpr)}
    free = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Var) and node not in bound))
    while True:
        func = PrimFunc("f", free, root if isinstance(root, SeqStmt) else SeqStmt(()))
        inside = _Walk(ProgramPoint(func))
        after: SeqStmt | Expr = inside.block(root) if isinstance(root, SeqStmt) else inside.expression(root)
        if after is root:
            return root
        root = after


class _Walk:
    """A walk over a function or an expression, with the current point.

    `tells_more`: a bound, condition or definition has changed, which may help to simplify other statements.
    """

    def __init__(self, point: ProgramPoint) -> None:
        self._point = point
        self.tells_more = False

    def block(self, body: SeqStmt) -> SeqStmt:
        return run(self._block(body))

    def expression(self, expr: Expr) -> Expr:
        self._point.begin()
        return run(self._settled(expr))

    def _block(self, body: SeqStmt) -> Steps[SeqStmt]:
        done: list[Stmt] = []
        is_same = True
        for stmt in body.stmts:
            self._point.begin()
            rule = _STATEMENTS.get(type(stmt), _Walk._other)
            after: tuple[Stmt, ...] = yield rule(self, stmt)
            is_same = is_same and len(after) == 1 and after[0] is stmt
            done += after
        return body if is_same else SeqStmt(tuple(done), span=body.span)

    def _other(self, stmt: Stmt) -> Steps[tuple[Stmt, ...]]:
        children = stmt.children()
        done: list[Node | tuple[Stmt, ...]] = []
        for child in children:
            done.append((yield self._block(child) if isinstance(child, SeqStmt) else self._settled(child)))
        if all(map(is_, done, children)):
            return (stmt,)
        if not isinstance(stmt, Store):
            parts = zip(done, children, strict=True)
            self._note_change(*((new, old) for new, old in parts if isinstance(new, Expr) and isinstance(old, Expr)))
        return (rebuild(stmt, done),)

    def _let(self, stmt: Let) -> Steps[tuple[Stmt, ...]]:
        after: tuple[Stmt, ...] = yield self._other(stmt)
        assert isinstance(after[0], Let)
        self._point.define(stmt.var, after[0].value)
        return after

    def _assert(self, stmt: Assert) -> Steps[tuple[Stmt, ...]]:
        after: tuple[Stmt, ...] = yield self._other(stmt)
        assert isinstance(after[0], Assert)
        return self._instead() if isinstance(after[0].condition, IntImm) and after[0].condition.value else after

    def _if(self, stmt: IfThenElse) -> Steps[tuple[Stmt, ...]]:
        condition: Expr = yield self._settled(stmt.condition)
        self._note_change((condition, stmt.condition))
        if isinstance(condition, IntImm):
            return self._instead(*(stmt.then_body if condition.value else stmt.else_body).stmts)
        bodies = []
        for body, holds in ((stmt.then_body, True), (stmt.else_body, False)):
            with self._point.inside():
                self._point.assume(condition, holds=holds)
                bodies.append((yield self._block(body)))
        if not any(body.stmts for body in bodies) and not self._point.risks[condition]:
            return self._instead()
        if condition is stmt.condition and bodies == [stmt.then_body, stmt.else_body]:
            return (stmt,)
        return (stmt.replaced(condition=condition, then_body=bodies[0], else_body=bodies[1]),)

    def _while(self, stmt: While) -> Steps[tuple[Stmt, ...]]:
        after: tuple[Stmt, ...] = yield self._other(stmt)
        assert isinstance(after[0], While)
        return self._instead() if isinstance(after[0].condition, IntImm) and not after[0].condition.value else after

    def _for(self, stmt: For) -> Steps[tuple[Stmt, ...]]:
        point = self._point
        start: Expr = yield self._settled(stmt.start)
        stop: Expr = yield self._settled(stmt.stop)
        self._note_change((start, stmt.start), (stop, stmt.stop))
        is_plain = stmt.kind is not ForKind.THREAD and not (point.risks[start] or point.risks[stop])
        first, last = point.size(start), point.size(stop)
        if is_plain and point.is_exact(first) and point.is_exact(last):
            length = stmt.distance(first, last)
            if point.proves(-length):
                return self._instead()
            if point.proves(length - 1) and point.proves(abs(stmt.step) - length):
                if isinstance(start, Var | IntImm):
                    return self._instead(*substitute(stmt.body, {stmt.var: start}).stmts)
                return self._instead(Let(stmt.var, start, span=stmt.span), *stmt.body.stmts)
        with point.inside():
            point.enter(stmt)
            body: SeqStmt = yield self._block(stmt.body)
        if is_plain and not body.stmts:
            return self._instead()
        if start is stmt.start and stop is stmt.stop and body is stmt.body:
            return (stmt,)
        return (stmt.replaced(start=start, stop=stop, body=body),)

    def _instead(self, *stmts: Stmt) -> tuple[Stmt, ...]:
        """Notes the change, and returns the statements that replace another."""
        self.tells_more = True
        return stmts

    def _note_change(self, *pairs: tuple[Expr, Expr]) -> None:
        self.tells_more = self.tells_more or not all(new is old or self._tell_the_same(new, old) for new, old in pairs)

    def _tell_the_same(self, one: Expr, other: Expr) -> bool:
        """Whether two spellings of a number or condition give the same knowledge."""
        point = self._point
        if one.dtype == bool_:
            told = (([*point.implied(each, holds=holds)] for each in (one, other)) for holds in (True, False))
            return all(mine == its for mine, its in told)
        return one.dtype == i64 and point.size(one) == point.size(other)

    def _settled(self, node: Node) -> Steps[Expr]:
        """Simplifies an expression until it no longer changes."""
        after: Expr = yield self._expr(node)
        while after is not node:
            node, after = after, (yield self._expr(after))
        return after

    def _expr(self, node: Node) -> Steps[Expr]:
        assert isinstance(node, Expr)
        expr: Expr = node
        point = self._point
        if type(expr) in _SHORT_CIRCUITS and not (isinstance(expr, Call) and expr.op is not Op.IF_THEN_ELSE):
            expr = yield self._guarded(expr)
        elif children := expr.children():
            done: list[Expr] = []
            for child in children:
                done.append((yield self._expr(child)))
                if isinstance(expr, LetExpr) and child is expr.value:
                    point.define(expr.var, done[0])
            expr = _with_parts(expr, done)
        point.note(expr)
        rule = RULES.get(type(expr)) if expr.dtype.lanes == 1 else None
        after = expr if rule is None else rule(expr, point)
        if after is not expr:
            point.note_all(after)
        return after

    def _guarded(self, expr: Expr) -> Steps[Expr]:
        """An expression whose later operands are only evaluated if the first one holds, or does not hold."""
        first, *rest = expr.children()
        condition: Expr = yield self._expr(first)
        done = [condition]
        for part, holds in zip(rest, (not isinstance(expr, Or), False), strict=False):
            with self._point.inside():
                self._point.assume(condition, holds=holds)
                done.append((yield self._expr(part)))
        return _with_parts(expr, done)


def _with_parts(expr: Expr, parts: list[Expr]) -> Expr:
    return expr if all(map(is_, parts, expr.children())) else rebuild(expr, parts)


_SHORT_CIRCUITS = frozenset((And, Or, Call))

_STATEMENTS: Mapping[type[Stmt], Callable[[_Walk, Any], Steps[tuple[Stmt, ...]]]] = {
    Let: _Walk._let,
    Assert: _Walk._assert,
    IfThenElse: _Walk._if,
    While: _Walk._while,
    For: _Walk._for,
}
