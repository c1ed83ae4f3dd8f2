"""Emits sizes with flags of what wraps around on the way to them: then there is no memory of that size."""

from __future__ import annotations

from tirlite.codegen.expressions import Expressions, Side
from tirlite.codegen.faults import any_of
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, Value
from tirlite.codegen.memory import Environment
from tirlite.ir import Add, Binary, DType, Expr, Mul, Steps, Sub, bool_, i64

_CHECKED: dict[type[Expr], str] = {Add: "sadd", Sub: "ssub", Mul: "smul"}


class ExactExpressions(Expressions):
    """Collects the flags of all 64-bit sums, differences and products that wrap around in `overflows`."""

    def __init__(self, out: FunctionText, environment: Environment) -> None:
        super().__init__(out, environment)
        self.overflows: list[Value] = []

    def _may_be_speculated(self, expr: Expr) -> bool:
        """Nothing is speculated: flags tell of what is asked for alone."""
        return False

    def binary(self, expr: Binary) -> Steps[Value]:
        is_checked = expr.dtype == i64 and type(expr) in _CHECKED
        return self._flagged(expr) if is_checked else super().binary(expr)

    def _flagged(self, expr: Binary) -> Steps[Value]:
        a = self._leaf(expr.a) or (yield self.steps(expr.a))
        b = self._leaf(expr.b) or (yield self.steps(expr.b))
        value, wraps = self.out.overflowing(_CHECKED[type(expr)], a, b)
        self.overflows.append(wraps)
        return value

    def _side(self, expr: Expr, done: str) -> Steps[Side]:
        around, self.overflows = self.overflows, []
        side: Side = yield super()._side(expr, done)
        self.overflows = around
        return side

    def told(self, _value: Value) -> Value | None:
        """One flag in the place of those of a block."""
        return any_of(self.out, self.overflows) if self.overflows else None

    def merged(self, dtype: DType, *sides: Side) -> Value:
        if any(side.told is not None for side in sides):
            flags = ((side.told if isinstance(side.told, Value) else FALSE, side.block) for side in sides)
            self.overflows.append(self.out.phi(bool_, *flags))
        return super().merged(dtype, *sides)
