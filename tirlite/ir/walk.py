"""A node in, the nodes below it out, in program order, at any depth."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.ir.node import Node


def walk(root: Node) -> Iterator[Node]:
    """`root` and all nodes below it, each before its children. The shapes of buffers are not entered."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(tuple(node.children())))
