"""Writes how loops that may take long ask for signals: once in so many iterations, however often they are begun."""

from __future__ import annotations

from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.values import Value, integer
from tirlite.ir import For, While, i64, statements_of
from tirlite.record import record
from tirlite.target.convention import POLL


def ask_now(out: KernelFunction) -> None:
    """Ends the function where the handler of a signal has raised an exception."""
    out.module.asks = True
    out.check(out.call(i64, POLL))


@record(eq=False)
class _Count:
    """How many iterations there were since a loop has asked, at a place on the stack of a function."""

    out: KernelFunction
    place: Value
    in_memory: bool


class Asking:
    """What the loops around count."""

    def __init__(self) -> None:
        self.open: list[_Count] = []

    def begin(self, out: KernelFunction, loop: For | While, between: Value) -> None:
        """Counts an iteration, of so many between which the loop asks.

        The count stays in memory where loops inside may be of vectors, so that it takes no register from them.
        """
        count = _Count(out, out.alloca(8, 8), next(statements_of(loop.body, For), None) is not None)
        self.open.append(count)
        out.allocas.append(f"  store i64 0, ptr {count.place.text}")
        asks, going = out.label("ask"), out.label("going")
        so_far = _added(count, integer(1))
        out.branch_if(out.compare("icmp sge", so_far, between), asks, going)
        out.start(asks)
        out.effect(f"store {_volatile(count)}i64 0, {count.place.typed}", count.place)
        ask_now(out)
        out.branch(going)
        out.start(going)

    def end(self) -> None:
        """What follows is no longer in that loop."""
        self.open.pop()

    def counts(self, out: KernelFunction) -> bool:
        """Whether a loop around counts, in this function."""
        return bool(self.open) and self.open[-1].out is out

    def passed(self, out: KernelFunction, iterations: Value) -> None:
        """Iterations of a loop inside that asks for nothing itself count as those of the one around."""
        if self.counts(out):
            _added(self.open[-1], iterations)


def _added(count: _Count, iterations: Value) -> Value:
    out, place = count.out, count.place
    volatile = _volatile(count)
    sum_ = out.op("add", out.value(i64, f"load {volatile}i64, {place.typed}", place), iterations)
    out.effect(f"store {volatile}{sum_.typed}, {place.typed}", sum_, place)
    return sum_


def _volatile(count: _Count) -> str:
    return "volatile " if count.in_memory else ""
