"""Emits an estimate of the operations in one iteration of a loop, a number that the kernel computes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tirlite.analysis.loops.work import follows_whole
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, decimal, integer
from tirlite.codegen.loops.loop_hints import lane_of
from tirlite.ir.checked import unmasked
from tirlite.ir.dtype import f64, i64
from tirlite.ir.expr import (
    GE,
    Add,
    Broadcast,
    Call,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Load,
    Min,
    Mul,
    Ramp,
    Sub,
    Var,
)
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import (
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    While,
)
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import (
    COMPOSITES,
    accesses_in,
    is_constant,
    is_steady,
    mentions,
    statements_of,
    variables_in,
    walk,
)
from tirlite.record import record

# What stands in for a count that is known inside alone, as the iterations of a loop may be.
_SOME = 16.0
# The loops around a loop that polls for signals are no more than these.
_DEEPEST = 1
# Iterations in which no kernel takes long, and operations that take some milliseconds.
_LITTLE = 1e5
_STRETCH = 5e6
# Behind whole vectors there are no more than the most lanes that one has.
_REST = 64
# This many iterations of loops inside are straight code to LLVM.
_TAPS_OF_NEST = 4
_TAPS = 16
# What an elementary function or a call costs, a quotient or a root, a load and a store, in sums; and what is free.
_CALL = 40.0
_QUOTIENT = 16.0
_LOAD, _STORE = 3.0, 6.0
_FREE: frozenset[type[Node]] = frozenset((Var, IntImm, FloatImm, Broadcast, Ramp))


@record
class Work:
    """A number, plus an operand of type double."""

    known: float
    operand: Value | None = None


def work_of(values: Expressions, loop: For, once: dict[For, Work]) -> Value:
    """The operations of one iteration in the middle of a loop, a double: each takes a part of a nanosecond.

    What is known so far stands in `once`, as then does the work of loops inside that nothing around them changes but
    what is known before this one. What workers go by is one of the values that they are given. It is computed without
    checks: a bound inside may have a value on a condition alone.
    """
    if loop not in once:
        estimate = _Estimate(Expressions(values.out, values.environment), loop)
        once[loop] = run(estimate.of_loop(loop))
        once |= estimate.steady
    return _operand(values.out, once[loop])


def polls_between(loop: For, depth: int) -> bool:
    """Whether a loop with this many loops around polls for signals: the outer ones of a nest that may take long.

    One that goes along an array, and goes over a few taps there, is left to LLVM as if it had no loops inside.
    """
    if loop.kind is ForKind.UNROLLED or depth > _DEEPEST:
        return False
    inside = [*statements_of(loop.body, For, While, KernelCall)]
    if inside and all(map(_is_short, inside)) and _is_along_array(loop):
        return False
    product = 1.0
    for each in (loop, *inside):
        if not isinstance(each, For) or each.values is None:
            return bool(inside)
        product *= max(1, len(each.values))
    return bool(inside) and product > _LITTLE


def _is_short(stmt: Stmt) -> bool:
    """Whether a statement is a loop over a few taps. Of more in several loops vectors serve the loop around badly."""
    inside = (each for body in stmt.bodies for each in statements_of(body, For, While, KernelCall))
    taps = 1
    for place, each in enumerate(chain((stmt,), inside)):
        if not isinstance(each, For) or each.values is None or place == _TAPS_OF_NEST:
            return False
        taps *= len(each.values)
        if taps > (_TAPS_OF_NEST if place else _TAPS):
            return False
    return True


def is_unbound(loop: For) -> bool:
    """Whether a loop without loops inside may have more iterations than any array has elements along an axis."""
    if loop.values is not None:
        return len(loop.values) > _LITTLE
    if next(statements_of(loop.body, For, While, KernelCall), None) is not None:
        return False
    return not goes_over_the_rest(loop) and not _is_along_array(loop)


def goes_over_the_rest(loop: For) -> bool:
    """Whether a loop runs a few times behind whole vectors: `range(m // 64 * 64, m)`, `range(min(16, m))`."""
    start, stop = loop.start, loop.stop
    if isinstance(start, IntImm):
        return isinstance(stop, Min) and isinstance(stop.a, IntImm) and stop.a.value - start.value <= _REST
    from tirlite.ir import structural_equal  # most loops begin at a number

    if isinstance(start, Add) and isinstance(stop, Add) and structural_equal(start.a, stop.a):
        start, stop = start.b, stop.b
    if not isinstance(start, Mul) or not isinstance(start.a, FloorDiv) or not structural_equal(start.a.b, start.b):
        return False
    return isinstance(start.b, IntImm) and start.b.value <= _REST and bool(structural_equal(start.a.a, stop))


def _is_along_array(loop: For) -> bool:
    """Whether an axis of an array bounds the iterations of a loop."""
    return any(_goes_along(index, loop) for node in accesses_in(loop.body) for index in node.indices)


def _goes_along(index: Expr, loop: For) -> bool:
    """Whether an index is another one in each iteration: a sum with the variable, or a vector of such."""
    index = unmasked(index)
    while isinstance(index, Add | Sub | Ramp):
        if isinstance(index, Ramp):
            index = index.base
        else:
            index = index.b if mentions(index.b, loop.var) else index.a
    return index is loop.var


def iterations_between(out: FunctionText, work: Value) -> Value:
    """How many iterations that take this many operations each take some milliseconds, an i64: at least one."""
    # Where loops inside have no iterations, the estimate is 0 or below.
    work = out.intrinsic("maxnum", work, decimal(1.0))
    longest = out.op("fdiv", decimal(_STRETCH), work)
    return out.op("add", out.cast("fptosi", longest, i64), integer(1))


class _Estimate:
    """Takes for each loop variable inside the middle of its range, and for what is bound to a name what that gives."""

    def __init__(self, values: Expressions, loop: For) -> None:
        self.values = values
        self.out = values.out
        self.vector_bytes = values.out.module.processor.vector_bytes
        self.in_vectors = False  # whether LLVM makes vectors of a loop around
        self.asked = set(variables_in(*_decisive(loop)))
        self.around: list[For | Let] = []  # what has defined variables so far
        self.bounds: dict[Expr, Value] = {}
        self.counted: dict[tuple[object, ...], Work] = {}
        self.steady: dict[For, Work] = {}

    def of_loop(self, loop: For) -> Steps[Work]:
        """The work of one iteration."""
        variables = self.values.environment.variables
        if loop.var in self.asked and self.is_known(loop.start) and self.is_known(loop.stop):
            half = self.out.op("ashr", self.distance(loop), integer(1))
            if loop.step > 1:  # in the middle, too, a block begins where one does
                half = self.out.op("sub", half, self.out.op("srem", half, integer(loop.step)))
            variables[loop.var] = (
                half if is_constant(loop.start, 0) else self.out.op("add", self.bound(loop.start), half)
            )
        self.around.append(loop)
        lane = 1.0 if self.in_vectors else lane_of(loop, self.vector_bytes)
        around, self.in_vectors = self.in_vectors, self.in_vectors or lane < 1
        once: Work = yield self.block(loop.body)
        self.in_vectors = around
        once = self.sum(once, Work(1.0))
        if lane < 1:
            once = self.product(once, Work(lane))
        # What stands in for variables is no value of theirs.
        defining: Iterator[For | Let] = statements_of(loop, For, Let)
        for stmt in defining:
            variables.pop(stmt.var, None)
        return once

    def block(self, body: SeqStmt) -> Steps[Work]:
        total = Work(0.0)
        for stmt in body.stmts:
            if type(stmt) in COMPOSITES:
                total = self.sum(total, (yield self.composite(stmt)))
            elif isinstance(stmt, KernelCall):
                total = self.sum(total, self.kernel_call(stmt))
            else:
                if isinstance(stmt, Let) and stmt.var.dtype == i64 and self.is_known(stmt.value):
                    self.values.environment.variables[stmt.var] = self.bound(stmt.value)
                    self.around.append(stmt)
                total = Work(total.known + self.cost(stmt), total.operand)
        return total

    def composite(self, stmt: Stmt) -> Steps[Work]:
        if isinstance(stmt, For):
            trips = self.trips(stmt)
            around = {each.var for each in self.around}
            once = yield self.of_loop(stmt)
            if not _is_decided_by(stmt, around):
                self.steady[stmt] = once
            return self.product(once, trips)
        if isinstance(stmt, While):
            once = yield self.block(stmt.body)
            return self.product(once, Work(_SOME))
        if isinstance(stmt, IfThenElse):
            one: Work = yield self.block(stmt.then_body)
            other: Work = yield self.block(stmt.else_body)
            enough = stmt.condition
            if isinstance(enough, GE) and isinstance(enough.b, IntImm) and not self.is_known(enough.a):
                return one if enough.b.value <= _SOME else other
            return self.larger(one, other)
        assert isinstance(stmt, AttrStmt)
        inner: Work = yield self.block(stmt.body)
        return inner

    def cost(self, stmt: Stmt) -> float:
        """The operations of a statement without others inside, which each loop around it asks for."""
        costs = self.values.environment.costs
        if stmt not in costs:
            costs[stmt] = _cost(stmt, self.vector_bytes)
        return costs[stmt]

    def kernel_call(self, call: KernelCall) -> Work:
        """As much as the callee's arrays have elements: it may do more with each, and seldom does less."""
        total = Work(_CALL)
        for _, buffer in call.buffers():
            elements = Work(1.0)
            for extent in buffer.shape:
                elements = self.product(elements, self.number(extent))
            total = self.sum(total, elements)
        return total

    def number(self, extent: Expr) -> Work:
        if isinstance(extent, IntImm):
            return Work(float(extent.value))
        if not self.is_known(extent):
            return Work(_SOME)
        return Work(0.0, self.out.cast("sitofp", self.values.value(extent), f64))

    def trips(self, loop: For) -> Work:
        if loop.values is not None:
            return Work(float(len(loop.values)))
        if not (self.is_known(loop.start) and self.is_known(loop.stop)):
            return Work(_SOME / 8 if loop.step == 1 and follows_whole(loop) else max(1.0, _SOME / abs(loop.step)))
        if (whole := _block_at(loop)) is not None:
            return Work(whole / loop.step)
        key = (loop.stop, loop.step) if is_constant(loop.start, 0) else (loop.start, loop.stop, loop.step)
        if key not in self.counted:
            trips = self.distance(loop)
            if loop.step != 1:  # a short loop over blocks has one
                reach = self.out.op("add", trips, integer(loop.step - (1 if loop.step > 0 else -1)))
                trips = self.out.op("sdiv", reach, integer(loop.step))
            self.counted[key] = Work(0.0, self.out.cast("sitofp", trips, f64))
        return self.counted[key]

    def distance(self, loop: For) -> Value:
        """From the start of a loop to its stop."""
        stop = self.bound(loop.stop)
        return stop if is_constant(loop.start, 0) else self.out.op("sub", stop, self.bound(loop.start))

    def bound(self, expr: Expr) -> Value:
        """The value of an expression, which is computed once."""
        if expr not in self.bounds:
            self.bounds[expr] = self.values.value(expr)
        return self.bounds[expr]

    def is_known(self, bound: Expr) -> bool:
        """Whether a bound has its value before the loop, and costs little."""
        known = self.values.environment.variables
        return not any(
            isinstance(node, Load | Call | LetExpr) or (isinstance(node, Var) and node not in known)
            for node in walk(bound)
        )

    def sum(self, a: Work, b: Work) -> Work:
        if a.operand and b.operand:
            return Work(a.known + b.known, self.out.op("fadd", a.operand, b.operand))
        return Work(a.known + b.known, a.operand or b.operand)

    def larger(self, a: Work, b: Work) -> Work:
        if a.operand or b.operand:
            if Work(0.0) in (a, b):
                return self.sum(a, b)
            return Work(0.0, self.out.intrinsic("maxnum", _operand(self.out, a), _operand(self.out, b)))
        return Work(max(a.known, b.known))

    def product(self, a: Work, b: Work) -> Work:
        if a.operand or b.operand:
            return Work(0.0, self.out.op("fmul", _operand(self.out, a), _operand(self.out, b)))
        return Work(a.known * b.known)


