"""Rejects a tree that shares parts so often that walks over it would not end.

Nodes may be shared: `v = v + v`, sixty times, makes sixty nodes, which a walk through the tree visits 2 ** 60 times.
"""

from __future__ import annotations

from tirlite.diag import KernelError, Message, Span
from tirlite.ir.expr import Buffer
from tirlite.ir.node import Node
from tirlite.ir.stmt import Stmt
from tirlite.ir.walk import ALWAYS_FINE
from tirlite.record import record

# The most visits per edge between distinct nodes in a large tree: repeated statements are fine, repeated doubling is
# not.
_MOST_FOR_A_PLACE = 256


class RepeatedParts(Message):
    """The same expressions or statements stand in a function so often that it cannot be gone through.

    Example: `v = v + v`, sixty times in Python, and then `b.store(y, 0, v)`: the expression holds x[0] 2 ** 60 times.
    """

    title = "the same parts stand here again and again: more than {count:,} nodes, only {distinct:,} of them different"
    help = 'bind what is used more than once to a variable, `v = b.let("v", value)`'


def demand_few_repeats(root: Node) -> None:
    """Raises KernelError unless a walk through `root` ends soon.

    Takes time for each distinct node only. A walk need not ask before it has visited `ALWAYS_FINE` nodes.
    """
    found = _too_many(root)
    if found is not None:
        raise KernelError(found)


@record
class _Visit:
    """A node to count, after its parts if these were `pushed`, and the span of the statement around it."""

    node: Node
    span: Span | None
    pushed: bool = False


def _too_many(root: Node) -> Message | None:
    sizes: dict[Node, int] = {}
    places = 0
    stack = [_Visit(root, None)]
    while stack:
        visit = stack.pop()
        node = visit.node
        if node in sizes:
            continue
        parts = _parts(node)
        if visit.pushed or not parts:
            sizes[node] = 1 + sum([sizes[part] for part in parts])
            places += len(parts)
            most = ALWAYS_FINE + _MOST_FOR_A_PLACE * places
            if sizes[node] > most:
                return RepeatedParts(most, len(sizes), span=visit.span)
            continue
        span = node.span if isinstance(node, Stmt) and node.span is not None else visit.span
        stack.append(_Visit(node, span, pushed=True))
        stack += [_Visit(part, span) for part in reversed(parts)]
    return None


def _parts(node: Node) -> tuple[Node, ...]:
    """The children of a node, and the extents of the buffers that it defines."""
    parts = node.children()
    for name in node.DEFINES:
        value = getattr(node, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Buffer):
                parts += each.shape
    return parts
