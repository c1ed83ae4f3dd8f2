"""Emits the value of an expression, with the checks of it written in front; and its mark, if any.

Everything is evaluated in the order of the interpreter, so that the first fault is the same.
"""

from __future__ import annotations

from tirlite.codegen.arithmetic.operators import binary
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.accesses import CheckedAccesses
from tirlite.codegen.debug.poison import Mark, Read, chosen, filled, joined, settled, spread_mark
from tirlite.codegen.expressions import Side
from tirlite.codegen.llvm.values import FALSE, Value, flags_of, integer, zero
from tirlite.ir import Binary, Buffer, Call, DType, Expr, FloorDiv, FloorMod, Op, Steps, TruncDiv, TruncMod, Var, i64
from tirlite.ir.traps import SHIFTS

_TRAPPING = (*SHIFTS, FloorDiv, FloorMod, TruncDiv, TruncMod)


class CheckedExpressions(CheckedAccesses):
    """Writes expressions with checks."""

    def computed(self, value: Value, *operands: Value) -> Value:
        mark = joined(self.out, *map(self.marks.get, operands))
        return self.marked(value, spread_mark(self.out, mark, value.dtype.lanes))

    def bind(self, var: Var, value: Value) -> None:
        """A variable for a value, whose mark outlives the statement as the value does."""
        super().bind(var, self.marked(value, self.told(value)))

    def exposed(self, buffer: Buffer) -> None:
        """Nothing is known of its bytes from here on, and all count as good."""
        window = self.environment.windows[buffer]
        if window.shadow is not None:
            shadows.fill(self.out, window.shadow.pointer, window.bytes, window.owner)

    def _may_be_speculated(self, expr: Expr) -> bool:
        return False

    def binary(self, expr: Binary) -> Steps[Value]:
        may_trap = isinstance(expr, _TRAPPING) and expr.dtype.is_integer
        return self._trapping(expr) if may_trap else super().binary(expr)

    def _trapping(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        mark = joined(self.out, self.marks.get(a), self.marks.get(b))
        if not _is_tame(expr, b):
            if mark is not None:  # to LLVM, memory that was never written may hold another number at each look
                a, b = self.out.unary("freeze", a), self.out.unary("freeze", b)
            self.checks.trap(type(expr), a, b, mark)
        return self.marked(binary(self.out, type(expr), a, b), mark)

    def told(self, value: Value) -> Mark | None:
        mark = self.marks.get(value)
        return None if mark is None else settled(self.out, mark)

    def merged(self, dtype: DType, *sides: Side) -> Value:
        out = self.out
        value = super().merged(dtype, *sides)
        marks = [side.told for side in sides if isinstance(side.told, Mark)]
        rank = max((len(mark.origin.indices) for mark in marks if isinstance(mark.origin, Read)), default=None)
        if rank is None:
            return value
        flags, numbers, kind = [], [], flags_of(dtype)
        for side in sides:
            if isinstance(side.told, Mark):
                assert isinstance(side.told.origin, Read)
                flags.append((side.told.flag, side.block))
                numbers.append((filled(side.told.origin, rank), side.block))
            else:
                flags.append((FALSE if dtype.lanes == 1 else zero(kind), side.block))
                numbers.append(([integer(0)] * (1 + rank), side.block))
        flag = out.phi(kind, *flags)
        found = [out.phi(i64, *((each[k], label) for each, label in numbers)) for k in range(1 + rank)]
        self.marks[value] = Mark(flag, Read(flag, found[0], tuple(found[1:])))
        return value

    def picked(self, condition: Value, yes: Value, no: Value) -> Value:
        lanes = yes.dtype.lanes
        by = spread_mark(self.out, self.marks.get(condition), lanes)
        sides = chosen(self.out, condition, self.marks.get(yes), self.marks.get(no), lanes)
        return self.marked(super().picked(condition, yes, no), joined(self.out, by, sides))

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


def _is_tame(expr: Binary, b: Value) -> bool:
    """Whether the second operand of an integer operation is a constant for which it always has a value."""
    if b.number is None:
        return False
    return 0 <= b.number < expr.dtype.bits if isinstance(expr, SHIFTS) else b.number not in (0, -1)
