"""Finds the bytes that each buffer of a function stands for: a range of the allocation at its root."""

from __future__ import annotations

from tirlite.analysis.facts import Facts, of_facts
from tirlite.analysis.integers.array_bounds import is_exact_index, is_exact_size, may_be_anything
from tirlite.analysis.shape_plan import shape_plan
from tirlite.groups import by_key
from tirlite.ir import Add, Allocate, Buffer, Expr, IntImm, Mul, Neg, Sub, View, statements, walk
from tirlite.record import record
from tirlite.sizes import Size, is_at_most


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


@of_facts
def byte_ranges(facts: Facts) -> dict[Buffer, ByteRange]:
    """The range of each parameter, allocation and view."""
    func, extents = facts.func, facts.extents
    plan, views = shape_plan(func), _Views(facts)
    rows = by_key((entry, number) for number, row in enumerate(plan.rows if plan is not None else ()) for entry in row)
    ranges = {param: ByteRange(param, 0, extents.bytes(param)) for param in func.arrays}
    for stmt in statements(func.body):
        if isinstance(stmt, Allocate):
            ranges[stmt.buffer] = ByteRange(stmt.buffer, 0, extents.bytes(stmt.buffer))
        elif isinstance(stmt, View):
            source = ranges[stmt.source]
            offset, size = views.offset(stmt, source.root), views.bytes(stmt)
            here = plan.entry(stmt.byte_offset) if plan is not None and stmt.source is source.root else None
            if here is not None:
                ranges[stmt.buffer] = ByteRange(source.root, 0, size, here, frozenset(rows.get(here, ())))
                continue
            start = None if source.offset is None or offset is None else source.offset + offset
            ranges[stmt.buffer] = ByteRange(source.root, start, size, source.entry, source.rows)
    return ranges


class _Views:
    """Where views lie and what they hold, unless arithmetic may wrap around on the way.

    Allocations are checked for that when they are made, and so is what is no more than one.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._extents = facts.extents
        self._is_bounded = not any(map(may_be_anything, facts.extents.given.values()))

    def offset(self, view: View, root: Buffer) -> Size | None:
        most = self._extents.bytes(root) if view.source is root else None
        return self._exact(view.byte_offset, most)

    def bytes(self, view: View) -> Size | None:
        is_exact = all(self._exact(extent) is not None for extent in view.buffer.shape)
        return self._extents.bytes(view.buffer) if is_exact else None

    def _exact(self, expr: Expr, most: Size | None = None) -> Size | None:
        """The value of an expression, at most `most` if that is given; None where it may have wrapped around."""
        size = self._extents.size(expr)
        if size is None or isinstance(expr, IntImm):
            return size
        if self._is_bounded and self._is_polynomial(expr) and is_exact_size(size, self._extents.arrays):
            return size
        if self._facts.space.size(expr) != size:
            return None
        is_checked = most is not None and is_at_most(0, size) and is_at_most(size, most)
        return size if is_checked or is_exact_index(size, self._extents.arrays) else None

    def _is_polynomial(self, expr: Expr) -> bool:
        """Whether an expression is one over dims: it has the value of its size, if that does not wrap around."""
        return all(
            isinstance(node, Add | Sub | Mul | Neg | IntImm) or node in self._extents.given for node in walk(expr)
        )


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
    return is_at_most(a.offset + a.size, b.offset) or is_at_most(b.offset + b.size, a.offset)
