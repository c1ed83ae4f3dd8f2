"""Operators that put the elements of one tensor into another order or shape: their types."""

from __future__ import annotations

from tirlite.graph.extents import Shape, product
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.linear import broadcast_into
from tirlite.graph.types import TensorType
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_eq, prove_le


@record
class Reshape(Attrs):
    """The extents of the result, all of them; `told` are extents that a run finds, and that must be what they are."""

    shape: Shape
    told: Shape = ()


@record
class Transpose(Attrs):
    """The axes of the operand in the order of the result."""

    axes: tuple[int, ...]


@record
class Broadcast(Attrs):
    """The extents of the result."""

    shape: Shape


@record
class Tile(Attrs):
    """How often the operand is repeated along each axis."""

    repeats: tuple[Size, ...]


@record
class Slice(Attrs):
    """For each axis: the first index, how many there are, and the step from one to the next, which may be negative."""

    starts: tuple[Size, ...]
    sizes: tuple[Size, ...]
    steps: tuple[int, ...]


@record
class Pad(Attrs):
    """What is added before and behind each axis, and of which elements.

    `mode` is "constant" (`value`), "edge" (the outermost element), "reflect" (mirrored at the outermost element) or
    "wrap" (from the other end).
    """

    before: tuple[Size, ...]
    after: tuple[Size, ...]
    mode: str = "constant"
    value: float | int = 0


PAD_MODES = ("constant", "edge", "reflect", "wrap")


def _nonnegative(site: Site, what: str, sizes: Shape) -> None:
    if any(prove_le(0, size) is Proof.NO for size in sizes):
        raise site.bad_attribute(f"{what} must not be negative")


def _reshape(site: Site, attrs: Reshape) -> TensorType:
    x = site.tensor(0)
    _nonnegative(site, "extents", attrs.shape)
    before, after = product(x.shape), product(attrs.shape)
    if not site.is_equal(before, after):
        why = f"{before} elements become {after}"
        if prove_eq(before, after) is Proof.NO:
            raise site.mismatch(why)
        raise site.undecided(f"{why}: are they as many?", before, after)
    return TensorType(attrs.shape, x.dtype)


def _assume(site: Site, attrs: Reshape) -> TensorType:
    """The builder demands that there are as many elements: nothing is left to be proved here."""
    x = site.tensor(0)
    _nonnegative(site, "extents", attrs.shape)
    before, after = product(x.shape), product(attrs.shape)
    if prove_eq(before, after) is Proof.NO:
        raise site.mismatch(f"{before} elements become {after}")
    return TensorType(attrs.shape, x.dtype)


def _transpose(site: Site, attrs: Transpose) -> TensorType:
    x = site.tensor(0)
    if sorted(attrs.axes) != list(range(x.rank)):
        raise site.bad_attribute(f"axes must be an order of the {x.rank} axes from 0 on")
    return TensorType(tuple(x.shape[axis] for axis in attrs.axes), x.dtype)


def _broadcast_to(site: Site, attrs: Broadcast) -> TensorType:
    x = site.tensor(0)
    _nonnegative(site, "extents", attrs.shape)
    broadcast_into(site, x, attrs.shape)
    return TensorType(attrs.shape, x.dtype)


def _tile(site: Site, attrs: Tile) -> TensorType:
    x = site.tensor(0)
    _every_axis(site, x, "repeats", attrs.repeats)
    _nonnegative(site, "repeats", attrs.repeats)
    return TensorType(tuple(e * n for e, n in zip(x.shape, attrs.repeats, strict=True)), x.dtype)


def _slice(site: Site, attrs: Slice) -> TensorType:
    x = site.tensor(0)
    for name in ("starts", "sizes", "steps"):
        _every_axis(site, x, name, getattr(attrs, name))
    if 0 in attrs.steps:
        raise site.bad_attribute("a step must not be 0")
    _nonnegative(site, "sizes", attrs.sizes)
    for axis, (start, size, step) in enumerate(zip(attrs.starts, attrs.sizes, attrs.steps, strict=True)):
        if prove_le(1, size) is Proof.YES:
            last, extent = start + step * (size - 1), x.shape[axis]
            for index in (start, last):
                if prove_le(0, index) is Proof.NO or prove_le(index, extent - 1) is Proof.NO:
                    raise site.bad_attribute(f"axis {axis} has {extent} elements, and index {index} is asked for")
    return TensorType(attrs.sizes, x.dtype)


def _pad(site: Site, attrs: Pad) -> TensorType:
    x = site.tensor(0)
    _every_axis(site, x, "before", attrs.before)
    _every_axis(site, x, "after", attrs.after)
    _nonnegative(site, "pads", attrs.before + attrs.after)
    if attrs.mode not in PAD_MODES:
        raise site.bad_attribute(f"mode must be one of {', '.join(PAD_MODES)}")
    extents = zip(x.shape, attrs.before, attrs.after, strict=True)
    return TensorType(tuple(before + extent + after for extent, before, after in extents), x.dtype)


def _every_axis(site: Site, x: TensorType, name: str, given: tuple[Size, ...]) -> None:
    if len(given) != x.rank:
        raise site.bad_attribute(f"{name} has {len(given)} entries, and there are {x.rank} axes")


ARRANGEMENT = table(
    Op("reshape", _reshape, attrs=Reshape, is_view=True),
    Op("assume", _assume, attrs=Reshape, is_view=True),
    Op("transpose", _transpose, attrs=Transpose),
    Op("broadcast_to", _broadcast_to, attrs=Broadcast),
    Op("tile", _tile, attrs=Tile),
    Op("slice", _slice, attrs=Slice),
    Op("pad", _pad, attrs=Pad),
)
