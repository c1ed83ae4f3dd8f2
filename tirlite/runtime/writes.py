"""A function in, the parameters that it may write out."""

from __future__ import annotations

from tirlite.ir import Buffer, BufferRef, Call, Load, Op, PrimFunc, Store, StringImm, View, walk


def written_params(func: PrimFunc) -> tuple[Buffer, ...]:
    """The arrays among the parameters that are stored to, through views too, or whose address an extern function gets.

    An `access_ptr` with the mask "r" does not count.
    """
    roots: dict[Buffer, Buffer] = {param: param for param in func.params if isinstance(param, Buffer)}
    written: dict[Buffer, None] = dict.fromkeys(func.outputs)
    reads: set[BufferRef] = set()
    for node in walk(func.body):
        if isinstance(node, View):
            if node.source in roots:
                roots[node.buffer] = roots[node.source]
        elif isinstance(node, Store):
            if node.buffer in roots:
                written[roots[node.buffer]] = None
        elif isinstance(node, Call):
            reads.update(_read_only(node))
            element = node.args[0] if node.op is Op.ADDRESS_OF else None
            if isinstance(element, Load) and element.buffer in roots:
                written[roots[element.buffer]] = None
        elif isinstance(node, BufferRef) and node not in reads and node.buffer in roots:
            written[roots[node.buffer]] = None
    return tuple(param for param in func.params if isinstance(param, Buffer) and param in written)


def _read_only(call: Call) -> list[BufferRef]:
    """The mention of a buffer in an access_ptr that says that it reads alone."""
    if call.op is not Op.ACCESS_PTR:
        return []
    mention, mask = call.args[0], call.args[3]
    is_read = isinstance(mask, StringImm) and mask.value == "r"
    return [mention] if is_read and isinstance(mention, BufferRef) else []
