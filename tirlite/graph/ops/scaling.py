"""Operators that bring tensors to other extents, or between floats and small integers: their types."""

from __future__ import annotations

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.broadcast import broadcast
from tirlite.graph.ops.linear import contracted
from tirlite.graph.types import TensorType
from tirlite.ir import DType, i32
from tirlite.record import record
from tirlite.sizes import Proof, prove_le

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@record
class Resize(Attrs):
    """The extents of the result; over those of the operand as they were given, where they were (else None); the way.

    `mode` is "nearest", with a `rounding`, "linear", or "cubic", by Keys' convolution with this coefficient;
    `coordinates` says where an element of the result lies.
    """

    shape: Shape
    scales: tuple[float | None, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75


@record
class Quantize(Attrs):
    """The axis that scales and zero points count along, where there are several, and the type of the result."""

    dtype: DType
    axis: int = 1


def _resize(site: Site, attrs: Resize) -> TensorType:
    x = site.tensor(0)
    for name, given in (("shape", attrs.shape), ("scales", attrs.scales)):
        if len(given) != x.rank:
            raise site.bad_attribute(f"{name} has {len(given)} entries, and there are {x.rank} axes")
    for name, text, known in (
        ("mode", attrs.mode, ("nearest", "linear", "cubic")),
        ("coordinates", attrs.coordinates, COORDINATES),
        ("rounding", attrs.rounding, ROUNDINGS),
    ):
        if text not in known:
            raise site.bad_attribute(f"{name} must be one of {', '.join(known)}")
    if any(prove_le(0, extent) is Proof.NO for extent in attrs.shape):
        raise site.bad_attribute("extents must not be negative")
    return TensorType(attrs.shape, x.dtype)


def _along(site: Site, attrs: Quantize) -> TensorType:
    """The operand, once scale and zero point are found to be one number each, or one for each index of the axis."""
    x = site.tensor(0)
    for number, each in enumerate(site.tensors()[1:], 1):
        if each.rank > 1:
            raise site.mismatch(f"operand {number} must be one number, or have one axis")
        if each.rank == 1 and each.shape[0] != 1:
            extent = x.shape[site.axis(attrs.axis, x.rank)]
            if not site.is_equal(each.shape[0], extent):
                raise site.mismatch(
                    f"operand {number} must have one number for each of {extent} along axis {attrs.axis}"
                )
    return x


def _quantize_linear(site: Site, attrs: Quantize) -> TensorType:
    x = _along(site, attrs)
    if not x.dtype.is_float and x.dtype != i32:
        raise site.wrong_type(f"the elements must be of a float type or i32, and are {x.dtype}")
    if not attrs.dtype.is_integer or attrs.dtype.bits > 16:
        raise site.bad_attribute(f"{attrs.dtype} is not an integer type of 8 or 16 bits")
    if len(site.args) > 2 and site.tensor(2).dtype != attrs.dtype:
        raise site.wrong_type(f"the zero point is {site.tensor(2).dtype}, the result {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _dequantize_linear(site: Site, attrs: Quantize) -> TensorType:
    x = _along(site, attrs)
    if not x.dtype.is_integer:
        raise site.wrong_type(f"the elements must be integers, and are {x.dtype}")
    if not attrs.dtype.is_float or site.tensor(1).dtype != attrs.dtype:
        raise site.bad_attribute(
            f"scale and result must have one float type, not {site.tensor(1).dtype}, {attrs.dtype}"
        )
    if len(site.args) > 2 and site.tensor(2).dtype != x.dtype:
        raise site.wrong_type(f"the zero point is {site.tensor(2).dtype}, the elements {x.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _matmul_integer(site: Site, attrs: Attrs) -> TensorType:
    a, b, zero_a, zero_b = site.tensors()
    for each in (a, b):
        if not each.dtype.is_integer or each.dtype.bits != 8:
            raise site.wrong_type(f"the elements must be integers of 8 bits, and are {each.dtype}")
    if a.rank < 2 or b.rank < 2:
        raise site.mismatch("operands 0 and 1 must be matrices")
    contracted(site, a.shape[-1], b.shape[-2])
    for zero, of in ((zero_a, a), (zero_b, b)):
        if zero.dtype != of.dtype:
            raise site.wrong_type(f"a zero point is {zero.dtype}, its operand {of.dtype}")
        if zero.rank > 1:
            raise site.mismatch("a zero point must be one number, or have one axis")
    batch = broadcast(site, [a.shape[:-2], b.shape[:-2]])
    return TensorType((*batch, a.shape[-2], b.shape[-1]), i32)


SCALING = table(
    Op("resize", _resize, attrs=Resize),
    Op("quantize_linear", _quantize_linear, 2, 3, attrs=Quantize),
    Op("dequantize_linear", _dequantize_linear, 2, 3, attrs=Quantize),
    Op("matmul_integer", _matmul_integer, 4, 4),
)
