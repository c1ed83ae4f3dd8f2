"""Keeps the elements of small temporaries in local scalars, so that registers hold them and LLVM sees what they are."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.ir import (
    Allocate,
    Buffer,
    For,
    IntImm,
    Load,
    Node,
    Rule,
    SeqStmt,
    Stmt,
    Store,
    While,
    rewrite,
    statements,
    statements_of,
    walk,
)
from tirlite.ir.shapes import constant_shape
from tirlite.rewrite.lanes import MOST_APART
from tirlite.rewrite.taps import count_of, written_out

# Registers hold so many elements.
_MOST_ELEMENTS = 16


def with_scalars(body: SeqStmt) -> SeqStmt | None:
    """The body of a loop, with its short loops written out, and a scalar for each element of what it allocates.

    None where it allocates no array and loops are not short enough, or where loops or arrays would be left.
    """
    made = written_out(body)
    allocated = {stmt.buffer for stmt in statements_of(made, Allocate)}
    serves = any(buffer.shape for buffer in allocated) or _has_few_apart(body)
    if not serves or any(isinstance(each, For | While) for each in statements(made)):
        return None
    cells: dict[tuple[Buffer, int], Buffer] = {}
    if not all(_is_small(buffer) for buffer in allocated):
        return None
    for stmt in statements(made):
        for buffer, node in _mentions(stmt):
            if buffer in allocated:
                place = _place(node)
                if place is None:
                    return None
                cells.setdefault((buffer, place), Buffer(buffer.name, buffer.dtype, (), "local"))

    def moved(node: Load | Store) -> Node:
        if node.buffer not in allocated:
            return node
        place = _place(node)
        assert place is not None
        return node.replaced(buffer=cells[node.buffer, place], indices=())

    def declared(stmt: Allocate) -> Stmt | tuple[Stmt, ...]:
        return tuple(stmt.replaced(buffer=cell) for (buffer, _), cell in cells.items() if buffer is stmt.buffer)

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved, Allocate: declared}
    return rewrite(made, rules)


def _has_few_apart(body: SeqStmt) -> bool:
    """Whether loops have no more iterations than lanes may lie apart to be shuffled."""
    counts = [count_of(loop) for loop in statements_of(body, For)]
    return bool(counts) and all(count is not None and count <= MOST_APART for count in counts)


def _is_small(buffer: Buffer) -> bool:
    shape = constant_shape(buffer)
    is_plain = buffer.dtype.lanes == 1 and not buffer.volatile and buffer.scope in ("global", "local")
    return is_plain and shape is not None and 0 < prod(shape) <= _MOST_ELEMENTS


def _mentions(stmt: Stmt) -> Iterator[tuple[Buffer, Node]]:
    """The buffers that a statement mentions itself, and what does."""
    for node in walk(stmt):
        for name in node.USES:
            if isinstance(buffer := getattr(node, name), Buffer):
                yield buffer, node


def _place(node: Node) -> int | None:
    """Which element of a buffer an access is at; None where that is not known, or where it is something else."""
    if not isinstance(node, Load | Store):
        return None
    place = 0
    for index, extent in zip(node.indices, node.buffer.shape, strict=True):
        assert isinstance(extent, IntImm)
        if not isinstance(index, IntImm) or not 0 <= index.value < extent.value:
            return None
        place = place * extent.value + index.value
    return place
