"""A function in, its Allocate statements out, with their sizes: what a test of a rewrite wants to see."""

from __future__ import annotations

from tirlite.analysis.extents import Extents
from tirlite.ir import Allocate, DType, PrimFunc, statements
from tirlite.ir.demand import of_prim_func
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


@of_prim_func
def allocations(func: PrimFunc) -> tuple[AllocationSize, ...]:
    """The Allocate statements of `func`, in program order. `str` of one is like `t: f32[n, 4] in global`."""
    extents = Extents(func)
    buffers = [node.buffer for node in statements(func.body) if isinstance(node, Allocate)]
    return tuple(
        AllocationSize(b.name, b.dtype, tuple(extents.size(e) for e in b.shape), b.scope, extents.bytes(b))
        for b in buffers
    )
