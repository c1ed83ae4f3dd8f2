"""Two bodies of one loop, out of two loops in a row, in; whether the one loop does the same as the two did, out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.dependence import find_reversal
from tirlite.analysis.facts import Facts
from tirlite.ir import (
    Allocate,
    Assert,
    AttrKey,
    AttrStmt,
    Buffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    KernelCall,
    Let,
    Load,
    Node,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    Var,
    View,
    statements,
    walk,
)
from tirlite.ir.shape_loads import is_sized_by_load

# Pairs of accesses that are compared for one pair of loops.
_MOST_PAIRS = 1024


class Fusion:
    """Answers for the loops of one function."""

    def __init__(self, facts: Facts) -> None:
        self._func = facts.func
        self._definitions = facts.definitions

    def root(self, buffer: Buffer) -> Buffer:
        """The buffer whose storage this one lies in."""
        return self._definitions.root(buffer)

    def keeps_order(self, fused: For, count: int, around: Sequence[For | Let] = ()) -> bool:
        """Whether what the first `count` statements of the body do comes before what the others do to the same byte.

        That is over all iterations of `fused`: then it does the same as a loop over the former and one over the latter.
        `around` are loops and lets in force around it, the outermost first; what is left out is taken as unknown.
        """
        mine, others = _nodes(fused.body.stmts[:count]), _nodes(fused.body.stmts[count:])
        alone = None if mine & others else self._alone(fused, around)
        if alone is None:
            return False
        facts = Facts(alone)
        for allocation in facts.sequence.params:
            pairs = list(_conflicts(allocation, mine, others, facts.addresses))
            if len(pairs) > _MOST_PAIRS:
                return False
            if any(find_reversal(facts.addresses, a, b, _body_around(fused, a)) is not None for a, b in pairs):
                return False
        return True

    def _alone(self, loop: For, around: Sequence[For | Let]) -> PrimFunc | None:
        """The loop as a function, with buffers from outside as parameters; None where their shapes are not known."""
        declared = {node.buffer for node in statements(loop) if isinstance(node, Allocate | View)}
        views: dict[Buffer, View] = {}
        roots = dict.fromkeys(each for each in self._func.params if isinstance(each, Buffer))
        for buffer in self._used(loop, declared):
            views |= {view.buffer: view for view in reversed(self._definitions.path(buffer))}
            roots[self.root(buffer)] = None
        # What was declared anew when a loop around it was fused has that loop's variable in its shape: where it lies
        # was not looked at.
        known: set[object] = {*self._func.dims, *self._func.params}
        if not all(_is_over(extent, known) for root in roots for extent in root.shape):
            return None
        scalars = tuple(each for each in self._func.params if not isinstance(each, Buffer))
        body = SeqStmt((*views.values(), loop))
        for each in reversed(around):
            body = SeqStmt((each, body)) if isinstance(each, Let) else SeqStmt((each.replaced(body=body),))
        return PrimFunc(self._func.name, (*scalars, *roots), body)

    def _used(self, loop: For, declared: set[Buffer]) -> Iterator[Buffer]:
        """The buffers from outside that a loop uses, itself or by a view."""
        for node in walk(loop):
            buffer = node.buffer if isinstance(node, Load | Store) else node.source if isinstance(node, View) else None
            if buffer is not None and buffer not in declared:
                yield buffer


def _is_over(extent: Expr, known: set[object]) -> bool:
    return all(node in known if isinstance(node, Var) else not isinstance(node, Load) for node in walk(extent))


def _body_around(loop: For, touch: Touch) -> Region:
    """The body in which a loop around a touch stands."""
    region = touch.region
    while region.composite is not loop:
        assert region.parent is not None
        region = region.parent
    assert region.parent is not None
    return region.parent


def can_be_reordered(stmt: Stmt) -> bool:
    """Whether a statement only loads and stores, at places that can be told."""
    for node in walk(stmt):
        if isinstance(node, Evaluate | Assert | KernelCall):
            return False
        if isinstance(node, AttrStmt) and node.key is not AttrKey.PRAGMA:
            return False
        if isinstance(node, Allocate | View) and is_sized_by_load(node.buffer):
            return False  # no walk over the statement comes by these loads
        if isinstance(node, For) and node.kind is ForKind.THREAD:
            return False
        if isinstance(node, Load | Store) and node.buffer.volatile:
            return False
    return True


def _nodes(stmts: Iterable[Stmt]) -> set[Node]:
    return {node for stmt in stmts for node in walk(stmt) if isinstance(node, Load | Store)}


def _conflicts(
    allocation: Allocation, mine: set[Node], others: set[Node], addresses: Addresses
) -> Iterator[tuple[Touch, Touch]]:
    """The pairs that touch the same byte perhaps, one of them writing; of pairs that are alike, one."""
    first = _distinct([touch for touch in allocation.touches if touch.node in mine], addresses)
    second = _distinct([touch for touch in allocation.touches if touch.node in others], addresses)
    for a in first:
        for b in second:
            if AccessKind.WRITE in (a.kind, b.kind):
                yield a, b


def _distinct(touches: Iterable[Touch], addresses: Addresses) -> list[Touch]:
    found: dict[object, Touch] = {}
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        found.setdefault((touch.kind, touch.region, addresses.of(touch.node).key), touch)
    return list(found.values())
