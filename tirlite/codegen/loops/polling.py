"""Emits polls for signals in loops that may run long, at a fixed interval of iterations over all runs of a loop."""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.analysis.integers.moves import Moves
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, integer
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, GT, LE, LT, Add, Buffer, Expr, FloorDiv, IntImm, Load, Ramp, ShiftRight, Sub, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.stmt import For, Let, Store, While
from tirlite.ir.walk import conjuncts, statements, statements_of, walk
from tirlite.record import record
from tirlite.target.convention import POLL

# A function of the module that polls, with a calling convention that preserves nearly all registers: a loop need not
# spill registers for a call that is rarely made.
ASK = "tirlite.ask"
_KEEPS = "preserve_mostcc "


def poll_now(out: KernelFunction) -> None:
    """Polls, and ends the function if a signal handler raised an exception."""
    module = out.module
    module.polls = True
    if ASK not in module.inlined:
        body = FunctionText(module)
        body.effect(f"ret i64 {body.call(i64, POLL).text}")
        module.inlined[ASK] = body.definition(ASK, "cold noinline nounwind", result=f"{_KEEPS}i64")
    out.check(out.invoke(i64, ASK, (), _KEEPS))


@record(eq=False)
class Count:
    """The iteration counter of a polling loop, in a stack slot of its function `out`.

    That of a `while` counts down to the next poll, and that of a `for` up. `in_memory`: it takes no register.
    """

    out: KernelFunction
    place: Value
    in_memory: bool


def begin(around: list[Count | None], out: KernelFunction, loop: While, between: int) -> None:
    """Counts an iteration of a loop, which polls once in `between` iterations, and adds its counter to `around`.

    The counter is kept in memory if there are inner loops, so that it takes no register from them.
    """
    count = Count(out, out.alloca(8, 8), next(statements_of(loop.body, For), None) is not None)
    around.append(count)
    first = integer(between)
    out.allocas.append(f"  store {first.typed}, ptr {count.place.text}")
    polls, going = out.label("ask"), out.label("going")
    left = _moved(count, "sub nsw", integer(1))
    out.branch_if(out.compare("icmp sle", left, integer(0)), polls, going)
    out.start(polls)
    out.effect(f"store {_volatile(count)}{first.typed}, {count.place.typed}", count.place)
    poll_now(out)
    out.branch(going)
    out.start(going)


def count_up(out: KernelFunction, iterations: Value, between: Value, *, in_memory: bool = False) -> None:
    """Polls once there were `between` iterations, of all runs of a loop, with these.

    The counter is kept in memory if inner loops need the registers.
    """
    count, polls, going = Count(out, out.alloca(8, 8), in_memory), out.label("ask"), out.label("going")
    out.allocas.append(f"  store i64 0, ptr {count.place.text}")
    so_far = _moved(count, "add", iterations)
    out.branch_if(out.compare("icmp uge", so_far, between), polls, going)
    out.start(polls)
    out.effect(f"store {_volatile(count)}i64 0, {count.place.typed}", count.place)
    poll_now(out)
    out.branch(going)
    out.start(going)


def counts(around: list[Count | None], out: KernelFunction) -> Count | None:
    """The counter of the `while` around, in this function; None if another loop polls in between, or if none does."""
    return around[-1] if around and around[-1] is not None and around[-1].out is out else None


def how_far(values: Expressions, along: Iterable[tuple[Load, int]]) -> Value:
    """How far variables have counted up, or down, in all."""
    far = integer(0)
    for counter, way in along:
        far = values.out.op("add" if way > 0 else "sub", far, values.value(counter))
    return far


def pass_on(count: Count, iterations: Value) -> None:
    """Counts the iterations of a loop that does not poll itself for the loop around."""
    _moved(count, "sub nsw", iterations)


def _moved(count: Count, operation: str, iterations: Value) -> Value:
    out, place, volatile = count.out, count.place, _volatile(count)
    moved = out.op(operation, out.value(i64, f"load {volatile}i64, {place.typed}", place), iterations)
    out.effect(f"store {volatile}{moved.typed}, {place.typed}", moved, place)
    return moved


def _volatile(count: Count) -> str:
    return "volatile " if count.in_memory else ""


def ends_soon(loop: While) -> bool:
    """Whether each iteration at least halves a number that must stay positive: then there are at most 64."""
    stmts = [*statements(loop.body)]
    if any(isinstance(stmt, For | While | KernelCall) for stmt in stmts):
        return False
    written = [stmt.buffer for stmt in stmts if isinstance(stmt, Store)]
    for each in conjuncts(loop.condition):
        if not isinstance(each, GT | GE) or not isinstance(each.a, Load) or not isinstance(each.b, IntImm):
            continue
        if each.b.value < isinstance(each, GE):
            continue
        halved = (stmt for stmt in loop.body.stmts if isinstance(stmt, Store) and _halves(stmt.value, each.a))
        if written.count(each.a.buffer) == 1 and any(stmt.buffer is each.a.buffer for stmt in halved):
            return True
    return False


def _halves(value: Expr, number: Load) -> bool:
    """Whether a value is the local number, at least halved."""
    if not isinstance(value, ShiftRight | FloorDiv) or not isinstance(value.b, IntImm):
        return False
    return _is_counter(value.a, number) and value.b.value > isinstance(value, FloorDiv)


def counters_along(loop: While) -> list[tuple[Load, int]]:
    """The scalars that count up (1) or down (-1) to limits and index arrays, of which each iteration changes one.

    None of them if there are inner loops.
    """
    stmts = [*statements(loop.body)]
    if any(isinstance(stmt, For | While | KernelCall) for stmt in stmts):
        return []
    written = {stmt.buffer for stmt in stmts if isinstance(stmt, Store)}
    named = {stmt.var: stmt.value.buffer for stmt in stmts if isinstance(stmt, Let) and isinstance(stmt.value, Load)}
    nodes = [*walk(loop.condition, *loop.body.stmts)]
    places = [index for node in nodes if isinstance(node, Load | Store) for index in node.indices]
    found: list[tuple[Load, int]] = []
    for each in conjuncts(loop.condition):
        if not isinstance(each, LT | LE | GT | GE):
            continue
        counter, limit = each.a, each.b
        if not isinstance(counter, Load) or counter.indices or counter.dtype != i64 or counter.buffer not in written:
            continue
        is_fixed = not any(isinstance(node, Load) and node.buffer in written for node in walk(limit))
        if is_fixed and any(_follows(index, counter, named) for index in places):
            found.append((counter, 1 if isinstance(each, LT | LE) else -1))
    moves = Moves(loop, [counter.buffer for counter, _ in found])
    for some in (*([each] for each in found), found):
        least = moves.of({counter.buffer: way for counter, way in some})[0]
        if least is not None and least > 0:
            return some
    return []


def _follows(index: Expr, counter: Load, named: dict[Var, Buffer]) -> bool:
    """Whether an index is the counter plus or minus something, or a Ramp from there."""
    todo = [index]
    while todo:
        each = todo.pop()
        if _is_counter(each, counter) or (isinstance(each, Var) and named.get(each) is counter.buffer):
            return True
        if isinstance(each, Add):
            todo += (each.a, each.b)
        elif isinstance(each, Sub):
            todo.append(each.a)
        elif isinstance(each, Ramp):
            todo.append(each.base)
    return False


def _is_counter(node: Node, counter: Load) -> bool:
    return isinstance(node, Load) and node.buffer is counter.buffer and not node.indices
