"""Matrix products and determinants."""

from __future__ import annotations

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import Call, Constant, Expr
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, NodeAttributes, Site, Spelling, plain
from tirlite.graph.operators.arrangement import Transpose
from tirlite.graph.operators.operands import FLOATS, NUMBERS, broadcast, broadcast_into, contracted
from tirlite.graph.types import TensorType
from tirlite.record import record, replace

# Rows of a matrix that are transposed together, so that cache lines are filled at once.
_TOGETHER = 64


@record
class Sides(Attrs):
    """The operands of a product that are transposed in their last two axes."""

    trans_a: bool = False
    trans_b: bool = False


@record
class Gemm(Sides):
    """`alpha * A' @ B' + beta * C`, where A' is A or its transpose, and B' is B or its transpose."""

    alpha: float = 1.0
    beta: float = 1.0


def _matmul_type(site: Site, attrs: Sides) -> TensorType:
    """As numpy.matmul: the last two axes are matrices, those before them broadcast; vectors are a row or a column."""
    dtype = NUMBERS.shared(site)
    a, b = (each.shape for each in site.tensors())
    if not a or not b:
        raise site.mismatch("an operand without axes is not a matrix")
    left = _seen(a, turned=attrs.trans_a) if len(a) > 1 else (1, *a)
    right = _seen(b, turned=attrs.trans_b) if len(b) > 1 else (*b, 1)
    contracted(site, left[-1], right[-2])
    batch = broadcast(site, [left[:-2], right[:-2]])
    return TensorType(batch + left[-2:-1] * (len(a) > 1) + right[-1:] * (len(b) > 1), dtype)


def _seen(shape: Shape, *, turned: bool) -> Shape:
    return (*shape[:-2], *reversed(shape[-2:])) if turned else shape


def _matmul(attrs: Sides, a: Array, b: Array) -> Array:
    left = a.swapaxes(-1, -2) if attrs.trans_a and a.ndim > 1 else a
    right = b.swapaxes(-1, -2) if attrs.trans_b and b.ndim > 1 else b
    return np.asarray(np.matmul(left, right))


def _untransposed(value: Expr) -> tuple[Expr, bool]:
    """An operand seen through a transpose of its last two axes, which the product does itself, and whether it was one.

    The transpose of a constant is computed once in any case.
    """
    if isinstance(value, Call) and value.op.name == "transpose" and not isinstance(value.args[0], Constant):
        attrs, rank = value.attrs, len(value.shape)
        assert isinstance(attrs, Transpose)
        if rank > 1 and attrs.axes == (*range(rank - 2), rank - 1, rank - 2):
            return value.args[0], True
    return value, False


def _gemm_type(site: Site, attrs: Gemm) -> TensorType:
    dtype = NUMBERS.shared(site)
    a, b, *c = site.tensors()
    if a.rank != 2 or b.rank != 2:
        raise site.mismatch("operands 0 and 1 must be matrices")
    rows, inner = reversed(a.shape) if attrs.trans_a else a.shape
    other, columns = reversed(b.shape) if attrs.trans_b else b.shape
    contracted(site, inner, other)
    for each in c:
        broadcast_into(site, each, (rows, columns))
    if dtype.is_integer and any(not float(factor).is_integer() for factor in (attrs.alpha, attrs.beta)):
        raise site.bad_attribute(f"alpha and beta must be whole numbers for {dtype}")
    return TensorType((rows, columns), dtype)


def _det_type(site: Site, attrs: Attrs) -> TensorType:
    x = FLOATS.first(site)
    if x.rank < 2 or not site.is_equal(x.shape[-1], x.shape[-2]):
        raise site.mismatch("operand 0 must be square matrices")
    return TensorType(x.shape[:-2], x.dtype)


def _gemm(attrs: Gemm, a: Array, b: Array, c: Array | None = None) -> Array:
    product = np.matmul(a.T if attrs.trans_a else a, b.T if attrs.trans_b else b)
    result = product if attrs.alpha == 1 else product * a.dtype.type(attrs.alpha)
    if c is None:
        return np.asarray(result)
    return np.asarray(result + (c if attrs.beta == 1 else c * a.dtype.type(attrs.beta)))


def _gemm_of(node: NodeAttributes) -> Gemm:
    return Gemm(node.flag("transA"), node.flag("transB"), node.number("alpha", 1.0), node.number("beta", 1.0))


def as_it_lies(call: Call) -> Gemm | None:
    """The attributes of a product whose constant right operand is transposed beforehand.

    A single row uses the columns of the transpose as they are, as vectors.
    """
    attrs = call.attrs
    is_turned = isinstance(attrs, Gemm) and call.op.name == "gemm" and attrs.trans_b
    if not is_turned or not call.dtype.is_float or call.shape[0] == 1:
        return None
    assert isinstance(attrs, Gemm)
    return replace(attrs, trans_b=False)


def transposed(weights: Array) -> Array:
    """The transpose of a matrix, in row-major order."""
    made = np.empty(weights.shape[::-1], weights.dtype)
    for first in range(0, len(weights), _TOGETHER):
        made[:, first : first + _TOGETHER] = weights[first : first + _TOGETHER].T
    return made


class Linear(CallBuilder):
    """Matrix products and determinants."""

    @operator(_matmul_type, _matmul, "matmul.matmul", least=2, attrs=Sides)
    def matmul(self, a: Operand, b: Operand) -> Call:
        """The matrix product over the last two axes; those before them broadcast, as in numpy.matmul.

        A transpose of an operand becomes an attribute of the product.
        """
        (left, trans_a), (right, trans_b) = map(_untransposed, self._operands([a, b], self._here()))
        return self.call("matmul", left, right, attrs=Sides(trans_a, trans_b))

    @operator(_gemm_type, _gemm, "matmul.gemm", least=2, most=3, attrs=Gemm, onnx=Spelling("Gemm", _gemm_of))
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
        """`alpha * a @ b + beta * c` of matrices, with a and b optionally transposed; c broadcasts to the result."""
        attrs = Gemm(trans_a, trans_b, alpha, beta)
        return self.call("gemm", a, b, *(() if c is None else (c,)), attrs=attrs)

    def dense(self, x: Operand, weight: Operand, bias: Operand | None = None) -> Call:
        """`x @ weight.T + bias`: `[rows, inputs]` and `[outputs, inputs]` give `[rows, outputs]`."""
        return self.gemm(x, weight, bias, trans_b=True)

    @operator(_det_type, plain(np.linalg.det), "matmul.det", onnx=Spelling("Det"))
    def det(self, x: Operand) -> Call:
        """The determinants of the square matrices in the last two axes."""
        return self.call("det", x)
