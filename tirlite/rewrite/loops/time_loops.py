"""TimeLoops measures how long each outermost loop of a function takes, by calls of a clock around it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

from tirlite.ir.dtype import handle, i32, i64
from tirlite.ir.expr import Add, Buffer, Call, Expr, IntImm, Load, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.op import Op
from tirlite.ir.stmt import AttrStmt, Evaluate, For, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.record import record

Timed: TypeAlias = For | While | KernelCall

_KINDS = (For, While, KernelCall)


class ClockKind(Enum):
    """How a clock reports nanoseconds: it returns them, or stores them at an address."""

    GIVES = "gives"
    STORES = "stores"


@record
class Clock:
    """A C function at an address that reports nanoseconds."""

    address: int
    kind: ClockKind = ClockKind.GIVES


@record
class TimeLoops:
    """Adds a parameter `ticks: i64[2 * k + 1]` that accumulates times.

    For the i-th outermost loop, or call of a function, `ticks[2 * i]` counts nanoseconds and the next element the runs.
    The last element is used by the clock.
    """

    clock: Clock
    name: str = "time_loops"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        loops = outermost(func.body)
        ticks = Buffer("ticks", i64, (const(2 * len(loops) + 1, i64),))
        places = {loop: place for place, loop in enumerate(loops)}
        body = self._timed(func.body, places, ticks)
        return func.replaced(params=(*func.params, ticks), body=body)

    def _timed(self, body: SeqStmt, places: dict[Timed, int], ticks: Buffer) -> SeqStmt:
        made: list[Stmt] = []
        for stmt in body.stmts:
            if isinstance(stmt, IfThenElse):
                branches = (self._timed(stmt.then_body, places, ticks), self._timed(stmt.else_body, places, ticks))
                made.append(stmt.replaced(then_body=branches[0], else_body=branches[1]))
            elif isinstance(stmt, AttrStmt):
                made.append(stmt.replaced(body=self._timed(stmt.body, places, ticks)))
            elif isinstance(stmt, _KINDS):
                begin, end = Var("begin", i64), Var("end", i64)
                made += (*self._now(begin, ticks), stmt, *self._now(end, ticks))
                made += _more(ticks, 2 * places[stmt], Sub(end, begin))
                made += _more(ticks, 2 * places[stmt] + 1, const(1, i64))
            else:
                made.append(stmt)
        return SeqStmt(tuple(made))

    def _now(self, name: Var, ticks: Buffer) -> Iterable[Stmt]:
        address = IntImm(i64, self.clock.address)
        if self.clock.kind is ClockKind.GIVES:
            return (Let(name, Call(i64, Op.CALL_EXTERN, (address,))),)
        last = Load(ticks, (Sub(ticks.shape[0], const(1, i64)),))
        place = Call(handle, Op.ADDRESS_OF, (last,))
        return Evaluate(Call(i32, Op.CALL_EXTERN, (address, place))), Let(name, last)


def outermost(body: SeqStmt) -> list[Timed]:
    """The loops, and calls of functions, that are in no other loop, in program order."""
    found: list[Timed] = []
    stack: list[Stmt] = [*body.stmts[::-1]]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, _KINDS):
            found.append(stmt)
        else:
            stack += (each for body in stmt.bodies[::-1] for each in body.stmts[::-1])
    return found


def _more(ticks: Buffer, place: int, amount: Expr) -> tuple[Stmt, ...]:
    index = (const(place, i64),)
    return (Store(ticks, index, Add(Load(ticks, index), amount)),)
