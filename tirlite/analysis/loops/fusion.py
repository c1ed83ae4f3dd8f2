"""Decides whether two consecutive loops may be fused into one."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import Alignment, Dependence, Pair, distinct, writes
from tirlite.analysis.regions import regions_around
from tirlite.ir.expr import Load
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.shapes import is_sized_by_load
from tirlite.ir.stmt import Allocate, Assert, AttrKey, AttrStmt, Evaluate, For, ForKind, Stmt, Store, View
from tirlite.ir.walk import walk

# Pairs of accesses that are compared for one pair of loops.
_MOST_PAIRS = 1024


def against(facts: Facts, first: For, second: For, shift: int) -> Iterator[Dependence | None]:
    """The dependences that forbid one loop which runs the second loop `shift` iterations behind the first.

    None stands for an unknown one: the loops cannot be aligned, or there are too many pairs of accesses.
    """
    mine, others = (facts.touches_in.get(loop, {}) for loop in (first, second))
    addresses, aligned = facts.addresses, None
    for allocation in (each for each in mine if each in others):
        ones, thens = distinct(mine[allocation], addresses), distinct(others[allocation], addresses)
        pairs = [(a, b) for a in ones for b in thens if writes(a) or writes(b)]
        if not pairs:
            continue
        aligned = aligned or Alignment.of(facts.space, first, second, shift)
        if aligned is None or len(pairs) > _MOST_PAIRS:
            yield None
            return
        home = next(each.parent for each in regions_around(ones[0].region) if each.composite is first)
        assert home is not None
        for a, b in pairs:
            yield from Pair(addresses, a, b, home, aligned).dependences(b)


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
