"""An expression in, the name of its value out, with the checks of it written in front; and its mark, if any.

Everything is evaluated in the order of the interpreter, so that the first fault is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.casts import convert, to_index
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.checks import Checks, splat
from tirlite.codegen.debug.marks import Flag, Mark, Read, chosen, joined, settled, spread_mark
from tirlite.codegen.debug.shadows import ShadowEnvironment, Window
from tirlite.codegen.expressions import Expressions, is_unit_ramp, known_integer
from tirlite.codegen.functions import math
from tirlite.codegen.memory import Place
from tirlite.codegen.operators import binary, compare, unary
from tirlite.codegen.types import register_type
from tirlite.ir import (
    And,
    Binary,
    Broadcast,
    Buffer,
    BufferRef,
    Call,
    Cast,
    Compare,
    DType,
    Expr,
    FloorDiv,
    FloorMod,
    LetExpr,
    Load,
    Op,
    Or,
    Ramp,
    Select,
    Steps,
    StringImm,
    TruncDiv,
    TruncMod,
    Unary,
    Var,
    i64,
)
from tirlite.ir.traps import SHIFTS

_TRAPPING = (*SHIFTS, FloorDiv, FloorMod, TruncDiv, TruncMod)


class CheckedExpressions(Expressions):
    """Writes expressions with checks. `marks` has the poison of values, by their operands; others have none."""

    environment: ShadowEnvironment

    def __init__(self, checks: Checks, environment: ShadowEnvironment) -> None:
        super().__init__(checks.out, environment)
        self.checks = checks
        self.marks: dict[str, Mark] = {}

    def steps(self, expr: Expr) -> Steps[str]:
        return RULES[type(expr)](self, expr)

    def good(self, expr: Expr, use: str) -> str:
        """The value of an expression that must have no poison."""
        value = self.value(expr)
        self.checks.good(self.marks.get(value), use)
        return value

    def marked(self, value: str, dtype: DType, mark: Mark | None) -> str:
        """A value with a mark: itself, or a copy where its name stands for others too."""
        if mark is None or self.marks.get(value) is mark:
            return value
        if not value.startswith("%") or value in self.marks or value in self.environment.names:
            value = self.out.value(f"freeze {register_type(dtype)} {value}")
        self.marks[value] = mark
        return value

    def binary(self, expr: Binary) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        if isinstance(expr, _TRAPPING) and expr.dtype.is_integer and not is_tame(expr):
            if mark is not None:  # to LLVM, memory that was never written may hold another number at each look
                kind = register_type(expr.dtype)
                a, b = self.out.value(f"freeze {kind} {a}"), self.out.value(f"freeze {kind} {b}")
            self.checks.trap(type(expr), expr.dtype, a, b, mark)
        value = binary(self.out, type(expr), expr.dtype, a, b, known_integer(expr.b))
        return self.marked(value, expr.dtype, mark)

    def compare(self, expr: Compare) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        return self.marked(compare(self.out, type(expr), expr.a.dtype, a, b), expr.dtype, mark)

    def unary(self, expr: Unary) -> Steps[str]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        return self.marked(unary(self.out, type(expr), expr.dtype, a), expr.dtype, self.marks.get(a))

    def cast(self, expr: Cast) -> Steps[str]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        mark = self.marks.get(value)
        return self.marked(convert(self.out, value, expr.value.dtype, expr.dtype), expr.dtype, mark)

    def short_circuit(self, expr: Binary) -> Steps[str]:
        out, is_and = self.out, isinstance(expr, And)
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        self.checks.good(self.marks.get(a), f"the left side of `{'and' if is_and else 'or'}`")
        before, more, done = out.block, out.label("more"), out.label("done")
        out.branch_if(a, *((more, done) if is_and else (done, more)))
        out.start(more)
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = self._settled(b)
        after = out.block
        out.branch(done)
        out.start(done)
        decided = "false" if is_and else "true"
        return self._merged(expr.dtype, (decided, None, before), (b, mark, after))

    def _settled(self, value: str) -> Mark | None:
        mark = self.marks.get(value)
        return None if mark is None else settled(self.out, mark)

    def _merged(self, dtype: DType, *incoming: tuple[str, Mark | None, str]) -> str:
        """The value, with its mark, of the block that control came from; marks are settled."""
        out = self.out
        value = out.phi(dtype, *((each, label) for each, _, label in incoming))
        reads = [mark.origin for _, mark, _ in incoming if mark is not None]
        if not reads:
            return value
        rank = max(len(read.indices) for read in reads if isinstance(read, Read))
        flags, numbers = [], []
        for _, mark, label in incoming:
            if mark is None:
                none = "false" if dtype.lanes == 1 else "zeroinitializer"
                flags.append((none, label))
                numbers.append((["0"] * (1 + rank), label))
            else:
                assert isinstance(mark.origin, Read)
                own = [mark.origin.buffer, *mark.origin.indices]
                flags.append((mark.flag.operand, label))
                numbers.append((own + ["0"] * (1 + rank - len(own)), label))
        kind = Flag("", dtype.lanes).kind
        flag = Flag(out.value(f"phi {kind} " + ", ".join(f"[ {own}, %{label} ]" for own, label in flags)), dtype.lanes)
        found = [out.phi(i64, *((each[k], label) for each, label in numbers)) for k in range(1 + rank)]
        self.marks[value] = Mark(flag, Read(flag, found[0], tuple(found[1:])))
        return value

    def select(self, expr: Select) -> Steps[str]:
        condition = self._leaf(expr.condition) or (yield self.steps(expr.condition))
        yes = self._leaf(expr.if_true) or (yield self.steps(expr.if_true))
        no = self._leaf(expr.if_false) or (yield self.steps(expr.if_false))
        flags, lanes = expr.condition.dtype, expr.dtype.lanes
        by = spread_mark(self.out, self.marks.get(condition), lanes)
        sides = chosen(self.out, Flag(condition, flags.lanes), self.marks.get(yes), self.marks.get(no), lanes)
        value = self._choose(flags, condition, expr.dtype, yes, no)
        return self.marked(value, expr.dtype, joined(self.out, by, sides))

    def if_then_else(self, expr: Call) -> Steps[str]:
        out = self.out
        condition, *sides = expr.args
        test = self._leaf(condition) or (yield self.steps(condition))
        self.checks.good(self.marks.get(test), "the condition of a conditional expression")
        labels, done = (out.label("then"), out.label("else")), out.label("done")
        incoming = []
        out.branch_if(test, *labels)
        for label, side in zip(labels, sides, strict=True):
            out.start(label)
            value = self._leaf(side) or (yield self.steps(side))
            incoming.append((value, self._settled(value), out.block))
            out.branch(done)
        out.start(done)
        return self._merged(expr.dtype, *incoming)

    def call(self, expr: Call) -> Steps[str]:
        if expr.op.is_math:
            return self.math(expr)
        return _CALLS.get(expr.op, Expressions.call)(self, expr)

    def math(self, expr: Call) -> Steps[str]:
        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        mark = joined(self.out, *(self.marks.get(each) for each in operands))
        return self.marked(math(self.out, expr.op, expr.args[0].dtype, operands), expr.dtype, mark)

    def extern(self, expr: Call) -> Steps[str]:
        """A call of an extern function, which may read what it is given and write where it is pointed to."""
        name, *args = expr.args
        symbol = f"`{name.value}`" if isinstance(name, StringImm) else "an extern function"
        operands: list[Expr] = []
        for number, arg in enumerate(args):
            if isinstance(arg, BufferRef):
                self._expose(arg.buffer)
            value = self._leaf(arg) or (yield self.steps(arg))
            self.checks.good(self.marks.get(value), f"argument {number} of {symbol}")
            operand = Var(f"argument{number}", arg.dtype)
            self.environment.variables[operand] = value
            operands.append(operand)
        result: str = yield super().extern(expr.replaced(args=(name, *operands)))
        return result

    def address_of(self, expr: Call) -> Steps[str]:
        element = expr.args[0]
        assert isinstance(element, Load)
        self._expose(element.buffer)
        return super().address_of(expr)

    def access_pointer(self, expr: Call) -> Steps[str]:
        mention = expr.args[0]
        assert isinstance(mention, BufferRef)
        self._expose(mention.buffer)
        return super().access_pointer(expr)

    def _expose(self, buffer: Buffer) -> None:
        """Others may write a buffer from here on: nothing is known of its bytes, and all count as good."""
        window = self.environment.windows[buffer]
        if window.shadow is not None:
            shadows.fill(self.out, window.shadow.pointer, window.bytes, window.owner)

    def load(self, expr: Load) -> Steps[str]:
        indices = []
        for index in expr.indices:
            indices.append(self._leaf(index) or (yield self.steps(index)))
        return self.loaded(expr, indices)

    def loaded(self, expr: Load, given: list[str]) -> str:
        """The value of a load at indices that are computed already."""
        out, buffer = self.out, expr.buffer
        place, window = self.environment.places[buffer], self.environment.windows[buffer]
        indices = self.checked_indices(buffer, expr.indices, given)
        lanes = expr.indices[-1].dtype.lanes if expr.indices else 1
        if lanes > 1 and not is_unit_ramp(expr.indices[-1]):
            return self._gathered(expr, place, window, indices)
        first = self.first_lanes(indices, expr.indices)
        offset = memory.offset_in(out, place, first)
        notes, shadow_notes = self.environment.notes, self.environment.shadow_notes
        value = memory.load(out, place, memory.address(out, place, offset), expr.dtype, notes.get(buffer, ""))
        if window.shadow is not None:
            shadow = shadows.element(out, window, offset)
            flag = shadows.read(out, window, shadow, expr.dtype, shadow_notes.get(buffer, ""))
            self.marks[value] = Mark(flag, Read(flag, self.checks.number(buffer), tuple(first)))
        return value

    def first_lanes(self, indices: list[str], exprs: tuple[Expr, ...]) -> list[str]:
        if not exprs or exprs[-1].dtype.lanes == 1:
            return indices
        kind = register_type(i64.with_lanes(exprs[-1].dtype.lanes))
        return [*indices[:-1], self.out.value(f"extractelement {kind} {indices[-1]}, i64 0")]

    def checked_indices(self, buffer: Buffer, exprs: tuple[Expr, ...], given: list[str]) -> list[str]:
        """Indices as i64, all of them good and inside of their axes."""
        window = self.environment.windows[buffer]
        types = [expr.dtype for expr in exprs]
        if not any(each in self.marks for each in given):
            indices = [to_index(self.out, each, dtype) for each, dtype in zip(given, types, strict=True)]
            self.checks.inside(buffer, window, indices, types, given)
            return indices
        indices = []
        for axis, (each, dtype, extent) in enumerate(zip(given, types, window.extents, strict=True)):
            self.checks.good(self.marks.get(each), f"index {axis} of `{buffer.name}`")
            indices.append(to_index(self.out, each, dtype))
            self.checks.axis_inside(buffer, axis, extent, indices[-1], dtype, each)
        return indices

    def lane_offsets(self, place: Place, indices: list[str], lanes: int) -> list[str]:
        """The element offset of each lane of a vector access."""
        row = memory.offset_in(self.out, place, [*indices[:-1], "0"])
        kind = register_type(i64.with_lanes(lanes))
        found = [self.out.value(f"extractelement {kind} {indices[-1]}, i64 {lane}") for lane in range(lanes)]
        return [self.out.value(f"add nsw i64 {row}, {lane}") for lane in found]

    def _gathered(self, expr: Load, place: Place, window: Window, indices: list[str]) -> str:
        out, lanes = self.out, expr.dtype.lanes
        offsets = self.lane_offsets(place, indices, expr.indices[-1].dtype.lanes)
        value = memory.gather(out, place, [memory.address(out, place, each) for each in offsets], expr.dtype)
        if window.shadow is None:
            return value
        flag, kind = "zeroinitializer", Flag("", lanes).kind
        for lane, offset in enumerate(offsets):
            own = shadows.read(out, window, shadows.element(out, window, offset), expr.dtype.scalar)
            flag = out.value(f"insertelement {kind} {flag}, i1 {own.operand}, i64 {lane}")
        where = tuple(self.first_lanes(indices, expr.indices))
        self.marks[value] = Mark(Flag(flag, lanes), Read(Flag(flag, lanes), self.checks.number(expr.buffer), where))
        return value

    def ramp(self, expr: Ramp) -> Steps[str]:
        base = self._leaf(expr.base) or (yield self.steps(expr.base))
        stride = self._leaf(expr.stride) or (yield self.steps(expr.stride))
        mark = spread_mark(self.out, joined(self.out, self.marks.get(base), self.marks.get(stride)), expr.lanes)
        kind, scalar = register_type(expr.dtype), register_type(expr.base.dtype)
        lanes = ", ".join(f"{scalar} {lane}" for lane in range(expr.lanes))
        steps = self.out.value(f"mul {kind} <{lanes}>, {splat(self.out, stride, expr.dtype)}")
        value = self.out.value(f"add {kind} {steps}, {splat(self.out, base, expr.dtype)}")
        return self.marked(value, expr.dtype, mark)

    def broadcast(self, expr: Broadcast) -> Steps[str]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        mark = spread_mark(self.out, self.marks.get(value), expr.lanes)
        return self.marked(splat(self.out, value, expr.dtype), expr.dtype, mark)

    def let(self, expr: LetExpr) -> Steps[str]:
        self.bind(expr.var, self._leaf(expr.value) or (yield self.steps(expr.value)))
        return self._leaf(expr.body) or (yield self.steps(expr.body))

    def bind(self, var: Var, value: str) -> None:
        """A variable for a value, whose mark outlives the statement as the value does."""
        mark = self._settled(value)
        if mark is not None:
            self.marks[value] = mark
            assert isinstance(mark.origin, Read)
            self.environment.keep(mark.flag.operand, mark.flag.kind)
            self.environment.keep(mark.origin.flag.operand, mark.origin.flag.kind)
            for operand in (mark.origin.buffer, *mark.origin.indices):
                self.environment.keep(operand, "i64")
        self.environment.bind(var, value)


def is_tame(expr: Binary) -> bool:
    """Whether the second operand of an integer operation is a constant for which it always has a value."""
    value = known_integer(expr.b)
    if value is None:
        return False
    return 0 <= value < expr.dtype.bits if isinstance(expr, SHIFTS) else value not in (0, -1)


Rule: TypeAlias = Callable[[CheckedExpressions, Any], Steps[str]]

_CALLS: dict[Op, Callable[[Any, Any], Steps[str]]] = {
    Op.IF_THEN_ELSE: CheckedExpressions.if_then_else,
    Op.CALL_EXTERN: CheckedExpressions.extern,
    Op.ADDRESS_OF: CheckedExpressions.address_of,
    Op.ACCESS_PTR: CheckedExpressions.access_pointer,
}

RULES: dict[type[Expr], Rule] = {
    **dict.fromkeys(Binary.__subclasses__(), CheckedExpressions.binary),
    **dict.fromkeys(Compare.__subclasses__(), CheckedExpressions.compare),
    **dict.fromkeys(Unary.__subclasses__(), CheckedExpressions.unary),
    And: CheckedExpressions.short_circuit,
    Or: CheckedExpressions.short_circuit,
    Cast: CheckedExpressions.cast,
    Select: CheckedExpressions.select,
    Load: CheckedExpressions.load,
    Ramp: CheckedExpressions.ramp,
    Broadcast: CheckedExpressions.broadcast,
    Call: CheckedExpressions.call,
    LetExpr: CheckedExpressions.let,
}
