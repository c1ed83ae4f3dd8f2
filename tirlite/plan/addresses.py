"""One address space a memory: a layout in, the address of each request and the end of each memory out."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.plan.layout import Layout
from tirlite.record import record
from tirlite.sizes import Size, round_up


@record
class Addresses:
    """`of[id]` is the address of a request in its memory, `ends[memory]` the bytes in use there, both from 0."""

    of: Mapping[str, Size]
    ends: Mapping[str, Size]


def addresses(layout: Layout) -> Addresses:
    """Addresses when the pools of the plan stand in their memories one behind the other, each aligned.

    A pool with fixed offsets in it comes first, as its offsets are addresses.
    """
    fixed = {layout.placements[r.id].pool for r in layout.problem.requests if r.fixed is not None}
    ends: dict[str, Size] = {}
    base: dict[str, Size] = {}
    for name, region in sorted(layout.pools.items(), key=lambda item: item[0] not in fixed):
        base[name] = round_up(ends.get(region.memory, 0), region.align)
        ends[region.memory] = base[name] + region.size
    return Addresses({name: base[p.pool] + p.offset for name, p in layout.placements.items()}, ends)
