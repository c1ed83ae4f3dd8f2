"""Lists the allocations of a function: all with their sizes, and those that a pass may move and reshape."""

from __future__ import annotations

from tirlite.analysis.access import AccessKind, Allocation, Touch
from tirlite.analysis.facts import Facts, of_facts
from tirlite.analysis.regions import is_plain
from tirlite.ir import Allocate, DType, Load, Store
from tirlite.ir.checked import is_checked
from tirlite.ir.shapes import loads_in_shapes
from tirlite.ir.walk import statements_of
from tirlite.record import record
from tirlite.sizes import Size


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


@record
class AllocationSize:
    """One Allocate: its buffer's name, element type and scope, its extents, and its bytes.

    An extent that is not known on entry to the function is None, and so are the bytes then.
    """

    name: str
    dtype: DType
    shape: tuple[Size | None, ...]
    scope: str
    bytes: Size | None

    def __str__(self) -> str:
        shape = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.name}: {self.dtype}[{shape or '()'}] in {self.scope}"


@of_facts
def allocations(facts: Facts) -> tuple[AllocationSize, ...]:
    """The Allocate statements of a function, in program order. `str` of one is like `t: f32[n, 4] in global`."""
    extents = facts.extents
    buffers = [node.buffer for node in statements_of(facts.func.body, Allocate)]
    return tuple(
        AllocationSize(b.name, b.dtype, tuple(extents.size(e) for e in b.shape), b.scope, extents.bytes(b))
        for b in buffers
    )
