"""Finds how many lines of a temporary one iteration of a loop sees, where the lines move on with the loop."""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.analysis.access import Touch
from tirlite.analysis.index_space import IndexSpace
from tirlite.ir import Expr, For, Load, Store
from tirlite.sizes.poly import bounds_of
from tirlite.sizes.unknown import ends, forms_of


def line_window(touches: Iterable[Touch], axis: int, loop: For, space: IndexSpace) -> int | None:
    """The number of lines along `axis` between the first and the last that one iteration of `loop` may touch.

    In iteration v, which is also the value of the loop's variable, these are from v + a to v + b for constants a and b.
    None where no such constants are found. The loop goes up by 1, and all touches are inside of it.
    """
    low: int | None = None
    high: int | None = None
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        index = touch.node.indices[axis]
        least, most = _offset(index, touch.node.buffer.shape[axis], loop, space)
        if least is None or most is None:
            return None
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
    return None if low is None or high is None else high - low + 1


def _offset(index: Expr, extent: Expr, loop: For, space: IndexSpace) -> tuple[int | None, int | None]:
    """The least and the greatest number that an index less the variable of a loop can be."""
    size = space.size(index)
    if index.dtype.lanes != 1 or not space.is_exact_at(index, size, space.extents.size(extent)):
        return None, None
    found = [ends(form) for form in forms_of(size - space.size(loop.var))]
    lows = [least for low, _ in found if low is not None and (least := bounds_of(low).low) is not None]
    highs = [most for _, high in found if high is not None and (most := bounds_of(high).high) is not None]
    return max(lows, default=None), min(highs, default=None)
