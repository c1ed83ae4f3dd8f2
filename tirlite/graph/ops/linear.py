"""Products of matrices: their types."""

from __future__ import annotations

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.broadcast import broadcast
from tirlite.graph.types import TensorType
from tirlite.ir import DType
from tirlite.record import record
from tirlite.sizes import Size


@record
class Gemm(Attrs):
    """`alpha * A' @ B' + beta * C`, where A' is A or its transpose, and B' likewise."""

    alpha: float = 1.0
    beta: float = 1.0
    trans_a: bool = False
    trans_b: bool = False


def contracted(site: Site, a: Size, b: Size) -> None:
    """Raises GraphError where two extents that are summed over are not the same."""
    if not site.is_equal(a, b):
        raise site.unequal(f"the extents summed over are {a} and {b}", a, b)


def _matmul(site: Site, attrs: Attrs) -> TensorType:
    """As numpy.matmul: the last two axes are matrices, those before them broadcast; a vector is a row, or a column."""
    dtype = _numbers(site)
    a, b = (each.shape for each in site.tensors())
    if not a or not b:
        raise site.mismatch("an operand without axes is not a matrix")
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    contracted(site, left[-1], right[-2])
    batch = broadcast(site, [left[:-2], right[:-2]])
    return TensorType(batch + left[-2:-1] * (len(a) > 1) + right[-1:] * (len(b) > 1), dtype)


def _gemm(site: Site, attrs: Gemm) -> TensorType:
    dtype = _numbers(site)
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


def broadcast_into(site: Site, operand: TensorType, shape: tuple[Size, ...]) -> None:
    """Raises GraphError where an operand does not broadcast to exactly this shape."""
    made = broadcast(site, [operand.shape, shape])
    if len(made) != len(shape) or not all(map(site.is_equal, made, shape)):
        raise site.mismatch(f"{operand} does not broadcast to {TensorType(shape, operand.dtype)}")


def _numbers(site: Site) -> DType:
    dtype = site.same_dtype()
    if not (dtype.is_integer or dtype.is_float):
        raise site.wrong_type(f"the elements must be numbers, and are {dtype}")
    return dtype


def _det(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if not x.dtype.is_float:
        raise site.wrong_type(f"the elements must be of a float type, and are {x.dtype}")
    if x.rank < 2 or not site.is_equal(x.shape[-1], x.shape[-2]):
        raise site.mismatch("operand 0 must be square matrices")
    return TensorType(x.shape[:-2], x.dtype)


LINEAR = table(
    Op("matmul", _matmul, 2, 2),
    Op("gemm", _gemm, 2, 3, attrs=Gemm),
    Op("det", _det),
)
