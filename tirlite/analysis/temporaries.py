"""Finds the allocations of a function of which every use is a load or a store that can be rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import is_plain, path_to
from tirlite.ir import Load, Store
from tirlite.ir.checked import is_checked
from tirlite.ir.shapes import loads_in_shapes


def temporaries(facts: Facts) -> list[Allocation]:
    """The allocations that a pass may move and reshape.

    Not among them: what is volatile, has views, has its address handed on or an attribute about it, is touched by
    threads or in an extern scope, or is loaded in the shape of another buffer; what nothing touches; and what is
    accessed at an index that is to be checked, as that is one of the shape that is written.
    """
    if not facts.sequence.allocations:
        return []
    definitions, in_shapes = facts.definitions, frozenset(loads_in_shapes(facts.func))
    kept = {definitions.root(buffer) for buffer in (*definitions.views, *definitions.remarked)}
    return [
        each
        for each in facts.sequence.allocations
        if each.touches
        and each.buffer not in kept
        and not (each.buffer.volatile or each.buffer.dtype.is_handle)
        and is_plain(each.home, None)
        and all(_is_plain_touch(touch, each) and touch.node not in in_shapes for touch in each.touches)
    ]


def _is_plain_touch(touch: Touch, allocation: Allocation) -> bool:
    return (
        isinstance(touch.node, Load | Store)
        and touch.node.buffer is allocation.buffer
        and not any(map(is_checked, touch.node.indices))
        and touch.kind is not AccessKind.OPAQUE
        and is_plain(touch.region, allocation.home)
    )


def common_regions(touches: Sequence[Touch], home: Region) -> list[Region]:
    """The regions inside `home` that hold all touches, the outermost first."""
    common = path_to(touches[0].region, home)
    for touch in touches[1:]:
        region, depth = touch.region, touch.region.depth - home.depth
        while depth > len(common) or (depth and common[depth - 1] is not region):
            assert region.parent is not None
            region, depth = region.parent, depth - 1
        del common[depth:]
    return common
