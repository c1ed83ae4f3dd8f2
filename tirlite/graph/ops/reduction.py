"""Operators that make one element of many along some axes: their types."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i64
from tirlite.record import record
from tirlite.sizes import Proof, prove_le


@record
class Reduce(Attrs):
    """The axes that are gone through, and whether they stay with extent 1."""

    axes: tuple[int, ...]
    keepdims: bool = False


@record
class Arg(Attrs):
    """The axis, whether it stays with extent 1, and whether the last of equal elements counts."""

    axis: int = -1
    keepdims: bool = False
    last: bool = False


@record
class CumSum(Attrs):
    """The axis; whether an element itself is left out of its sum, or product; whether these begin at the end."""

    axis: int = -1
    exclusive: bool = False
    reverse: bool = False


def _without(shape: Shape, axes: tuple[int, ...], *, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduce(accepts: Callable[[DType], bool], wanted: str, *, needs_some: bool = False) -> Callable[..., TensorType]:
    def rule(site: Site, attrs: Reduce) -> TensorType:
        x = site.tensor(0)
        if not accepts(x.dtype):
            raise site.wrong_type(f"the elements must be {wanted}, and are {x.dtype}")
        axes = site.axes(attrs.axes, x.rank)
        if needs_some:
            _check_some(site, x, axes)
        return TensorType(_without(x.shape, axes, keepdims=attrs.keepdims), x.dtype)

    return rule


def _check_some(site: Site, x: TensorType, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if prove_le(1, x.shape[axis]) is Proof.NO:
            raise site.mismatch(f"axis {axis} is empty, and has no greatest or least element")


def _arg(site: Site, attrs: Arg) -> TensorType:
    x = site.tensor(0)
    axis = site.axis(attrs.axis, x.rank)
    _check_some(site, x, (axis,))
    return TensorType(_without(x.shape, (axis,), keepdims=attrs.keepdims), i64)


def _cumsum(site: Site, attrs: CumSum) -> TensorType:
    x = site.tensor(0)
    if not _is_number(x.dtype):
        raise site.wrong_type(f"the elements must be numbers, and are {x.dtype}")
    site.axis(attrs.axis, x.rank)
    return x


def _is_number(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_float


_NUMBERS = _reduce(_is_number, "numbers")
_EXTREMES = _reduce(_is_number, "numbers", needs_some=True)
_FLOATS = _reduce(lambda dtype: dtype.is_float, "of a float type")
_BOOLS = _reduce(lambda dtype: dtype.is_bool, "bool_")

REDUCTION = table(
    *(Op(f"reduce_{name}", _NUMBERS, attrs=Reduce) for name in ("sum", "prod", "l1", "sum_square")),
    *(Op(f"reduce_{name}", _EXTREMES, attrs=Reduce) for name in ("max", "min")),
    *(Op(f"reduce_{name}", _FLOATS, attrs=Reduce) for name in ("mean", "l2", "log_sum", "log_sum_exp")),
    *(Op(f"reduce_{name}", _BOOLS, attrs=Reduce) for name in ("all", "any")),
    Op("argmax", _arg, attrs=Arg),
    Op("argmin", _arg, attrs=Arg),
    Op("cumsum", _cumsum, attrs=CumSum),
    Op("cumprod", _cumsum, attrs=CumSum),
)
