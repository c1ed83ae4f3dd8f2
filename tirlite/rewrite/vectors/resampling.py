"""ResamplingLanes are lanes that load from computed places of a row, as when an image is resized.

The places are integers of 32 bits, of which a register holds as many as of f32, if the bounds of all that they are
computed from fit into 32 bits. If each lane has a row of its own, as when an image is rotated, places count through
all rows; lanes that a branch leaves out load the first element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.dtype import i32, i64
from tirlite.ir.expr import (
    Add,
    Broadcast,
    Buffer,
    Cast,
    Expr,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.stmt import For, Let, Stmt
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends, is_nonnegative


class ResamplingLanes(Lanes):
    """Lanes of a loop from its iteration `first` on. All sizes in `limited` have to be integers of 32 bits.

    `limited` collects the sizes that must fit into 32 bits for that; `flat` the flattened views to load from.
    """

    def __init__(
        self,
        loop: For,
        is_inside: Callable[[Load], bool],
        space: IndexSpace,
        limited: dict[Size, None],
        flat: dict[Buffer, Buffer],
        first: Expr,
        lanes: int,
    ) -> None:
        super().__init__(lanes, {loop.var: Ramp.unit(first, lanes)}, neighbours=True, is_inside=is_inside)
        self.space = space
        self.limited = limited
        self.flat = flat

    def reaches(self, index: Expr) -> bool:
        return super().reaches(index) or not isinstance(index, Ramp)

    def moved(self, load: Load) -> Expr | None:
        """The load of lanes from rows of their own, or from places under a mask; None for other loads."""
        buffer = load.buffer
        if not load.indices or buffer in self.wide or buffer.volatile or buffer.strides or buffer.dtype.lanes > 1:
            return None
        indices = [self.of(index) for index in load.indices]
        is_of_row = all(index.dtype.lanes == 1 for index in indices[:-1])
        is_place = indices[-1].dtype.lanes > 1 and not isinstance(indices[-1], Ramp)
        if is_of_row and (self.on is None or not is_place):
            return None
        if not self.is_inside(Load(buffer, tuple(const(0, i64) for _ in indices))):
            raise NotVector
        number = reduce(Mul, buffer.shape)
        self.limited[self.space.size(number)] = None
        place, *others = (_short(self.spread(index)) for index in indices)
        for extent, other in zip(buffer.shape[1:], others, strict=True):
            place = Add(Mul(place, Broadcast(_narrowed(extent), self.lanes)), other)
        if self.on is not None:
            place = Select(self.on, place, self.spread(const(0, i32)))
        flat = self.flat.setdefault(buffer, replace(buffer, name=f"{buffer.name}.flat", shape=(folded(number),)))
        return Load(flat, (place,))

    def statement(self, stmt: Stmt) -> Stmt:
        if (
            isinstance(stmt, Let)
            and stmt.var.dtype == i64
            and (part := _widened(value := self.of(stmt.value))) is not None
        ):
            var = Var(stmt.var.name, part.dtype)
            self.values[stmt.var] = Cast(value.dtype, var)
            return Let(var, part, span=stmt.span)
        return super().statement(stmt)

    def _combined(self, expr: Expr, children: list[Expr]) -> Expr:
        narrow = self._narrow(expr, children)
        return super()._combined(expr, children) if narrow is None else narrow

    def _narrow(self, expr: Expr, children: list[Expr]) -> Expr | None:
        """An index computed from a float, or from 32-bit parts, in 32 bits if all of it fits; else None."""
        wide = i64.with_lanes(self.lanes)
        if isinstance(expr, Cast) and expr.dtype == i64 and expr.value.dtype.is_float and self._fits(expr):
            return Cast(wide, Cast(i32.with_lanes(self.lanes), children[0]))
        if isinstance(expr, Cast) and expr.dtype.is_float and expr.value.dtype == i64:
            part = self._part(expr.value, children[0])
            return None if part is None else Cast(expr.dtype.with_lanes(self.lanes), part)
        if isinstance(expr, Add | Sub | Min | Max) and any(_widened(each) is not None for each in children):
            a, b = map(self._part, (expr.a, expr.b), children)
            return None if a is None or b is None or not self._fits(expr) else Cast(wide, type(expr)(a, b))
        return None

    def _part(self, expr: Expr, value: Expr) -> Expr | None:
        """The 32-bit vector of an integer's values, if it fits."""
        part = _widened(value)
        if part is not None or not self._fits(expr):
            return part
        if isinstance(value, Ramp) and isinstance(value.stride, IntImm):
            return Ramp(_narrowed(value.base), const(value.stride.value, i32), value.lanes)
        return Broadcast(_narrowed(value), self.lanes) if value.dtype.lanes == 1 else None

    def _fits(self, expr: Expr) -> bool:
        """Whether an integer fits into 32 bits if the sizes in `limited` do."""
        size = self.space.size(expr)
        low, high = ends(size)
        if low is None or high is None or not self.space.is_exact(size) or not is_nonnegative(low - i32.min):
            return False
        if isinstance(high, int):
            return high <= i32.max
        self.limited[high] = None
        return True


def _widened(value: Expr) -> Expr | None:
    """The 32-bit vector that a 64-bit one was converted from, if it was."""
    is_wide = isinstance(value, Cast) and value.dtype.lanes > 1 and value.dtype.scalar == i64
    return value.value if is_wide and isinstance(value, Cast) and value.value.dtype.scalar == i32 else None


def _short(index: Expr) -> Expr:
    """An index as 32 bits, which hold every place in a buffer."""
    if index.dtype.scalar == i32:
        return index
    part = _widened(index)
    return Cast(i32.with_lanes(index.dtype.lanes), index) if part is None else part


def _narrowed(value: Expr) -> Expr:
    return const(value.value, i32) if isinstance(value, IntImm) else Cast(i32, value)
