"""The builder's methods for operators that bring tensors to other extents, or between floats and small integers."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.extents import Extent, shape_of
from tirlite.graph.ops import Quantize, Resize
from tirlite.ir import DType, u8


class ScalingBuilder(CallBuilder):
    """Elements at other places, or in other steps."""

    def resize(
        self,
        x: Operand,
        shape: Sequence[Extent],
        *,
        scales: Sequence[float | None] | None = None,
        mode: str = "nearest",
        coordinates: str = "half_pixel",
        rounding: str = "round_prefer_floor",
        cubic: float = -0.75,
    ) -> Call:
        """x at other extents, by the "nearest" element, "linear" or "cubic" between neighbours; places as in ONNX."""
        given = (None,) * len(shape) if scales is None else tuple(scales)
        attrs = Resize(shape_of(shape, self._here()), given, mode, coordinates, rounding, cubic)
        return self.call("resize", x, attrs=attrs)

    def quantize_linear(
        self, x: Operand, scale: Operand, zero: Operand | None = None, *, axis: int = 1, dtype: DType = u8
    ) -> Call:
        """x / scale rounded to nearest even, plus a zero point of type `dtype`, saturated."""
        return self.call("quantize_linear", x, scale, *(() if zero is None else (zero,)), attrs=Quantize(dtype, axis))

    def dequantize_linear(self, x: Operand, scale: Operand, zero: Operand | None = None, *, axis: int = 1) -> Call:
        """(x - zero) * scale, of the type of the scale."""
        factor = self._operand(scale, None, self._here())
        attrs = Quantize(factor.dtype, axis)
        return self.call("dequantize_linear", x, factor, *(() if zero is None else (zero,)), attrs=attrs)

    def matmul_integer(self, a: Operand, b: Operand, zero_a: Operand, zero_b: Operand) -> Call:
        """`(a - zero_a) @ (b - zero_b)` of integers of 8 bits, in i32; a zero point of a row, of a column, or one."""
        return self.call("matmul_integer", a, b, zero_a, zero_b)
