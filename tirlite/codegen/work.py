"""Estimates how much one iteration of a loop has to do, from its body, as a number that the kernel computes."""

from __future__ import annotations

from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, decimal
from tirlite.ir import (
    AttrStmt,
    Call,
    Expr,
    For,
    IfThenElse,
    IntImm,
    KernelCall,
    Let,
    Load,
    SeqStmt,
    Steps,
    Stmt,
    Var,
    While,
    f64,
    run,
    statements,
    walk,
)
from tirlite.record import record

# What stands in for the iterations of a loop whose bounds are known inside alone.
_SOME = 16.0
# What a call costs, such as an elementary function, in operations.
_CALL = 16.0


@record
class _Work:
    """A number, plus an operand of type double."""

    known: float
    operand: Value | None = None


def work_of(values: Expressions, body: SeqStmt) -> Value:
    """The operations of one run of `body`, a double, of which each takes a part of a nanosecond."""
    inside = {stmt.var for stmt in statements(body) if isinstance(stmt, For | Let)}
    work = run(_Estimate(values, inside).block(body))
    return _operand(values.out, work)


class _Estimate:
    def __init__(self, values: Expressions, inside: set[Var]) -> None:
        self.values = values
        self.out = values.out
        self.inside = inside  # what has no value yet

    def block(self, body: SeqStmt) -> Steps[_Work]:
        total = _Work(0.0)
        for stmt in body.stmts:
            total = self.sum(total, (yield self.statement(stmt)))
        return total

    def statement(self, stmt: Stmt) -> Steps[_Work]:
        if isinstance(stmt, For):
            once = yield self.block(stmt.body)
            return self.product(self.sum(once, _Work(1.0)), self.trips(stmt))
        if isinstance(stmt, While):
            once = yield self.block(stmt.body)
            return self.product(once, _Work(_SOME))
        if isinstance(stmt, IfThenElse):
            one, other = (yield self.block(stmt.then_body)), (yield self.block(stmt.else_body))
            return self.sum(one, other)
        if isinstance(stmt, AttrStmt):
            inner: _Work = yield self.block(stmt.body)
            return inner
        if isinstance(stmt, KernelCall):
            return self.kernel_call(stmt)
        nodes = (node for node in walk(stmt) if isinstance(node, Expr))
        return _Work(1.0 + sum(_CALL if isinstance(node, Call) else 1.0 for node in nodes))

    def kernel_call(self, call: KernelCall) -> _Work:
        """As much as the callee's arrays have elements: it may do more with each, and seldom does less."""
        total = _Work(_CALL)
        for _, buffer in call.buffers():
            elements = _Work(1.0)
            for extent in buffer.shape:
                elements = self.product(elements, self.number(extent))
            total = self.sum(total, elements)
        return total

    def number(self, extent: Expr) -> _Work:
        if isinstance(extent, IntImm):
            return _Work(float(extent.value))
        if not self.is_known(extent):
            return _Work(_SOME)
        return _Work(0.0, self.out.cast("sitofp", self.values.value(extent), f64))

    def trips(self, loop: For) -> _Work:
        if isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm):
            return _Work(float(len(range(loop.start.value, loop.stop.value, loop.step))))
        if not (self.is_known(loop.start) and self.is_known(loop.stop)):
            return _Work(_SOME)
        distance = self.out.op("sub", self.values.value(loop.stop), self.values.value(loop.start))
        trips = self.out.cast("sitofp", distance, f64)
        return _Work(0.0, self.out.op("fdiv", trips, decimal(float(loop.step))))

    def is_known(self, bound: Expr) -> bool:
        """Whether a bound has its value before the loop, and costs little."""
        known = self.values.environment.variables
        return not any(
            isinstance(node, Load | Call) or (isinstance(node, Var) and (node in self.inside or node not in known))
            for node in walk(bound)
        )

    def sum(self, a: _Work, b: _Work) -> _Work:
        if a.operand and b.operand:
            return _Work(a.known + b.known, self.out.op("fadd", a.operand, b.operand))
        return _Work(a.known + b.known, a.operand or b.operand)

    def product(self, a: _Work, b: _Work) -> _Work:
        if a.operand or b.operand:
            return _Work(0.0, self.out.op("fmul", _operand(self.out, a), _operand(self.out, b)))
        return _Work(a.known * b.known)


def _operand(out: FunctionText, work: _Work) -> Value:
    known = decimal(min(work.known, 1e300))
    if work.operand is None:
        return known
    return out.op("fadd", work.operand, known) if work.known else work.operand
