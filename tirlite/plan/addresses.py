"""One address space a memory: a layout in, the address of each request and the end of each memory out."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.plan.layout import Layout
from tirlite.record import record
from tirlite.sizes import Size


@record
class Addresses:
    """`of[id]` is the address of a request in its memory, `ends[memory]` the bytes in use there, both from 0."""

    of: Mapping[str, Size]
    ends: Mapping[str, Size]


def addresses(layout: Layout) -> Addresses:
    """Addresses when the pools of the plan stand in their memories one behind the other, each aligned."""
    row = layout.row
    return Addresses({name: row.starts[p.pool] + p.offset for name, p in layout.placements.items()}, row.ends)
