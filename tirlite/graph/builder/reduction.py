"""The builder's methods for operators that make one element of many along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.ops import Arg, CumSum, Reduce

Axes: TypeAlias = "int | Sequence[int] | None"


class ReductionBuilder(CallBuilder):
    """Sums and their kin along the given axes, or all; with `keepdims` these stay with extent 1.

    Without another word they take any type of numbers, and integers wrap.
    """

    def reduce_sum(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The sum."""
        return self._reduce("reduce_sum", x, axes, keepdims=keepdims)

    def reduce_mean(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The mean, of floats."""
        return self._reduce("reduce_mean", x, axes, keepdims=keepdims)

    def reduce_max(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The greatest element."""
        return self._reduce("reduce_max", x, axes, keepdims=keepdims)

    def reduce_min(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The least element."""
        return self._reduce("reduce_min", x, axes, keepdims=keepdims)

    def reduce_prod(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The product."""
        return self._reduce("reduce_prod", x, axes, keepdims=keepdims)

    def reduce_l1(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The sum of the absolute values."""
        return self._reduce("reduce_l1", x, axes, keepdims=keepdims)

    def reduce_l2(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The root of the sum of the squares, of floats."""
        return self._reduce("reduce_l2", x, axes, keepdims=keepdims)

    def reduce_sum_square(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The sum of the squares."""
        return self._reduce("reduce_sum_square", x, axes, keepdims=keepdims)

    def reduce_log_sum(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The logarithm of the sum, of floats."""
        return self._reduce("reduce_log_sum", x, axes, keepdims=keepdims)

    def reduce_log_sum_exp(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """The logarithm of the sum of the exponentials, of floats."""
        return self._reduce("reduce_log_sum_exp", x, axes, keepdims=keepdims)

    def reduce_all(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """Whether all hold, of bools."""
        return self._reduce("reduce_all", x, axes, keepdims=keepdims)

    def reduce_any(self, x: Operand, axes: Axes = None, *, keepdims: bool = False) -> Call:
        """Whether one holds, of bools."""
        return self._reduce("reduce_any", x, axes, keepdims=keepdims)

    def argmax(self, x: Operand, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Call:
        """The index of the greatest element along an axis, as i64: of the first of equal ones, or of the last."""
        return self.call("argmax", x, attrs=Arg(axis, keepdims, last))

    def argmin(self, x: Operand, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Call:
        """The index of the least element along an axis, as i64: of the first of equal ones, or of the last."""
        return self.call("argmin", x, attrs=Arg(axis, keepdims, last))

    def cumsum(self, x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Call:
        """The sums of the elements up to each one along an axis, without itself or from the end where asked for."""
        return self.call("cumsum", x, attrs=CumSum(axis, exclusive, reverse))

    def cumprod(self, x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Call:
        """As `cumsum`, the products."""
        return self.call("cumprod", x, attrs=CumSum(axis, exclusive, reverse))

    def _reduce(self, name: str, x: Operand, axes: Axes, *, keepdims: bool) -> Call:
        (value,) = self._operands([x], self._here())
        if axes is None:
            axes = range(value.tensor.rank)
        found = (axes,) if isinstance(axes, int) else tuple(axes)
        return self.call(name, value, attrs=Reduce(found, keepdims))
