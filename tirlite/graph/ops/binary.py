"""Operators of several operands that broadcast against each other: their types."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.broadcast import broadcast
from tirlite.graph.types import TensorType
from tirlite.ir import DType, bool_


def _binary(accepts: Callable[[DType], bool], wanted: str, result: DType | None = None) -> Callable[..., TensorType]:
    def rule(site: Site, attrs: Attrs) -> TensorType:
        dtype = site.same_dtype()
        if not accepts(dtype):
            raise site.wrong_type(f"the elements must be {wanted}, and are {dtype}")
        shape = broadcast(site, [each.shape for each in site.tensors()])
        return TensorType(shape, result or dtype)

    return rule


def _is_number(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_float


def _is_bits(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_bool


def _where(site: Site, attrs: Attrs) -> TensorType:
    condition, x, y = site.tensors()
    if not condition.dtype.is_bool:
        raise site.wrong_type(f"operand 0 must be bool_, and is {condition.dtype}")
    if x.dtype != y.dtype:
        raise site.wrong_type(f"operand 2 has elements {y.dtype}, operand 1 {x.dtype}")
    return TensorType(broadcast(site, [condition.shape, x.shape, y.shape]), x.dtype)


def _ops(rule: Callable[..., TensorType], names: str) -> list[Op]:
    return [Op(name, rule, 2, 2, is_elementwise=True) for name in names.split()]


BINARY = table(
    *_ops(_binary(_is_number, "numbers"), "add subtract multiply power maximum minimum floor_divide floor_mod"),
    *_ops(_binary(_is_number, "numbers"), "trunc_divide trunc_mod"),
    *_ops(_binary(lambda dtype: dtype.is_float, "of a float type"), "divide prelu"),
    *_ops(_binary(_is_number, "numbers", bool_), "less less_equal greater greater_equal"),
    *_ops(_binary(lambda dtype: not dtype.is_handle, "numbers or bool_", bool_), "equal not_equal"),
    *_ops(_binary(lambda dtype: dtype.is_bool, "bool_"), "logical_and logical_or logical_xor"),
    *_ops(_binary(_is_bits, "integers or bool_"), "bitwise_and bitwise_or bitwise_xor"),
    *_ops(_binary(lambda dtype: dtype.is_integer, "integers"), "shift_left shift_right"),
    Op("where", _where, 3, 3, is_elementwise=True),
)
