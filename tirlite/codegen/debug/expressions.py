"""Emits the value of an expression, with the checks of it written in front; and its mark, if any.

Everything is evaluated in the order of the interpreter, so that the first fault is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.arithmetic.functions import math
from tirlite.codegen.arithmetic.operators import binary, compare, convert, to_index, unary
from tirlite.codegen.debug import masked, shadows
from tirlite.codegen.debug.poison import Checks, Mark, Read, chosen, filled, joined, settled, spread_mark
from tirlite.codegen.debug.shadows import ShadowEnvironment, Window
from tirlite.codegen.expressions import Expressions, are_neighbours, ramp
from tirlite.codegen.faults import require_inside
from tirlite.codegen.llvm.values import FALSE, TRUE, Value, flags_of, integer, zero
from tirlite.codegen.memory import Place
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
    bool_,
    i64,
)
from tirlite.ir.checked import bare, is_checked
from tirlite.ir.masked import mask_of
from tirlite.ir.traps import SHIFTS

_TRAPPING = (*SHIFTS, FloorDiv, FloorMod, TruncDiv, TruncMod)


class CheckedExpressions(Expressions):
    """Writes expressions with checks. `marks` has the poison of values; others have none."""

    environment: ShadowEnvironment

    def __init__(self, checks: Checks, environment: ShadowEnvironment) -> None:
        super().__init__(checks.out, environment)
        self.checks = checks
        self.marks: dict[Value, Mark] = {}

    def steps(self, expr: Expr) -> Steps[Value]:
        return RULES[type(expr)](self, expr)

    def good(self, expr: Expr, use: str) -> Value:
        """The value of an expression that must have no poison."""
        value = self.value(expr)
        self.checks.good(self.marks.get(value), use)
        return value

    def marked(self, value: Value, mark: Mark | None) -> Value:
        """A value with a mark: itself, or one of its own, as the same may stand for others too."""
        if mark is None or self.marks.get(value) is mark:
            return value
        value = value.of(value.dtype)
        self.marks[value] = mark
        return value

    def binary(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        if isinstance(expr, _TRAPPING) and expr.dtype.is_integer and not _is_tame(expr, b):
            if mark is not None:  # to LLVM, memory that was never written may hold another number at each look
                a, b = self.out.unary("freeze", a), self.out.unary("freeze", b)
            self.checks.trap(type(expr), a, b, mark)
        return self.marked(binary(self.out, type(expr), a, b), mark)

    def compare(self, expr: Compare) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        return self.marked(compare(self.out, type(expr), a, b), mark)

    def unary(self, expr: Unary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        return self.marked(unary(self.out, type(expr), a), self.marks.get(a))

    def cast(self, expr: Cast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        return self.marked(convert(self.out, value, expr.dtype), self.marks.get(value))

    def short_circuit(self, expr: Binary) -> Steps[Value]:
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
        decided = FALSE if is_and else TRUE
        return self._merged(expr.dtype, (decided, None, before), (b, mark, after))

    def _settled(self, value: Value) -> Mark | None:
        mark = self.marks.get(value)
        return None if mark is None else settled(self.out, mark)

    def _merged(self, dtype: DType, *incoming: tuple[Value, Mark | None, str]) -> Value:
        """The value, with its mark, of the block that control came from; marks are settled."""
        out = self.out
        value = out.phi(dtype, *((each, label) for each, _, label in incoming))
        reads = [mark.origin for _, mark, _ in incoming if mark is not None]
        if not reads:
            return value
        rank = max(len(read.indices) for read in reads if isinstance(read, Read))
        flags, numbers, kind = [], [], flags_of(dtype)
        for _, mark, label in incoming:
            if mark is None:
                flags.append((FALSE if dtype.lanes == 1 else zero(kind), label))
                numbers.append(([integer(0)] * (1 + rank), label))
            else:
                assert isinstance(mark.origin, Read)
                flags.append((mark.flag, label))
                numbers.append((filled(mark.origin, rank), label))
        flag = out.phi(kind, *flags)
        found = [out.phi(i64, *((each[k], label) for each, label in numbers)) for k in range(1 + rank)]
        self.marks[value] = Mark(flag, Read(flag, found[0], tuple(found[1:])))
        return value

    def select(self, expr: Select) -> Steps[Value]:
        condition = self._leaf(expr.condition) or (yield self.steps(expr.condition))
        yes = self._leaf(expr.if_true) or (yield self.steps(expr.if_true))
        no = self._leaf(expr.if_false) or (yield self.steps(expr.if_false))
        lanes = expr.dtype.lanes
        by = spread_mark(self.out, self.marks.get(condition), lanes)
        sides = chosen(self.out, condition, self.marks.get(yes), self.marks.get(no), lanes)
        return self.marked(self.out.select(condition, yes, no), joined(self.out, by, sides))

    def if_then_else(self, expr: Call) -> Steps[Value]:
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

    def call(self, expr: Call) -> Steps[Value]:
        if expr.op.is_math:
            return self.math(expr)
        return _CALLS.get(expr.op, Expressions.call)(self, expr)

    def math(self, expr: Call) -> Steps[Value]:
        operands = []
        for arg in expr.args:
            operands.append(self._leaf(arg) or (yield self.steps(arg)))
        mark = joined(self.out, *(self.marks.get(each) for each in operands))
        return self.marked(math(self.out, expr.op, operands), mark)

    def any_lane(self, expr: Call) -> Steps[Value]:
        flags = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        mark = self.marks.get(flags)
        value = self.out.any_lane(flags)
        return self.marked(value, None if mark is None else Mark(self.out.any_lane(mark.flag), mark.origin))

    def interleave(self, expr: Call) -> Steps[Value]:
        out, is_high = self.out, expr.op is Op.INTERLEAVE_HIGH
        a = self._leaf(expr.args[0]) or (yield self.steps(expr.args[0]))
        b = self._leaf(expr.args[1]) or (yield self.steps(expr.args[1]))
        value, mark = out.interleaved(a, b, is_high=is_high), joined(out, self.marks.get(a), self.marks.get(b))
        if mark is None:
            return value
        none = zero(flags_of(a.dtype))
        flags = [none if each is None else each.flag for each in (self.marks.get(a), self.marks.get(b))]
        return self.marked(value, settled(out, Mark(out.interleaved(*flags, is_high=is_high), mark.origin)))

    def dot(self, expr: Call) -> Steps[Value]:
        from tirlite.codegen.arithmetic.dots import any_of_group, dot

        out, lanes, marks = self.out, expr.dtype.lanes, list[Mark]()
        operands, group = list[Value](), expr.args[2].dtype.lanes // expr.dtype.lanes
        for arg in expr.args:
            value = self._leaf(arg) or (yield self.steps(arg))
            if (mark := self.marks.get(value)) is not None:
                flag = any_of_group(out, mark.flag, lanes, group if operands else 1)
                marks.append(Mark(flag, settled(out, mark).origin))
            operands.append(value)
        return self.marked(dot(out, *operands), joined(out, *marks))

    def extern(self, expr: Call) -> Steps[Value]:
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
        result: Value = yield super().extern(expr.replaced(args=(name, *operands)))
        return result

    def address_of(self, expr: Call) -> Steps[Value]:
        element = expr.args[0]
        assert isinstance(element, Load)
        self._expose(element.buffer)
        return super().address_of(expr)

    def access_pointer(self, expr: Call) -> Steps[Value]:
        mention = expr.args[0]
        assert isinstance(mention, BufferRef)
        self._expose(mention.buffer)
        return super().access_pointer(expr)

    def _expose(self, buffer: Buffer) -> None:
        """Others may write a buffer from here on: nothing is known of its bytes, and all count as good."""
        window = self.environment.windows[buffer]
        if window.shadow is not None:
            shadows.fill(self.out, window.shadow.pointer, window.bytes, window.owner)

    def load(self, expr: Load) -> Steps[Value]:
        if mask_of(expr.indices) is not None:
            return masked.load(self, expr)
        indices = []
        for index in expr.indices:
            indices.append(self._leaf(bare(index)) or (yield self.steps(bare(index))))
        return self.loaded(expr, indices)

    def loaded(self, expr: Load, given: list[Value]) -> Value:
        """The value of a load at indices that are computed already."""
        out, buffer = self.out, expr.buffer
        place, window = self.environment.places[buffer], self.environment.windows[buffer]
        indices = self.checked_indices(place, expr.indices, given)
        lanes = expr.indices[-1].dtype.lanes if expr.indices else 1
        if lanes > 1 and not are_neighbours(place, bare(expr.indices[-1])):
            return self._gathered(expr, place, window, indices)
        first = self.first_lanes(indices)
        offset = memory.offset_in(out, place, first)
        notes, shadow_notes = self.environment.notes, self.environment.shadow_notes
        value = memory.load(out, place, memory.address(out, place, offset), expr.dtype, notes.get(buffer, ""))
        if window.shadow is not None:
            shadow = shadows.element(out, window, offset)
            flag = shadows.read(out, window, shadow, expr.dtype, shadow_notes.get(buffer, ""))
            self.marks[value] = Mark(flag, Read(flag, self.checks.shadows.number(buffer), tuple(first)))
        return value

    def first_lanes(self, indices: list[Value]) -> list[Value]:
        if not indices or indices[-1].dtype.lanes == 1:
            return indices
        return [*indices[:-1], self.out.extract(indices[-1], 0)]

    def checked_indices(self, place: Place, exprs: tuple[Expr, ...], given: list[Value]) -> list[Value]:
        """Indices as i64, all of them good, and those that are marked inside of their axes."""
        checked = [axis for axis, expr in enumerate(exprs) if is_checked(expr)]
        if not any(each in self.marks for each in given):
            indices = [to_index(self.out, each) for each in given]
            if checked:
                of = [indices[axis] for axis in checked], [given[axis] for axis in checked]
                require_inside(self.out, place, checked, *of, self.environment.counted())
            return indices
        indices = []
        for axis, each in enumerate(given):
            self.checks.good(self.marks.get(each), f"index {axis} of `{place.buffer.name}`")
            indices.append(to_index(self.out, each))
            if axis in checked:
                require_inside(self.out, place, [axis], [indices[-1]], [each], self.environment.counted())
        return indices

    def lane_offsets(self, place: Place, indices: list[Value]) -> list[Value]:
        """The element offset of each lane of a vector access."""
        row = memory.offset_in(self.out, place, [*indices[:-1], integer(0)])
        found = [self.out.extract(indices[-1], lane) for lane in range(indices[-1].dtype.lanes)]
        inner = replace(place, strides=place.strides[-1:])
        return [self.out.op("add nsw", row, memory.offset_in(self.out, inner, [lane])) for lane in found]

    def _gathered(self, expr: Load, place: Place, window: Window, indices: list[Value]) -> Value:
        out, lanes = self.out, expr.dtype.lanes
        offsets = self.lane_offsets(place, indices)
        value = memory.gather(out, place, [memory.address(out, place, each) for each in offsets], expr.dtype)
        if window.shadow is None:
            return value
        flag = zero(bool_.with_lanes(lanes))
        for lane, offset in enumerate(offsets):
            own = shadows.read(out, window, shadows.element(out, window, offset), expr.dtype.scalar)
            flag = out.insert(flag, own, lane)
        where = tuple(self.first_lanes(indices))
        self.marks[value] = Mark(flag, Read(flag, self.checks.shadows.number(expr.buffer), where))
        return value

    def ramp(self, expr: Ramp) -> Steps[Value]:
        base = self._leaf(expr.base) or (yield self.steps(expr.base))
        stride = self._leaf(expr.stride) or (yield self.steps(expr.stride))
        mark = spread_mark(self.out, joined(self.out, self.marks.get(base), self.marks.get(stride)), expr.lanes)
        return self.marked(ramp(self.out, base, stride, expr.lanes), mark)

    def broadcast(self, expr: Broadcast) -> Steps[Value]:
        value = self._leaf(expr.value) or (yield self.steps(expr.value))
        mark = spread_mark(self.out, self.marks.get(value), expr.lanes)
        return self.marked(self.out.splat(value, expr.lanes), mark)

    def let(self, expr: LetExpr) -> Steps[Value]:
        self.bind(expr.var, self._leaf(expr.value) or (yield self.steps(expr.value)))
        return self._leaf(expr.body) or (yield self.steps(expr.body))

    def bind(self, var: Var, value: Value) -> None:
        """A variable for a value, whose mark outlives the statement as the value does."""
        self.environment.variables[var] = self.marked(value, self._settled(value))


def _is_tame(expr: Binary, b: Value) -> bool:
    """Whether the second operand of an integer operation is a constant for which it always has a value."""
    if b.number is None:
        return False
    return 0 <= b.number < expr.dtype.bits if isinstance(expr, SHIFTS) else b.number not in (0, -1)


Rule: TypeAlias = Callable[[CheckedExpressions, Any], Steps[Value]]

_CALLS: dict[Op, Callable[[Any, Any], Steps[Value]]] = {
    Op.IF_THEN_ELSE: CheckedExpressions.if_then_else,
    Op.ANY: CheckedExpressions.any_lane,
    Op.INTERLEAVE_LOW: CheckedExpressions.interleave,
    Op.INTERLEAVE_HIGH: CheckedExpressions.interleave,
    Op.DOT: CheckedExpressions.dot,
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
