"""Finds how functions use the buffers among their parameters: what a caller must know of a call.

A buffer that a function only updates, so that whatever it stores there depends on what it has read there before, has
values there only if it had some before the function, or the allocation, began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tirlite.ir.expr import Binary, Buffer, BufferRef, Call, Cast, Expr, FloatImm, IntImm, Load, StringImm, Unary, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall, closure_of
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Store, View
from tirlite.ir.walk import loads_in, statements_of, walk


class Use:
    """What may happen to a buffer, as bits of an int. Opaque: its address goes to code that is not known.

    To add to a Flag takes a microsecond, and to make the class of one as long as to load a module.
    """

    NONE, READ, WRITE, OPAQUE = 0, 1, 2, 4


_ANY = Use.READ | Use.WRITE | Use.OPAQUE

# The nodes that may mention a buffer.
_MENTIONS: frozenset[type[Node]] = frozenset((Store, Load, BufferRef, KernelCall, Call))
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))


def uses_of(func: Function) -> Mapping[Buffer, int]:
    """How a function uses each of its buffers: itself, through views, and through functions that it calls.

    It is looked at once: a network's `main` is asked for its callees again after each pass.
    """
    if func.known_uses is None:
        for each in closure_of(func):
            if each.known_uses is None:
                object.__setattr__(each, "known_uses", _uses(each))
    assert func.known_uses is not None
    return func.known_uses


def _uses(func: Function) -> dict[Buffer, int]:
    roots = {param: param for param in func.arrays}
    uses = dict.fromkeys(roots, Use.NONE)
    for view in statements_of(func.body, View):
        if view.source in roots:
            roots[view.buffer] = roots[view.source]
    told: set[Node] = set()
    loaded: set[Buffer] = set()
    stored: set[Buffer] = set()
    found: list[tuple[Buffer, int]] = []
    # Most nodes that mention a buffer are one of two.
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if isinstance(node, Binary):
            stack += (node.b, node.a)
            continue
        if kind is Load and node not in told:
            loaded.add(node.buffer)  # type: ignore[attr-defined]
        elif kind is Store:
            stored.add(node.buffer)  # type: ignore[attr-defined]
        elif kind in _MENTIONS and node not in told:
            found += [(buffer, use) for buffer, use, _ in _told(node, told)]
        stack += node.children()[::-1]
    found += [(buffer, Use.READ) for buffer in loaded] + [(buffer, Use.WRITE) for buffer in stored]
    for buffer, use in found:
        if buffer in roots:
            uses[roots[buffer]] |= use
    return uses


def touched(root: Node) -> Iterator[tuple[Buffer, int, Node]]:
    """Each use of a buffer below a node, how it is used, and the node that mentions it, as often as it stands."""
    told: set[Node] = set()  # mentions of buffers that a node around them has accounted for
    for node in walk(root):
        if type(node) in _MENTIONS and node not in told:
            yield from _told(node, told)


def _told(node: Node, told: set[Node]) -> Iterator[tuple[Buffer, int, Node]]:
    """As `_touched`; `told` gets the mentions that the node accounts for."""
    for buffer, use, mention in _touched(node):
        if mention is not node:
            told.add(mention)
        yield buffer, use, mention


def _touched(node: Node) -> Iterator[tuple[Buffer, int, Node]]:
    """Each buffer that a node uses, how, and the node that mentions it."""
    if isinstance(node, Store):
        yield node.buffer, Use.WRITE, node
    elif isinstance(node, Load):
        yield node.buffer, Use.READ, node
    elif isinstance(node, BufferRef):
        yield node.buffer, _ANY, node
    elif isinstance(node, KernelCall):
        for param, arg in zip(node.callee.params, node.args, strict=True):
            if isinstance(param, Buffer) and isinstance(arg, BufferRef):
                yield arg.buffer, uses_of(node.callee)[param], arg
    elif isinstance(node, Call) and node.op in (Op.ADDRESS_OF, Op.ACCESS_PTR):
        place, mask = node.args[0], node.args[-1]
        is_read = isinstance(mask, StringImm) and mask.value == "r"
        if isinstance(place, Load | BufferRef):
            yield place.buffer, Use.READ | Use.OPAQUE if is_read else _ANY, place


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
            others |= {roots.get(each.buffer, each.buffer) for each in loads_in(node)}
    return updated - others


def used(value: Expr) -> Iterator[Expr]:
    """The parts of a value without which there is none."""
    stack = [value]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Binary | Unary | Cast) or (isinstance(node, Call) and node.op.is_math):
            stack += node.children()


def written_params(func: PrimFunc) -> tuple[Buffer, ...]:
    """The arrays among the parameters that are stored to, here or in callees, or whose address is handed on.

    An `access_ptr` with the mask "r" does not count.
    """
    uses = uses_of(func)
    return tuple(param for param, use in uses.items() if use & Use.WRITE or param in func.outputs)


def unfit_to_omit(func: PrimFunc) -> tuple[Buffer, ...]:
    """The outputs that have no value if the caller gives them none: a function only updates them."""
    updated = only_updated(func)
    return tuple(output for output in func.outputs if output in updated)
