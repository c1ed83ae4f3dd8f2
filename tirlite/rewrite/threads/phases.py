"""Divides the body of nested loops over threads into phases.

All threads have ended a phase before the first of them begins the next one. A loop or branch around several phases
runs once for all threads, and so must be the same in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from tirlite.analysis.threads import Uniformity
from tirlite.diag import Message
from tirlite.ir.checked import bare, checked, is_checked
from tirlite.ir.dtype import i64
from tirlite.ir.expr import LT, Buffer, Call, Expr, LetExpr, Load, Var, const
from tirlite.ir.kernel_call import Function, KernelCall, closure_of
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import (
    Allocate,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    ThreadRole,
    View,
    While,
    is_barrier,
    thread_role,
)
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import is_plainly_positive, own_exprs, statements, walk
from tirlite.record import record


class DivergentBarrier(Message):
    """Not all threads come to a barrier equally often.

    Example: `tl.barrier("shared")` under `if t < 16:`, where `t` counts threads.
    Fix: Move the barrier out of what differs between threads.
    """

    title = "a barrier stands in {where} that differs between threads, as it depends on `{cause}`"
    label = "all threads must come here equally often"
    related_label = "this depends on `{cause}`"
    help = "move the barrier out of the condition: do the work under conditions before it and after it"


class BarrierInside(Message):
    """A barrier stands where threads cannot be stopped together.

    Example: `tl.barrier("shared")` in a `while`.
    """

    title = "a barrier stands in {where}"
    label = "threads cannot wait for each other here"
    related_label = "inside of this"
    help = "write a barrier as a statement by itself, in loops over `range` whose bounds are the same for all threads"


@record(eq=False)
class Phase:
    """Statements that all threads complete before any thread runs what follows."""

    axes: tuple[For, ...]
    stmts: tuple[Stmt, ...]


@record(eq=False)
class Around:
    """A statement with phases in its bodies, or, without bodies, one that runs once for all threads."""

    stmt: Stmt
    bodies: tuple[tuple[Item, ...], ...] = ()


Item: TypeAlias = Phase | Around


def items_in_order(items: Iterable[Item]) -> Iterator[Item]:
    """All items, each before those inside of it."""
    stack = list(items)[::-1]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, Around):
            stack += (each for body in reversed(item.bodies) for each in reversed(body))


def is_plain(expr: Expr) -> bool:
    """Whether an expression can be recomputed later with the same result: it neither loads nor defines variables."""
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Load | LetExpr) or (isinstance(node, Call) and node.op in (Op.CALL_EXTERN, Op.BARRIER)):
            return False
        # Taking an address does not load, but the indices of its operand may.
        is_address = isinstance(node, Call) and node.op is Op.ADDRESS_OF
        stack += (index for load in node.children() for index in load.children()) if is_address else node.children()
    return True


@record
class _Obstacle:
    """Why a statement cannot run once for all threads, with the innermost such statement around."""

    stmt: Stmt
    where: str
    cause: str | None


class Phases:
    """The division of a launch into phases.

    `role` is that of the loops to divide, of which `launch` is the outermost. Threads are divided at barriers. Virtual
    threads are divided after each statement; barriers stay, and are passed once for all.
    """

    def __init__(self, launch: For) -> None:
        self.role = thread_role(launch)
        self.launch = launch
        self.uniform = Uniformity(launch)
        self.opened: set[Stmt] = {launch}
        self.wanted: set[Var | Buffer] = set()  # variables and views that are needed before the threads begin
        self.closed: set[Var] = set()  # variables defined inside of a statement of a phase
        self.declarations: list[Let | View] = []

    def divide(self) -> tuple[Item, ...]:
        """The items of the launch. Raises KernelError for a barrier that not all threads reach alike."""
        for stmt in self.launch.body.stmts:
            run(self._look(stmt, None))
        self._want(self.launch.stop)
        for each in reversed(self.declarations):
            if isinstance(each, Let) and each.var in self.wanted:
                self._want(each.value)
            elif isinstance(each, View) and each.buffer in self.wanted:
                self.wanted.add(each.source)
                self._want(each.byte_offset, *each.buffer.shape)
        return tuple(run(self._opened(self.launch, ())))

    def _want(self, *exprs: Expr) -> None:
        for node in walk(*exprs):
            if isinstance(node, Var):
                self.wanted.add(node)
            elif isinstance(node, Load):
                self.wanted.add(node.buffer)

    def _look(self, stmt: Stmt, obstacle: _Obstacle | None) -> Steps[bool]:
        """Finds the statements around barriers and what they need; returns whether `stmt` contains a barrier."""
        if isinstance(stmt, For | While | IfThenElse | AttrStmt):
            obstacle = self._obstacle(stmt) or obstacle
            holds = False
            for each in (each for body in stmt.bodies for each in body.stmts):
                holds |= yield self._look(each, obstacle)
            if obstacle is None and (holds or self.role is ThreadRole.VIRTUAL):
                self.opened.add(stmt)
                self._want(*own_exprs(stmt))
            else:
                self.closed.update(_declared_below(stmt))
            return holds
        if isinstance(stmt, KernelCall) and any(map(_meets, closure_of(stmt.callee))):
            raise BarrierInside("a kernel that threads call", span=stmt.span).error()
        if any(isinstance(node, Call) and node.op is Op.BARRIER for node in walk(stmt)):
            if not is_barrier(stmt):
                raise BarrierInside("an expression", span=stmt.span).error()
            _refuse(stmt, obstacle)
            return True
        if isinstance(stmt, Let | View):
            self.declarations.append(stmt)
        elif isinstance(stmt, Allocate) and self.uniform.cause(*stmt.buffer.shape) is None:
            self._want(*stmt.buffer.shape)
        return False

    def _obstacle(self, stmt: Stmt) -> _Obstacle | None:
        """Why the threads cannot run `stmt` in step, barrier by barrier; None if they can."""
        if isinstance(stmt, While):
            return _Obstacle(stmt, "a `while`", None)
        if isinstance(stmt, For) and stmt.kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
            return _Obstacle(stmt, f"a loop over `{stmt.kind.value}`", None)
        if isinstance(stmt, For | IfThenElse) and (cause := self.uniform.cause(*own_exprs(stmt))) is not None:
            where = "a loop with a bound" if isinstance(stmt, For) else "a branch under a condition"
            return _Obstacle(stmt, where, cause)
        return None

    def _items(self, body: SeqStmt, axes: tuple[For, ...]) -> Steps[list[Item]]:
        """The phases of a block, cut at barriers and at statements that run once for all threads."""
        items: list[Item] = []
        phase: list[Stmt] = []

        def close() -> None:
            if phase:
                items.append(Phase(axes, tuple(phase)))
                phase.clear()

        for stmt in body.stmts:
            if stmt in self.opened:
                close()
                items += yield self._opened(stmt, axes)
            elif is_barrier(stmt):
                close()
                if self.role is ThreadRole.VIRTUAL:
                    items.append(Around(stmt))
            elif isinstance(stmt, Let | View) and self._is_for_all(stmt):
                if not is_plain(stmt.value if isinstance(stmt, Let) else stmt.byte_offset):
                    close()
                items.append(Around(stmt))
            else:
                if isinstance(stmt, Allocate) and not all(map(is_plain, stmt.buffer.shape)):
                    close()
                phase += _with_plain_offset(stmt)
                if self.role is ThreadRole.VIRTUAL and not isinstance(stmt, Allocate | View | Let):
                    close()
        close()
        return items

    def _is_for_all(self, stmt: Let | View) -> bool:
        """Whether a declaration comes before the threads, as it is the same for all of them."""
        if isinstance(stmt, Let):
            return stmt.var in self.wanted and self.uniform.cause(stmt.value) is None
        return stmt.buffer in self.wanted and stmt.buffer not in self.uniform.private

    def _opened(self, stmt: Stmt, axes: tuple[For, ...]) -> Steps[list[Item]]:
        if isinstance(stmt, For) and thread_role(stmt) is self.role:
            items: list[Item] = []
            if not is_plain(stmt.stop):
                extent = Let(Var(f"{stmt.var.name}_extent", i64), stmt.stop, span=stmt.span)
                items.append(Around(extent))
                stmt = stmt.replaced(stop=extent.var)
            inside: list[Item] = yield self._items(stmt.body, (*axes, stmt))
            return items + (inside if is_plainly_positive(stmt.stop) else _where_some(stmt, inside))
        bodies = []
        for body in stmt.bodies:
            bodies.append(tuple((yield self._items(body, axes))))
        return [Around(stmt, tuple(bodies))]


def _where_some(loop: For, items: list[Item]) -> list[Item]:
    """The items, guarded so that nothing runs for all threads if `loop` has no threads.

    A barrier that virtual threads pass stays outside of the guard: all threads around must reach it, with virtual
    threads or without. Not if it is inside of another statement, or among names that are declared for all.
    """

    def guarded(some: list[Item]) -> list[Item]:
        if not any(isinstance(item, Around) for item in some):
            return some
        condition = IfThenElse(LT(const(0, i64), loop.stop), SeqStmt(), span=loop.span)
        return [Around(condition, (tuple(some), ()))]

    barriers = [n for n, item in enumerate(items) if isinstance(item, Around) and is_barrier(item.stmt)]
    once = [item.stmt for n, item in enumerate(items) if isinstance(item, Around) and n not in barriers]
    kept = [stmt for item in items if isinstance(item, Phase) for stmt in item.stmts] + once
    if any(isinstance(stmt, Allocate | Let | View) for stmt in kept) or any(
        is_barrier(inner) for stmt in once for inner in statements(stmt)
    ):
        return guarded(items)
    found: list[Item] = []
    for first, last in pairwise([-1, *barriers, len(items)]):
        found += [*guarded(items[first + 1 : last]), *items[last : last + 1]]
    return found


def _declared_below(stmt: Stmt) -> Iterator[Var]:
    """The variables defined in the bodies of `stmt`, except in deeper composites."""
    if isinstance(stmt, For):
        yield stmt.var
    for body in stmt.bodies:
        yield from (each.var for each in body.stmts if isinstance(each, Let))


def _meets(func: Function) -> bool:
    return any(is_barrier(stmt) for stmt in statements(func.body))


def _with_plain_offset(stmt: Stmt) -> tuple[Stmt, ...]:
    """A view with its offset in a let if that is read from memory, so that it can be declared again."""
    if not isinstance(stmt, View) or is_plain(stmt.byte_offset):
        return (stmt,)
    given, var = stmt.byte_offset, Var(f"{stmt.buffer.name}_offset", i64)
    let = Let(var, bare(given), span=stmt.span)
    return let, stmt.replaced(byte_offset=checked(var) if is_checked(given) else var)


def _refuse(barrier: Stmt, obstacle: _Obstacle | None) -> None:
    if obstacle is None:
        return
    around = obstacle.stmt.span
    if obstacle.cause is None:
        raise BarrierInside(obstacle.where, span=barrier.span, related=around).error()
    raise DivergentBarrier(obstacle.where, obstacle.cause, span=barrier.span, related=around).error()
