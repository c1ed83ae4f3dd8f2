"""Emits polls for signals in loops that may run long, at a fixed interval of iterations over all runs of a loop."""

from __future__ import annotations

from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, integer
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, GT, LE, LT, Add, Expr, FloorDiv, IntImm, Load, Ramp, ShiftRight, Sub, Var
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
    """The counter of a polling loop, in a stack slot of its function.
    If `is_down` it counts the iterations until the next poll down to 0, which needs no separate comparison; else it
    counts those since the last poll.
    """

    out: KernelFunction
    place: Value
    in_memory: bool
    is_down: bool


def begin(around: list[Count], out: KernelFunction, loop: For | While, between: Value) -> None:
    """Counts an iteration of a loop, which polls once in `between` iterations, and adds its counter to `around`.

    The counter is kept in memory if there are inner loops, so that it takes no register from them.
    """
    is_down = between.number is not None
    count = Count(out, out.alloca(8, 8), next(statements_of(loop.body, For), None) is not None, is_down)
    around.append(count)
    first, last = (between, integer(0)) if is_down else (integer(0), between)
    out.allocas.append(f"  store {first.typed}, ptr {count.place.text}")
    polls, going = out.label("ask"), out.label("going")
    so_far = _added(count, integer(1))
    out.branch_if(out.compare("icmp sle" if is_down else "icmp sge", so_far, last), polls, going)
    out.start(polls)
    out.effect(f"store {_volatile(count)}{first.typed}, {count.place.typed}", count.place)
    poll_now(out)
    out.branch(going)
    out.start(going)


def counts(around: list[Count], out: KernelFunction) -> bool:
    """Whether a loop around has a counter in this function."""
    return bool(around) and around[-1].out is out


def pass_on(around: list[Count], out: KernelFunction, moves: type[Add | Sub], before: Value, after: Value) -> None:
    """Counts the iterations of a loop that does not poll itself, by how far its variable moved, for the loop around."""
    if counts(around, out):
        _added(around[-1], out.op("sub", after, before) if moves is Add else out.op("sub", before, after))


def _added(count: Count, iterations: Value) -> Value:
    out, place = count.out, count.place
    volatile = _volatile(count)
    sum_ = out.op(
        "sub nsw" if count.is_down else "add", out.value(i64, f"load {volatile}i64, {place.typed}", place), iterations
    )
    out.effect(f"store {volatile}{sum_.typed}, {place.typed}", sum_, place)
    return sum_


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


def counter_along(loop: While) -> tuple[Load, type[Add | Sub]] | None:
    """The scalar that counts up or down to a limit and indexes an array, and the operation that changes it.

    None if there is none, or if there are inner loops.
    """
    stmts = [*statements(loop.body)]
    if any(isinstance(stmt, For | While | KernelCall) for stmt in stmts):
        return None
    written = [stmt.buffer for stmt in stmts if isinstance(stmt, Store)]
    for each in conjuncts(loop.condition):
        if not isinstance(each, LT | LE | GT | GE):
            continue
        counter, limit = each.a, each.b
        if not isinstance(counter, Load) or counter.indices or counter.dtype != i64:
            continue
        moves = Add if isinstance(each, LT | LE) else Sub
        is_fixed = not any(isinstance(node, Load) and node.buffer in written for node in walk(limit))
        if is_fixed and written.count(counter.buffer) == 1 and _goes(loop, counter, moves):
            return counter, moves
    return None


def _goes(loop: While, counter: Load, moves: type[Add | Sub]) -> bool:
    """Whether each iteration increments or decrements the counter, and an array is indexed by it."""
    named: set[Var] = set()
    goes = False
    for stmt in loop.body.stmts:
        if isinstance(stmt, Let) and _is_counter(stmt.value, counter):
            named.add(stmt.var)
        elif isinstance(stmt, Store) and stmt.buffer is counter.buffer and isinstance(stmt.value, moves):
            old, by = stmt.value.a, stmt.value.b
            goes = (old in named or _is_counter(old, counter)) and isinstance(by, IntImm) and by.value > 0
    nodes = walk(loop.condition, *loop.body.stmts)
    places = (index for node in nodes if isinstance(node, Load | Store) for index in node.indices)
    return goes and any(_follows(index, counter, named) for index in places)


def _follows(index: Expr, counter: Load, named: set[Var]) -> bool:
    """Whether an index is the counter plus or minus something, or a Ramp from there."""
    todo = [index]
    while todo:
        each = todo.pop()
        if each in named or _is_counter(each, counter):
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
