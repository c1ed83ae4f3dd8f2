"""Finds the parameters whose bytes a function uses as a whole, so that they have to be dense."""

from __future__ import annotations

from tirlite.ir import Buffer, BufferRef, Call, Function, Load, Op, View, walk


def dense_params(func: Function) -> frozenset[Buffer]:
    """Arrays that are viewed, handed to calls, or whose elements' addresses are taken; and those of vector elements."""
    found: set[Buffer] = set()
    for node in walk(func.body):
        if isinstance(node, View):
            found.add(node.source)
        elif isinstance(node, BufferRef):
            found.add(node.buffer)
        elif isinstance(node, Call) and node.op is Op.ADDRESS_OF and isinstance(node.args[0], Load):
            found.add(node.args[0].buffer)
    arrays = [param for param in func.params if isinstance(param, Buffer)]
    return frozenset(param for param in arrays if param in found or param.dtype.lanes > 1 or param.strides)
