"""Which loops run in order, one iteration after the other, and why."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.access import Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.regrouping import updates_in
from tirlite.ir import For, ForKind, Load, PrimFunc, Store, statements_of, walk
from tirlite.ir.checked import has_check
from tirlite.ir.printing import prints_in
from tirlite.schedules.handle import loops_around
from tirlite.schedules.order import carried


def orders(func: PrimFunc) -> Iterator[str]:
    """For each loop whose iterations can't run at once, by workers or as lanes, the first reason for that."""
    facts = Facts(func)
    for loop, _ in loops_around(func):
        if loop.kind is ForKind.SERIAL and not _has_vectors(loop) and (reason := _reason(facts, loop)):
            yield f"in order: the loop over `{loop.var.name}`, as {reason}"


def _reason(facts: Facts, loop: For) -> str:
    if next(prints_in(loop), None) is not None:
        return "it prints"
    if has_check(loop):
        return "an index is checked where it stands"
    first = next(carried(facts, loop), None)
    if first is None:
        return ""
    sink, source = str(first.sink), str(first.source)
    updates = updates_in(loop, facts)
    if isinstance(updates, tuple) and updates:
        if _goes_along(loop, first.sink):
            return ""
        return f"it combines values into {sink} as written: `tl.reduce` says that they may be regrouped"
    return f"its iterations may meet in {sink}" if sink == source else f"{sink} must come after {source}"


def _goes_along(loop: For, touch: Touch) -> bool:
    """Whether a loop inside goes from element to element: each is combined in order, but many at once."""
    inside = {each.var for each in statements_of(loop.body, For)}
    indices = touch.node.indices if isinstance(touch.node, Load | Store) else ()
    return any(node in inside for index in indices for node in walk(index))


def _has_vectors(loop: For) -> bool:
    return any(getattr(node, "dtype", loop.var.dtype).lanes > 1 for node in walk(loop))
