"""Finds buffers that a function only updates: whatever it stores there depends on what it has read there before.

So an element of such a buffer has no value unless it had one before the function, or the allocation, began.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir import Binary, Buffer, BufferRef, Call, Cast, Expr, Load, PrimFunc, Store, Unary, View, walk


def only_updated(func: PrimFunc) -> set[Buffer]:
    """The parameters and allocations to which all stores are of this kind, and of which no function has the address."""
    roots: dict[Buffer, Buffer] = {}
    updated: set[Buffer] = set()
    others: set[Buffer] = set()
    for node in walk(func.body):
        if isinstance(node, View):
            roots[node.buffer] = roots.get(node.source, node.source)
            others.add(roots[node.buffer])  # other types may be written over it
        elif isinstance(node, BufferRef):
            others.add(roots.get(node.buffer, node.buffer))
        elif isinstance(node, Store):
            buffer = roots.get(node.buffer, node.buffer)
            loads = (each for each in used(node.value) if isinstance(each, Load))
            is_update = any(roots.get(load.buffer, load.buffer) is buffer for load in loads)
            (updated if is_update else others).add(buffer)
        elif isinstance(node, Call) and not node.op.is_math:
            others |= {roots.get(each.buffer, each.buffer) for each in walk(node) if isinstance(each, Load)}
    return updated - others


def used(value: Expr) -> Iterator[Expr]:
    """The parts of a value without which there is none."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Binary | Unary | Cast) or (isinstance(node, Call) and node.op.is_math):
            stack += [child for child in node.children() if isinstance(child, Expr)]
