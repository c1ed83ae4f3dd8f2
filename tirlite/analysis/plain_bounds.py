"""Tells of most functions at a glance that all their accesses lie in bounds: at constants and variables of loops."""

from __future__ import annotations

from tirlite.ir import (
    Allocate,
    AttrKey,
    AttrStmt,
    Buffer,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Node,
    PrimFunc,
    Store,
    Var,
    View,
    walk,
)

# What most programs are made of, and what no access stands below.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var, Allocate))


def is_plainly_inside(func: PrimFunc) -> bool:
    """Whether each index of a function in normal form is a constant below a constant, or counts up to its extent.

    False where it takes more than a look, where an author makes a view or leaves checks out, and where nothing is seen
    to give an allocation that is read a first value.
    """
    ends: dict[Var, tuple[Expr, ...]] = {}
    loaded: set[Buffer] = set()
    stored: set[Buffer | Var] = {*func.params}
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, (Load, Store)):
            shape = node.buffer.shape
            for axis, index in enumerate(node.indices):
                if not _is_inside(index, shape[axis], ends):
                    return False
            if isinstance(node, Load):
                loaded.add(node.buffer)
            else:
                if node.buffer not in stored and not _loads(node.value, node.buffer):
                    stored.add(node.buffer)
                if type(node.value) not in _ATOMS:
                    stack.append(node.value)
            continue
        stack += [each for each in node.children() if type(each) not in _ATOMS]
        if isinstance(node, For):
            if node.step > 0 and isinstance(node.start, IntImm) and node.start.value >= 0:
                ends[node.var] = (node.stop,)
        elif (isinstance(node, View) and not node.fresh) or _says_unchecked(node):
            return False
    return loaded <= stored


def _loads(value: Expr, buffer: Buffer) -> bool:
    """Whether a value takes part of what is stored in `buffer`: then a store of it there gives no first value."""
    return type(value) not in _ATOMS and any(type(each) is Load and each.buffer is buffer for each in walk(value))


def _says_unchecked(node: Node) -> bool:
    return isinstance(node, AttrStmt) and node.key is AttrKey.UNCHECKED


def _is_inside(index: Expr, extent: Expr, ends: dict[Var, tuple[Expr, ...]]) -> bool:
    if type(index) is IntImm:
        if type(extent) is IntImm:
            return 0 <= index.value < extent.value
        return type(extent) is Var and extent.dim is not None and 0 <= index.value < extent.dim.min
    for stop in ends.get(index, ()) if type(index) is Var else ():
        if stop is extent or (type(stop) is IntImm and type(extent) is IntImm and stop.value <= extent.value):
            return True
    return False
