"""Finds the accesses of a function, each with the loops around it and the facts from tests around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.expr import And, Call, Expr, Load, Max, Min, Or
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, Assert, AttrKey, AttrStmt, For, IfThenElse, SeqStmt, Stmt, Store, View, While
from tirlite.ir.walk import own_exprs
from tirlite.record import record, replace
from tirlite.sizes import Size, substitute

Accessing: TypeAlias = Load | Store | View

_COMPOSITES: frozenset[type[Stmt]] = frozenset((For, While, IfThenElse, AttrStmt))


@record(eq=False)
class Around:
    """What stands around a place: the loops, the outermost first, and sizes that are 0 or more there.

    `is_tested` says that a test inside of a loop may keep the place from being reached, or one that is not understood;
    `is_certain` that there is no test around.
    """

    loops: tuple[For, ...] = ()
    known: tuple[Size, ...] = ()
    is_tested: bool = False
    is_certain: bool = True
    is_unchecked: bool = False


@record(eq=False)
class Access:
    """A load, a store, or a view that an author declares, where it stands."""

    node: Accessing
    stmt: Stmt
    around: Around


def guarded_accesses(func: PrimFunc, space: IndexSpace) -> Iterator[Access]:
    """The accesses of a function in normal form, in program order. What takes an address is none."""
    return _Walk(space).accesses(func.body)


class _Walk:
    def __init__(self, space: IndexSpace) -> None:
        self.space = space

    def accesses(self, body: SeqStmt) -> Iterator[Access]:
        stack: list[tuple[Stmt, Around]] = [(body, Around())]
        while stack:
            stmt, around = stack.pop()
            if isinstance(stmt, SeqStmt):
                stack += reversed([*self._sequence(stmt, around)])
                continue
            for expr in _evaluated(stmt):
                yield from self._expression(expr, stmt, around)
            if type(stmt) is Store or (type(stmt) is View and not stmt.fresh):
                yield Access(stmt, stmt, around)
            if type(stmt) in _COMPOSITES:
                stack += reversed([*self._bodies(stmt, around)])

    def _sequence(self, stmt: SeqStmt, around: Around) -> Iterator[tuple[Stmt, Around]]:
        """The statements of a block: those after an assert run where it holds."""
        for each in stmt.stmts:
            yield each, around
            if type(each) is Assert:
                around = replace(around, known=(*around.known, *self.space.implied(each.condition)))

    def _bodies(self, stmt: Stmt, around: Around) -> Iterator[tuple[Stmt, Around]]:
        if isinstance(stmt, For):
            known = (*around.known, *self._running(stmt), *self.space.moved(stmt))
            yield stmt.body, replace(around, loops=(*around.loops, stmt), known=known)
        elif isinstance(stmt, While):
            inside = self._branch(around, stmt, holds=True)
            yield stmt.body, replace(inside, known=(*inside.known, *self.space.moved(stmt)), is_tested=True)
        elif isinstance(stmt, IfThenElse):
            yield stmt.then_body, self._branch(around, stmt, holds=True)
            yield stmt.else_body, self._branch(around, stmt, holds=False)
        elif isinstance(stmt, AttrStmt):
            yield stmt.body, replace(around, is_unchecked=around.is_unchecked or stmt.key is AttrKey.UNCHECKED)

    def _running(self, loop: For) -> Iterator[Size]:
        """What holds in an iteration of a loop: its variable lies before the end, and before each part of it."""
        value = self.space.size(loop.var)
        for end in self.space.operands(loop.stop, Min if loop.step > 0 else Max):
            size = self.space.size(end)
            if self.space.is_exact(size):
                gap = size - value if loop.step > 0 else value - size
                yield gap - 1

    def _branch(self, around: Around, stmt: IfThenElse | While, *, holds: bool) -> Around:
        """What is known in a body that runs where the test of a statement holds, or does not."""
        inside = self._where(around, stmt.condition, holds=holds)
        changes = self.space.narrowed(stmt, holds=holds)
        again = [substitute(each, changes) for each in inside.known] if changes else []
        more = [new for new, old in zip(again, inside.known, strict=False) if new != old]
        return replace(inside, known=(*inside.known, *more)) if more else inside

    def _where(self, around: Around, condition: Expr, *, holds: bool) -> Around:
        """The place inside a test. What the test depends on beside sizes is not known."""
        told = tuple(self.space.implied(condition, holds=holds))
        is_tested = around.is_tested or bool(around.loops) or not told
        return replace(around, known=(*around.known, *told), is_tested=is_tested, is_certain=False)

    def _expression(self, expr: Node, stmt: Stmt, around: Around) -> Iterator[Access]:
        """The loads in an expression: those after a test are made only where it holds."""
        stack: list[tuple[Node, Around, bool]] = [(expr, around, False)]
        while stack:
            node, where, is_ready = stack.pop()
            if is_ready:
                assert isinstance(node, Load)
                yield Access(node, stmt, where)
            elif isinstance(node, Load):
                stack.append((node, where, True))
                stack += [(index, where, False) for index in reversed(node.indices)]
            elif isinstance(node, And | Or):
                stack.append((node.b, self._where(where, node.a, holds=isinstance(node, And)), False))
                stack.append((node.a, where, False))
            elif isinstance(node, Call) and node.op is Op.IF_THEN_ELSE:
                condition, yes, no = node.args
                stack.append((no, self._where(where, condition, holds=False), False))
                stack.append((yes, self._where(where, condition, holds=True), False))
                stack.append((condition, where, False))
            elif isinstance(node, Call) and node.op is Op.ADDRESS_OF:
                stack += [(each, where, False) for each in reversed(node.args[0].children())]
            else:
                stack += [(each, where, False) for each in reversed(node.children())]


def _evaluated(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself, in order."""
    shape = stmt.buffer.shape if isinstance(stmt, Allocate | View) else ()
    return (*shape, *own_exprs(stmt))
