"""Finds how many lines of a temporary one iteration of a loop sees, where the lines move on with the loop."""

from __future__ import annotations

from collections.abc import Iterable

from tirlite.analysis.access import Touch
from tirlite.analysis.exactness import stays_exact
from tirlite.analysis.index_space import IndexSpace
from tirlite.ir import Expr, For, Load, Max, Min, Steps, Store, run
from tirlite.sizes import Proof, Size, prove_le
from tirlite.sizes.unknown import Ends, ends


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
    """The ends of an index less the variable of a loop, where they are integers."""
    size = space.extents.size(extent)
    if index.dtype.lanes != 1:
        return None, None
    low, high = run(_ends(index, size, loop, space))
    return (low if isinstance(low, int) else None), (high if isinstance(high, int) else None)


def _ends(index: Expr, extent: Size | None, loop: For, space: IndexSpace) -> Steps[Ends]:
    """As `_offset`, with symbolic ends. An extremum with what does not move is still bounded on one side."""
    if isinstance(index, Min | Max):
        a: Ends = yield _ends(index.a, extent, loop, space)
        b: Ends = yield _ends(index.b, extent, loop, space)
        if isinstance(index, Min):
            return _both(a[0], b[0], least=True), _either(a[1], b[1], least=True)
        return _either(a[0], b[0], least=False), _both(a[1], b[1], least=False)
    size = space.size(index)
    if not stays_exact(*ends(size), extent):
        return None, None
    return ends(size - space.size(loop.var))


def _both(a: Size | None, b: Size | None, *, least: bool) -> Size | None:
    """The lesser or the greater of two, where it is known which one that is."""
    if a is None or b is None:
        return None
    if prove_le(a, b) is Proof.YES:
        return a if least else b
    if prove_le(b, a) is Proof.YES:
        return b if least else a
    return None


def _either(a: Size | None, b: Size | None, *, least: bool) -> Size | None:
    """A bound by both, or by one of them: an integer if there is one."""
    found = _both(a, b, least=least)
    if isinstance(found, int):
        return found
    integers = [each for each in (a, b) if isinstance(each, int)]
    return integers[0] if integers else found
