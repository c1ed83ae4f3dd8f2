"""A function in, those of its allocations out of which every use is a load or a store that can be rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch, linear_sequence
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.extents import Extents
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.regions import is_plain, path_to
from tirlite.ir import Load, PrimFunc, Store
from tirlite.ir.shape_loads import loads_in_shapes
from tirlite.record import record


@record
class Temporaries:
    """The allocations that a pass may move and reshape, and what their indices can be.

    Not among them: what is volatile, has views, has its address handed on or an attribute about it, is touched by
    threads or in an extern scope, or is loaded in the shape of another buffer; and what nothing touches.
    """

    space: IndexSpace
    addresses: Addresses
    allocations: tuple[Allocation, ...]


def temporaries(func: PrimFunc) -> Temporaries:
    """The temporaries of a function in normal form (see `Normalize`)."""
    space = IndexSpace(func, Extents(func))
    in_shapes = frozenset(loads_in_shapes(func))
    kept = {space.definitions.root(view) for view in space.definitions.views}
    kept |= {space.definitions.root(remarked) for remarked in space.definitions.remarked}
    found = [
        each
        for each in linear_sequence(func).allocations
        if each.touches
        and each.buffer not in kept
        and not (each.buffer.volatile or each.buffer.dtype.is_handle)
        and is_plain(each.home, None)
        and all(_is_plain_touch(touch, each) and touch.node not in in_shapes for touch in each.touches)
    ]
    return Temporaries(space, Addresses(space), tuple(found))


def _is_plain_touch(touch: Touch, allocation: Allocation) -> bool:
    return (
        isinstance(touch.node, Load | Store)
        and touch.node.buffer is allocation.buffer
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
