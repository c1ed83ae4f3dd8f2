"""The builder's methods for products of matrices."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.ops import Gemm


class LinearBuilder(CallBuilder):
    """Products of matrices."""

    def matmul(self, a: Operand, b: Operand) -> Call:
        """The product of the last two axes, for each index of those before them, which broadcast; as numpy.matmul."""
        return self.call("matmul", a, b)

    def gemm(
        self,
        a: Operand,
        b: Operand,
        c: Operand | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        trans_a: bool = False,
        trans_b: bool = False,
    ) -> Call:
        """`alpha * a @ b + beta * c` of matrices, a and b transposed where asked for; c broadcasts to the result."""
        attrs = Gemm(alpha, beta, trans_a, trans_b)
        return self.call("gemm", a, b, *(() if c is None else (c,)), attrs=attrs)

    def dense(self, x: Operand, weight: Operand, bias: Operand | None = None) -> Call:
        """`x @ weight.T + bias`: `[rows, inputs]` and `[outputs, inputs]` give `[rows, outputs]`."""
        return self.gemm(x, weight, bias, trans_b=True)

    def det(self, x: Operand) -> Call:
        """The determinants of the square matrices in the last two axes."""
        return self.call("det", x)
