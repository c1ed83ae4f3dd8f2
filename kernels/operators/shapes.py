"""Finds the axes that a kernel must keep separate: adjacent axes that behave alike become one.

Makes the loops over them too, for kernels whose rank varies, which a Builder makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import Buffer, Builder, Expr, IntImm, TensorType, Var, const, i64
from tirlite.ir.size import size_over_dims
from tirlite.sizes import Proof, prove_eq, prove_le

Extent: TypeAlias = "int | Expr"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the result, and which of the operands have it; the others are the same all along it."""

    extent: Extent
    present: tuple[bool, ...]


def extents(tensor: TensorType | Buffer) -> tuple[Extent, ...]:
    """The shape of a tensor; constants as integers."""
    return tuple(each.value if isinstance(each, IntImm) else each for each in tensor.shape)


def product(given: Iterable[Extent]) -> Extent:
    """The number of elements in a box of these extents."""
    result: Extent = 1
    for each in given:
        if not (isinstance(each, int) and each == 1):
            result = each if isinstance(result, int) and result == 1 else result * each
    return result


def elements(tensor: TensorType) -> Extent:
    """The number of elements of a tensor."""
    return product(extents(tensor))


def around(tensor: TensorType, axis: int) -> tuple[Extent, Extent, Extent]:
    """The number of elements before, along and after an axis: the shape as which a row-major tensor is seen there."""
    shape = extents(tensor)
    axis %= len(shape)
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])


def is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def is_same(a: Extent, b: Extent) -> bool:
    """Whether two extents are proved equal for all values of the dims."""
    x, y = (each if isinstance(each, int) else size_over_dims(each) for each in (a, b))
    return x is not None and y is not None and prove_eq(x, y) is Proof.YES


def is_at_most(a: Extent, b: Extent) -> bool:
    """Whether an extent is proved to be at most another one for all values of the dims."""
    x, y = (each if isinstance(each, int) else size_over_dims(each) for each in (a, b))
    return x is not None and y is not None and prove_le(x, y) is Proof.YES


def broadcast(shapes: Sequence[Sequence[Extent]], target: Sequence[Extent]) -> tuple[Axis, ...]:
    """The axes of a box over which operands of `shapes` are spread as NumPy does it.

    Axes of extent 1 are left out, neighbours along which the same operands change are joined. A symbolic extent stands
    for the extent of the target, whatever it is called.
    """
    padded = [(*(1 for _ in range(len(target) - len(shape))), *shape) for shape in shapes]
    axes: list[Axis] = []
    for number, extent in enumerate(target):
        present = tuple(not is_one(shape[number]) for shape in padded)
        if is_one(extent):
            continue
        if axes and axes[-1].present == present:
            axes[-1] = Axis(product((axes[-1].extent, extent)), present)
        else:
            axes.append(Axis(extent, present))
    return tuple(axes)


def as_expr(extent: Extent) -> Expr:
    """An extent as an expression of type i64."""
    return const(extent, i64) if isinstance(extent, int) else extent


@contextmanager
def nest(b: Builder, box: Sequence[Extent], *, serial: bool = False) -> Iterator[tuple[Var, ...]]:
    """A block for each element of a box; `with` gives its indices. The loops are parallel, or `serial`."""
    kind = b.for_ if serial else b.parallel
    with ExitStack() as loops:
        yield tuple(loops.enter_context(kind(f"i{level}", 0, extent)) for level, extent in enumerate(box))


def seen(b: Builder, buffer: Buffer, shape: Sequence[Extent]) -> Buffer:
    """The elements of a buffer under another shape; itself if that is its own."""
    own = [extent.value if isinstance(extent, IntImm) else extent for extent in buffer.shape]
    if len(own) == len(shape) and all(map(is_same, own, shape)):
        return buffer
    return b.view(f"{buffer.name}_", buffer, TensorType(buffer.dtype, tuple(shape)))


def numbered(steps: Sequence[tuple[Extent, Extent, Extent]], *, covers: bool) -> Inline:
    """`index(t)`: the sum of `t // inner % extent * stride` over steps of these three.

    With `covers`, t is below the inner times the extent of the first step.
    """

    @tl.inline
    def index(t, step=0):
        if tl.static(step == len(steps)):
            return 0
        elif tl.static(step == 0 and covers):
            inner, extent, stride = tl.static(steps[0])
            return t // inner * stride + index(t, 1)
        else:
            inner, extent, stride = tl.static(steps[step])
            return t // inner % extent * stride + index(t, tl.static(step + 1))

    return index


def to_operand(axes: Sequence[Axis], side: int) -> Inline:
    """From the number of an element in the box of all axes to that in the box of those that an operand has."""
    steps = []
    for number, axis in enumerate(axes):
        if axis.present[side]:
            rest = axes[number + 1 :]
            inner = product(each.extent for each in rest)
            steps.append((inner, axis.extent, product(each.extent for each in rest if each.present[side])))
    return numbered(steps, covers=bool(axes) and axes[0].present[side])


def from_part(axes: Sequence[Axis], chosen: Sequence[bool]) -> Inline:
    """From the number of an element in the box of the chosen axes to that in the box of all, at 0 in the others."""
    steps = []
    for number, axis in enumerate(axes):
        if chosen[number]:
            rest = range(number + 1, len(axes))
            inner = product(axes[each].extent for each in rest if chosen[each])
            steps.append((inner, axis.extent, product(axes[each].extent for each in rest)))
    return numbered(steps, covers=True)
