"""Emits an estimate, computed by the kernel, of the operations in one iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tirlite.analysis.loops.patterns import follows_whole
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

# The estimate for a count that is unknown before the loop, such as the iterations of an inner loop.
_SOME = 16.0
# The deepest level of a loop that polls for signals.
_DEEPEST = 1
# Iterations that never take long, and operations that take some milliseconds.
_LITTLE = 1e5
_STRETCH = 5e6
# The most iterations of a remainder loop: the lanes of the widest vector.
_REST = 64
# LLVM unrolls inner loops with at most this many iterations: of a nest, and of a single loop.
_TAPS_OF_NEST = 4
_TAPS = 16
# The costs of an elementary function or call, of a quotient or root, and of a load and a store, in additions.
_CALL = 40.0
_QUOTIENT = 16.0
_LOAD, _STORE = 3.0, 6.0
_FREE: frozenset[type[Node]] = frozenset((Var, IntImm, FloatImm, Broadcast, Ramp))


@record
class Work:
    """A number of operations: a constant, plus an operand of type double."""

    known: float
    operand: Value | None = None


def work_of(values: Expressions, loop: For, once: dict[For, Work]) -> Value:
    """The operations of an average iteration of a loop, as a double; each takes a fraction of a nanosecond.
    `once` caches the work of loops, and receives that of inner loops which depend on nothing but what is known before
    this one. The estimate is computed without checks, as a bound inside may be valid only under a condition.
    """
    if loop not in once:
        estimate = _Estimate(Expressions(values.out, values.environment), loop)
        once[loop] = run(estimate.of_loop(loop))
        once |= estimate.steady
    return _operand(values.out, once[loop])


def polls_between(loop: For, depth: int, *, whiles: bool) -> bool:
    """Whether a loop at this depth polls for signals: the outer loops of a nest that may run long do.

    Asked for those with a `while` inside, or for the others, which are to poll in each iteration: else LLVM unswitches
    loops over vectors into twice the code, which was slower. A loop along an array with only a few taps inside does not
    poll, so that LLVM can optimise it like an innermost loop.
    """
    if loop.kind is ForKind.UNROLLED or depth > _DEEPEST:
        return False
    inside = [*statements_of(loop.body, For, While, KernelCall)]
    if any(isinstance(each, While) for each in inside) is not whiles:
        return False
    if inside and all(map(_is_short, inside)) and _is_along_array(loop):
        return False
    product = 1.0
    for each in (loop, *inside):
        if not isinstance(each, For) or each.values is None:
            return bool(inside)
        product *= max(1, len(each.values))
    return bool(inside) and product > _LITTLE


def _is_short(stmt: Stmt) -> bool:
    """Whether a statement is a loop over a few taps; in a nest fewer, as LLVM vectorizes around it badly."""
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
    """Whether an innermost loop may have more iterations than an array's axis has elements."""
    if loop.values is not None:
        return len(loop.values) > _LITTLE
    if next(statements_of(loop.body, For, While, KernelCall), None) is not None:
        return False
    return not goes_over_the_rest(loop) and not _is_along_array(loop)


def goes_over_the_rest(loop: For) -> bool:
    """Whether a loop is the remainder after whole vectors: `range(m // 64 * 64, m)`, `range(min(16, m))`."""
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
    """Whether the loop variable moves along an axis of an array, which bounds the iterations."""
    return any(_goes_along(index, loop) for node in accesses_in(loop.body) for index in node.indices)


def _goes_along(index: Expr, loop: For) -> bool:
    """Whether an index differs in each iteration: a sum with the variable, or a Ramp of such."""
    index = unmasked(index)
    while isinstance(index, Add | Sub | Ramp):
        if isinstance(index, Ramp):
            index = index.base
        else:
            index = index.b if mentions(index.b, loop.var) else index.a
    return index is loop.var


def iterations_between(out: FunctionText, work: Value) -> Value:
    """How many iterations with `work` operations take some milliseconds, as an i64 of at least 1."""
    # If inner loops have no iterations, the estimate is 0 or negative.
    work = out.intrinsic("maxnum", work, decimal(1.0))
    longest = out.op("fdiv", decimal(_STRETCH), work)
    return out.op("add", out.cast("fptosi", longest, i64), integer(1))


