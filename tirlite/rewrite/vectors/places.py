"""Places are lanes that load from wherever along a row they compute, as those of an image that is resized.

The places are integers of 32 bits, of which a register holds as many as of floats, where the ends of all that they are
computed from fit into them.
"""

from __future__ import annotations

from collections.abc import Callable

from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.dtype import i32, i64
from tirlite.ir.expr import Add, Broadcast, Cast, Expr, IntImm, Load, Max, Min, Ramp, Sub, Var, const
from tirlite.ir.stmt import For, Let, Stmt
from tirlite.rewrite.vectors.lanes import Lanes
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends, is_nonnegative


class Places(Lanes):
    """Lanes of a loop from its iteration `first` on. All sizes in `limited` have to be integers of 32 bits."""

    def __init__(
        self,
        loop: For,
        is_inside: Callable[[Load], bool],
        space: IndexSpace,
        limited: dict[Size, None],
        first: Expr,
        lanes: int,
    ) -> None:
        super().__init__(lanes, {loop.var: Ramp.unit(first, lanes)}, neighbours=True, is_inside=is_inside)
        self.space = space
        self.limited = limited

    def reaches(self, index: Expr) -> bool:
        return super().reaches(index) or not isinstance(index, Ramp)

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
        """What is computed of a float, or of parts of 32 bits, where all of it fits into these."""
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
        """A vector of 32 bits with the values of an integer, if it fits."""
        part = _widened(value)
        if part is not None or not self._fits(expr):
            return part
        if isinstance(value, Ramp) and isinstance(value.stride, IntImm):
            return Ramp(_narrowed(value.base), const(value.stride.value, i32), value.lanes)
        return Broadcast(_narrowed(value), self.lanes) if value.dtype.lanes == 1 else None

    def _fits(self, expr: Expr) -> bool:
        """Whether an integer has 32 bits, if the sizes in `limited` have."""
        size = self.space.size(expr)
        low, high = ends(size)
        if low is None or high is None or not self.space.is_exact(size) or not is_nonnegative(low - i32.min):
            return False
        if isinstance(high, int):
            return high <= i32.max
        self.limited[high] = None
        return True


def _widened(value: Expr) -> Expr | None:
    """What a vector of 64 bits was made of, if that is one of 32."""
    is_wide = isinstance(value, Cast) and value.dtype.lanes > 1 and value.dtype.scalar == i64
    return value.value if is_wide and isinstance(value, Cast) and value.value.dtype.scalar == i32 else None


def _narrowed(value: Expr) -> Expr:
    return const(value.value, i32) if isinstance(value, IntImm) else Cast(i32, value)
