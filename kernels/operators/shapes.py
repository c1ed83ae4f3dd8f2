"""Merges adjacent axes that a kernel need not distinguish, and builds loop nests over the remaining ones.

The loops are for kernels of any rank, which are made by a Builder.
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
class BroadcastAxis:
    """An axis of the result, and which operands have it; the others are broadcast along it."""

    extent: Extent
    present: tuple[bool, ...]


def extents(tensor: TensorType | Buffer) -> tuple[Extent, ...]:
    """The shape of a tensor, with constant extents as ints."""
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
    """The tensor's shape viewed as three axes: the elements before, along and after `axis`."""
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


def broadcast(shapes: Sequence[Sequence[Extent]], target: Sequence[Extent]) -> tuple[BroadcastAxis, ...]:
    """The merged axes of `target`, to which operands of `shapes` broadcast as in NumPy.

    Axes of extent 1 are dropped; adjacent axes along which the same operands are broadcast are merged. Any symbolic
    extent of an operand is taken to equal the target's.
    """
    padded = [(*(1 for _ in range(len(target) - len(shape))), *shape) for shape in shapes]
    axes: list[BroadcastAxis] = []
    for number, extent in enumerate(target):
        present = tuple(not is_one(shape[number]) for shape in padded)
        if is_one(extent):
            continue
        if axes and axes[-1].present == present:
            axes[-1] = BroadcastAxis(product((axes[-1].extent, extent)), present)
        else:
            axes.append(BroadcastAxis(extent, present))
    return tuple(axes)


def as_expr(extent: Extent) -> Expr:
    """An extent as an expression of type i64."""
    return const(extent, i64) if isinstance(extent, int) else extent


@contextmanager
def nest(b: Builder, box: Sequence[Extent], *, serial: bool = False) -> Iterator[tuple[Var, ...]]:
    """A loop nest over a box, parallel unless `serial`; `with` gives the indices."""
    kind = b.for_ if serial else b.parallel
    with ExitStack() as loops:
        yield tuple(loops.enter_context(kind(f"i{level}", 0, extent)) for level, extent in enumerate(box))


def seen(b: Builder, buffer: Buffer, shape: Sequence[Extent]) -> Buffer:
    """A view of a buffer under another shape; the buffer itself if it already has that shape."""
    own = [extent.value if isinstance(extent, IntImm) else extent for extent in buffer.shape]
    if len(own) == len(shape) and all(map(is_same, own, shape)):
        return buffer
    return b.view(f"{buffer.name}_", buffer, TensorType(buffer.dtype, tuple(shape)))


def numbered(steps: Sequence[tuple[Extent, Extent, Extent]], *, covers: bool) -> Inline:
    """`index(t)`: the sum of `t // inner % extent * stride` over the steps (inner, extent, stride).

    With `covers`, t is below inner * extent of the first step, so that its `%` is omitted.
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


def to_operand(axes: Sequence[BroadcastAxis], side: int) -> Inline:
    """Maps an element's linear index over all axes to its linear index in the operand `side`."""
    steps = []
    for number, axis in enumerate(axes):
        if axis.present[side]:
            rest = axes[number + 1 :]
            inner = product(each.extent for each in rest)
            steps.append((inner, axis.extent, product(each.extent for each in rest if each.present[side])))
    return numbered(steps, covers=bool(axes) and axes[0].present[side])


def from_part(axes: Sequence[BroadcastAxis], chosen: Sequence[bool]) -> Inline:
    """Maps a linear index over the chosen axes to the linear index over all axes, with 0 along the others."""
    steps = []
    for number, axis in enumerate(axes):
        if chosen[number]:
            rest = range(number + 1, len(axes))
            inner = product(axes[each].extent for each in rest if chosen[each])
            steps.append((inner, axis.extent, product(axes[each].extent for each in rest)))
    return numbered(steps, covers=True)
