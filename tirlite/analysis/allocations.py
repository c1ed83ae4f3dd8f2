"""Lists the Allocate statements of a function, with their sizes: what a test of a rewrite wants to see."""

from __future__ import annotations

from tirlite.analysis.facts import Facts, of_facts
from tirlite.ir import Allocate, DType, statements
from tirlite.record import record
from tirlite.sizes import Size


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
    buffers = [node.buffer for node in statements(facts.func.body) if isinstance(node, Allocate)]
    return tuple(
        AllocationSize(b.name, b.dtype, tuple(extents.size(e) for e in b.shape), b.scope, extents.bytes(b))
        for b in buffers
    )