class _Estimate:
    """Estimates work with each inner loop variable in the middle of its range, and lets computed from that."""

    def __init__(self, values: Expressions, loop: For) -> None:
        self.values = values
        self.out = values.out
        self.vector_bytes = values.out.module.processor.vector_bytes
        self.in_vectors = False  # whether LLVM vectorizes a loop around
        self.decisive = set(variables_in(*_decisive(loop)))
        self.around: list[For | Let] = []  # the statements that have defined variables so far
        self.bounds: dict[Expr, Value] = {}
        self.counted: dict[tuple[object, ...], Work] = {}
        self.steady: dict[For, Work] = {}

    def of_loop(self, loop: For) -> Steps[Work]:
        """The work of one iteration."""
        variables = self.values.environment.variables
        if loop.var in self.decisive and self.is_known(loop.start) and self.is_known(loop.stop):
            half = self.out.op("ashr", self.distance(loop), integer(1))
            if loop.step > 1:  # round the middle down to the start of a block
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
        # Drop the stand-ins: they are not the variables' values.
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
        """The cost of a leaf statement, cached, since each loop around it asks."""
        costs = self.values.environment.costs
        if stmt not in costs:
            costs[stmt] = _cost(stmt, self.vector_bytes)
        return costs[stmt]

    def kernel_call(self, call: KernelCall) -> Work:
        """The number of elements of all the callee's arrays: it may do more, but seldom does less."""
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
            if loop.step != 1:  # round up: a partial block counts
                reach = self.out.op("add", trips, integer(loop.step - (1 if loop.step > 0 else -1)))
                trips = self.out.op("sdiv", reach, integer(loop.step))
            self.counted[key] = Work(0.0, self.out.cast("sitofp", trips, f64))
        return self.counted[key]

    def distance(self, loop: For) -> Value:
        """The stop of a loop minus its start."""
        stop = self.bound(loop.stop)
        return stop if is_constant(loop.start, 0) else self.out.op("sub", stop, self.bound(loop.start))

    def bound(self, expr: Expr) -> Value:
        """The value of an expression, computed once."""
        if expr not in self.bounds:
            self.bounds[expr] = self.values.value(expr)
        return self.bounds[expr]

    def is_known(self, bound: Expr) -> bool:
        """Whether an expression can be computed before the loop, cheaply."""
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
    """The length of a short block `range(j, min(j + n, stop))`, which is whole but for the last; else None."""
    stop, start = loop.stop, loop.start
    if not (isinstance(stop, Min) and isinstance(stop.a, Add) and stop.a.a is start and isinstance(stop.a.b, IntImm)):
        return None
    return stop.a.b.value if stop.a.b.value <= _REST else None


def _is_decided_by(loop: For, around: set[Var]) -> bool:
    """Whether the estimate for a loop depends on variables of the loops around."""
    return mentions((loop.start, loop.stop, *_decisive(loop)), around)


def _decisive(loop: For) -> Iterator[Expr]:
    """The expressions that the work of an iteration is estimated from."""
    deciding: Iterator[For | Let | KernelCall] = statements_of(loop.body, For, Let, KernelCall)
    for stmt in deciding:
        if isinstance(stmt, For):
            yield from (stmt.start, stmt.stop)
        elif isinstance(stmt, KernelCall):
            yield from (extent for _, buffer in stmt.buffers() for extent in buffer.shape)
        elif stmt.var.dtype == i64:
            yield stmt.value


def _cost(stmt: Stmt, vector_bytes: int) -> float:
    """The number of vector operations of a statement; plain indices are free, and a scalar counts as a vector."""
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
    """The cost of an operation other than an access."""
    if isinstance(node, Call):
        return _CALL if node.op.takes_fast or node.op is Op.CALL_EXTERN else _QUOTIENT if node.op is Op.SQRT else 1.0
    return _QUOTIENT if isinstance(node, Div | FloorDiv | FloorMod) else 1.0


def _operand(out: FunctionText, work: Work) -> Value:
    known = decimal(min(work.known, 1e300))
    if work.operand is None:
        return known
    return out.op("fadd", work.operand, known) if work.known else work.operand