def _block_at(loop: For) -> int | None:
    """How far a short block reaches, which may end where all do: those in the middle are whole."""
    stop, start = loop.stop, loop.start
    if not (isinstance(stop, Min) and isinstance(stop.a, Add) and stop.a.a is start and isinstance(stop.a.b, IntImm)):
        return None
    return stop.a.b.value if stop.a.b.value <= _REST else None


def _is_decided_by(loop: For, around: set[Var]) -> bool:
    """Whether variables from around a loop stand in what the work of an iteration is estimated from."""
    return mentions((loop.start, loop.stop, *_decisive(loop)), around)


def _decisive(loop: For) -> Iterator[Expr]:
    """What the work of an iteration is estimated from."""
    deciding: Iterator[For | Let | KernelCall] = statements_of(loop.body, For, Let, KernelCall)
    for stmt in deciding:
        if isinstance(stmt, For):
            yield from (stmt.start, stmt.stop)
        elif isinstance(stmt, KernelCall):
            yield from (extent for _, buffer in stmt.buffers() for extent in buffer.shape)
        elif stmt.var.dtype == i64:
            yield stmt.value


def _cost(stmt: Stmt, vector_bytes: int) -> float:
    """How many operations a statement takes, on vectors that fill registers, but for plain indices and for scalars."""
    total = 0.0
    todo: list[Node] = [stmt]
    while todo:
        node = todo.pop()
        if isinstance(node, (Load, Store)):
            value = node.value if isinstance(node, Store) else node
            looks_up = not is_steady(*node.indices)
            if node.indices:
                access = _STORE if isinstance(node, Store) else _LOAD
                total += access * (value.dtype.lanes if looks_up else max(1.0, value.dtype.bytes / vector_bytes))
            todo += (*(node.indices if looks_up else ()), *((value,) if isinstance(node, Store) else ()))
            continue
        if isinstance(node, Expr) and type(node) not in _FREE:
            total += _price(node) * max(1.0, node.dtype.bytes / vector_bytes)
        todo += node.children()
    return total


def _price(node: Expr) -> float:
    """How many operations one takes that is no access."""
    if isinstance(node, Call):
        return _CALL if node.op.takes_fast or node.op is Op.CALL_EXTERN else _QUOTIENT if node.op is Op.SQRT else 1.0
    return _QUOTIENT if isinstance(node, Div | FloorDiv | FloorMod) else 1.0


def _operand(out: FunctionText, work: Work) -> Value:
    known = decimal(min(work.known, 1e300))
    if work.operand is None:
        return known
    return out.op("fadd", work.operand, known) if work.known else work.operand
