"""A function in, the bytes that each buffer stands for out: a range of the allocation at its root."""

from __future__ import annotations

from tirlite.analysis.extents import Extents
from tirlite.analysis.shape_plan import shape_plan
from tirlite.ir import Allocate, Buffer, PrimFunc, View, statements
from tirlite.ir.demand import of_prim_func
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_le


@record
class ByteRange:
    """`size` bytes of `root` from `offset` on; the whole of `root` where either is not known on entry to the function.

    What depends on a loop is not known: a view of one iteration may overlap its neighbour of the next. Where an entry
    of a plan says where it lies, `entry` is its number, `offset` counts from there, and `rows` are the numbers of the
    rows of the plan that it stands in.
    """

    root: Buffer
    offset: Size | None
    size: Size | None
    entry: int | None = None
    rows: frozenset[int] = frozenset()


@of_prim_func
def byte_ranges(func: PrimFunc) -> dict[Buffer, ByteRange]:
    """The range of each parameter, allocation and view."""
    extents, plan = Extents(func), shape_plan(func)
    rows: dict[int, list[int]] = {}
    for number, row in enumerate(plan.rows if plan is not None else ()):
        for entry in row:
            rows.setdefault(entry, []).append(number)
    ranges = {param: ByteRange(param, 0, extents.bytes(param)) for param in func.params if isinstance(param, Buffer)}
    for stmt in statements(func.body):
        if isinstance(stmt, Allocate):
            ranges[stmt.buffer] = ByteRange(stmt.buffer, 0, extents.bytes(stmt.buffer))
        elif isinstance(stmt, View):
            source, offset, size = ranges[stmt.source], extents.size(stmt.byte_offset), extents.bytes(stmt.buffer)
            here = plan.entry(stmt.byte_offset) if plan is not None and stmt.source is source.root else None
            if here is not None:
                ranges[stmt.buffer] = ByteRange(source.root, 0, size, here, frozenset(rows.get(here, ())))
                continue
            start = None if source.offset is None or offset is None else source.offset + offset
            ranges[stmt.buffer] = ByteRange(source.root, start, size, source.entry, source.rows)
    return ranges


def are_disjoint(a: ByteRange, b: ByteRange) -> bool:
    """Whether two ranges share no byte, for all values of all variables.

    They have different roots, are proved to lie apart in one, or every plan keeps them apart.
    """
    if a.root is not b.root:
        return True
    if a.entry != b.entry:
        return not a.rows.isdisjoint(b.rows)
    if a.offset is None or a.size is None or b.offset is None or b.size is None:
        return False
    return prove_le(a.offset + a.size, b.offset) is Proof.YES or prove_le(b.offset + b.size, a.offset) is Proof.YES
