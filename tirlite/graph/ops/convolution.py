"""Operators that move a window over the axes behind the second one: convolutions and pools. Their types.

Tensors are `[batch, channels, *spatial]`, weights `[outputs, inputs of a group, *window]`. `pads` lists what is added
before each spatial axis and then what is added behind each, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.linear import contracted
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import i64
from tirlite.record import record
from tirlite.sizes import Proof, Size, ceildiv, maximum, minimum, prove_le


@record
class Conv(Attrs):
    """Steps of the window, padding, distance between its elements, and how many groups of channels stand apart.

    With `same`, "upper" or "lower", there are as many places as elements over steps, rounded up: `pads` are 0, and what
    that takes is added, half of it before the tensor; an odd one goes behind it ("upper"), or before it.
    """

    strides: tuple[int, ...]
    pads: tuple[Size, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    same: str = field(default="", kw_only=True)


@record
class ConvTranspose(Conv):
    """As of the convolution that it is the transpose of, and what is added behind each spatial axis of the result."""

    output_padding: tuple[int, ...] = ()


@record
class Pool(Attrs):
    """The window, its steps, padding and dilations; whether a last window may reach beyond; whether padding counts.

    `same` is that of Conv.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[Size, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False
    count_include_pad: bool = False
    same: str = field(default="", kw_only=True)


SAME = ("", "upper", "lower")


def pads_of(attrs: Conv | Pool, extents: Sequence[Size], window: Sequence[Size]) -> tuple[Size, ...]:
    """What is added before each spatial axis, then behind each, where the tensor has these extents."""
    if not attrs.same:
        return attrs.pads
    totals = []
    for extent, size, stride, dilation in zip(extents, window, attrs.strides, attrs.dilations, strict=True):
        reach = (ceildiv(extent, stride) - 1) * stride + dilation * (size - 1) + 1
        totals.append(maximum(0, reach - extent))
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (*less, *more) if attrs.same == "upper" else (*more, *less)


def _spatial(site: Site, attrs: Conv | Pool) -> TensorType:
    """The tensor that the window moves over, once the attributes are found to have an entry for each axis."""
    x = site.tensor(0)
    axes = x.rank - 2
    if axes < 1:
        raise site.mismatch("operand 0 must have a batch axis, a channel axis and spatial ones")
    for name, given, wanted in (
        ("strides", attrs.strides, axes),
        ("dilations", attrs.dilations, axes),
        ("pads", attrs.pads, 2 * axes),
    ):
        if len(given) != wanted:
            raise site.bad_attribute(f"{name} has {len(given)} entries, and {axes} spatial axes take {wanted}")
    for name, steps in (("strides", attrs.strides), ("dilations", attrs.dilations)):
        if any(step < 1 for step in steps):
            raise site.bad_attribute(f"{name} must be positive")
    if any(prove_le(0, pad) is Proof.NO for pad in attrs.pads):
        raise site.bad_attribute("pads must not be negative")
    if attrs.same not in SAME or (attrs.same and any(pad != 0 for pad in attrs.pads)):
        raise site.bad_attribute("same must be upper or lower, with pads of 0")
    return x


def _slid(site: Site, extents: Shape, window: Shape, attrs: Conv | Pool, *, ceil: bool = False) -> Shape:
    """How many places the window has along each spatial axis."""
    if attrs.same:
        return tuple(ceildiv(extent, stride) for extent, stride in zip(extents, attrs.strides, strict=True))
    result = []
    axes = len(extents)
    for axis, (extent, size) in enumerate(zip(extents, window, strict=True)):
        stride, before = attrs.strides[axis], attrs.pads[axis]
        padded = extent + before + attrs.pads[axes + axis]
        room = padded - (attrs.dilations[axis] * (size - 1) + 1)
        if prove_le(0, room) is Proof.NO:
            raise site.mismatch(f"the window does not fit into {padded} elements along spatial axis {axis}")
        places: Size = room // stride + 1
        if ceil:
            # A window that would begin in the padding behind the tensor is left out.
            places = minimum(ceildiv(room, stride) + 1, ceildiv(extent + before, stride))
        result.append(places)
    return tuple(result)


def _weights(site: Site, attrs: Conv) -> TensorType:
    dtype = site.same_dtype()
    weight = site.tensor(1)
    if dtype.is_bool or dtype.is_handle:
        raise site.wrong_type(f"the elements must be numbers, and are {dtype}")
    if weight.rank != site.tensor(0).rank:
        raise site.mismatch("operands 0 and 1 must have as many axes")
    if attrs.groups < 1:
        raise site.bad_attribute("groups must be positive")
    return weight


def _check_bias(site: Site, outputs: Size) -> None:
    if len(site.args) > 2:
        bias = site.tensor(2)
        if bias.rank != 1 or not site.is_equal(bias.shape[0], outputs):
            raise site.mismatch(f"the bias must have {outputs} elements")


def _conv(site: Site, attrs: Conv) -> TensorType:
    x, weight = _spatial(site, attrs), _weights(site, attrs)
    contracted(site, x.shape[1], weight.shape[1] * attrs.groups)
    outputs = weight.shape[0]
    if isinstance(outputs, int) and outputs % attrs.groups:
        raise site.mismatch(f"{outputs} channels do not divide into {attrs.groups} groups")
    _check_bias(site, outputs)
    return TensorType((x.shape[0], outputs, *_slid(site, x.shape[2:], weight.shape[2:], attrs)), x.dtype)


def _conv_transpose(site: Site, attrs: ConvTranspose) -> TensorType:
    x, weight = _spatial(site, attrs), _weights(site, attrs)
    if attrs.same:
        raise site.bad_attribute("a transposed convolution is told its pads")
    contracted(site, x.shape[1], weight.shape[0])
    axes = x.rank - 2
    extra = attrs.output_padding or (0,) * axes
    if len(extra) != axes:
        raise site.bad_attribute(f"output_padding has {len(extra)} entries, and there are {axes} spatial axes")
    outputs = weight.shape[1] * attrs.groups
    _check_bias(site, outputs)
    spatial = tuple(
        attrs.strides[i] * (x.shape[2 + i] - 1)
        + attrs.dilations[i] * (weight.shape[2 + i] - 1)
        + (1 + extra[i] - attrs.pads[i] - attrs.pads[axes + i])
        for i in range(axes)
    )
    return TensorType((x.shape[0], outputs, *spatial), x.dtype)


def _pool(site: Site, attrs: Pool) -> TensorType:
    x = _spatial(site, attrs)
    if len(attrs.window) != x.rank - 2 or any(size < 1 for size in attrs.window):
        raise site.bad_attribute(f"the window must have {x.rank - 2} positive extents")
    return TensorType((*x.shape[:2], *_slid(site, x.shape[2:], attrs.window, attrs, ceil=attrs.ceil_mode)), x.dtype)


def _max_pool_indices(site: Site, attrs: Pool) -> TupleType:
    made = _pool(site, attrs)
    return TupleType((made, TensorType(made.shape, i64)))


def _average_pool(site: Site, attrs: Pool) -> TensorType:
    if not site.tensor(0).dtype.is_float:
        raise site.wrong_type(f"the elements must be of a float type, and are {site.tensor(0).dtype}")
    return _pool(site, attrs)


def _global_pool(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if x.rank < 3 or not x.dtype.is_float:
        raise site.wrong_type("operand 0 must have a batch axis, a channel axis and spatial ones, of a float type")
    return TensorType((*x.shape[:2], *(1,) * (x.rank - 2)), x.dtype)


CONVOLUTION = table(
    Op("conv", _conv, 2, 3, attrs=Conv),
    Op("conv_transpose", _conv_transpose, 2, 3, attrs=ConvTranspose),
    Op("max_pool", _pool, attrs=Pool),
    Op("max_pool_indices", _max_pool_indices, attrs=Pool),
    Op("average_pool", _average_pool, attrs=Pool),
    Op("global_max_pool", _global_pool),
    Op("global_average_pool", _global_pool),
)
