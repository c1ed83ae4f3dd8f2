"""Finds two iterations of a parallel or vectorized loop that touch the same element, at least one of them writing it.

Where dependences do not rule it out it is found by trying: at some sizes that the facts of the dims allow, and in some
iterations of the loops, what is accessed is computed, and compared, in functions that are called too. So what is
reported does happen. What depends on memory other than local counters, or on a condition that does, is left out, and
what happens only at other sizes is not seen: the interpreter looks at all iterations of the call that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tirlite.analysis.facts import INDEPENDENT, Facts, of_facts
from tirlite.analysis.trials.points import Access, Points, access_at, meeting, one_point, sizes_from, trial_value
from tirlite.analysis.trials.run import TrialRun
from tirlite.diag import Span
from tirlite.ir import (
    Allocate,
    And,
    Buffer,
    Call,
    Expr,
    For,
    Load,
    Node,
    Op,
    Or,
    PrimFunc,
    Stmt,
    Store,
    Var,
    View,
    statements,
)
from tirlite.record import record

# How many iterations are tried: of the loop that is looked at, of each loop inside it, and of those around it.
_ITERATIONS = 130
_INSIDE = 16
_AROUND = 2
_ACCESSES = 400
# The sizes that are tried: the first dim is at least so large, each further one larger by one, as far as facts allow.
_SIZES = (66, 4)


@record
class RacingAccess:
    """One of two accesses that meet: its iteration, by the loop's variable, and the element as text."""

    element: str
    is_write: bool
    iteration: int
    span: Span | None


@record
class Race:
    """Two accesses of one element in two iterations of `loop`, the first of them a write; `sizes` is where."""

    loop: For
    first: RacingAccess
    second: RacingAccess
    sizes: tuple[tuple[str, int], ...]


@of_facts
def find_race(facts: Facts) -> Race | None:
    """The first race that is found in a function in normal form (see `Normalize`)."""
    func = facts.func
    doubtful = {*facts.doubtful_loops}
    if not doubtful:
        return None
    sources = {stmt.buffer: stmt.source for stmt in statements(func.body) if isinstance(stmt, View)}
    with np.errstate(all="ignore"):
        for least in _SIZES:
            found = _race_at(func, least, doubtful, sources)
            if found is not None:
                # The smallest sizes show it best.
                smaller = (_race_at(func, size, {found.loop}, sources) for size in range(1, least))
                return next(filter(None, smaller), found)
    return None


def _race_at(func: PrimFunc, least: int, doubtful: set[For], sources: dict[Buffer, Buffer]) -> Race | None:
    """The first race in one of some loops at the sizes that begin at `least`."""
    values = sizes_from(func.dims, least)
    values |= {param: 2 for param in func.params if isinstance(param, Var) and param.dtype.is_integer}
    sizes = tuple((var.name, value) for var, value in values.items())
    start = one_point(values)
    if not all(_is_possible(param, start) for param in func.params if isinstance(param, Buffer)):
        return None
    for loop, points in _loops(func, start, sources):
        if loop in doubtful and (race := _Trial(loop, sources).race(points)) is not None:
            return Race(loop, *race, sizes)
    return None


def _is_possible(param: Buffer, start: Points) -> bool:
    """Whether no extent is known to be negative."""
    found = [trial_value(extent, start.values) for extent in param.shape]
    return all(extent is None or extent[0, 0] >= 0 for extent in found)


def _loops(func: PrimFunc, start: Points, sources: dict[Buffer, Buffer]) -> Iterator[tuple[For, Points]]:
    """Such loops, and iterations of each. Those of functions that are called are looked at there."""
    for stmt, points in TrialRun(sources).steps(func.body, start, _AROUND):
        if isinstance(stmt, For) and stmt.kind in INDEPENDENT:
            inside = points.as_contexts().iterations(stmt, _ITERATIONS)
            if inside is not None and inside.count:
                yield stmt, inside.as_iteration(stmt.var)


class _Trial:
    """The body of one parallel loop, run at some points."""

    def __init__(self, loop: For, sources: Mapping[Buffer, Buffer]) -> None:
        self.loop = loop
        # Calls add to it.
        self.run = TrialRun(dict(sources))
        self.private = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Allocate)}
        self.touched: dict[Buffer, list[Access]] = {}
        self.count = 0

    def race(self, start: Points) -> tuple[RacingAccess, RacingAccess] | None:
        self.run.follow_counters(self.loop.body)
        for stmt, points in self.run.steps(self.loop.body, start, _INSIDE, calls=True):
            for node in _sure_accesses(stmt):
                self.touch(node, stmt.span, points)
            if self.count > _ACCESSES:
                break
        for accesses in self.touched.values():
            if any(isinstance(access.node, Store) for access in accesses):
                found = meeting(accesses)
                if found is not None:
                    return _told(*found[0]), _told(*found[1])
        return None

    def touch(self, node: Load | Store, span: Span | None, points: Points) -> None:
        root = self.run.root(node.buffer)
        if root in self.private or root in self.run.allocated:
            return
        self.count += 1
        is_placed = node.buffer not in self.run.sources or node.buffer in points.values
        access = access_at(node, span, points) if is_placed else None
        if access is not None and access.points.count:
            self.touched.setdefault(root, []).append(access)


def _sure_accesses(stmt: Stmt) -> Iterator[Load | Store]:
    """The accesses that a statement makes whatever is in memory, those of a body not included."""
    if isinstance(stmt, Store):
        yield stmt
    stack: list[Node] = [child for child in stmt.children() if isinstance(child, Expr)]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or):
            stack.append(node.a)
        elif isinstance(node, Call) and node.op is Op.IF_THEN_ELSE:
            stack.append(node.args[0])
        elif not (isinstance(node, Call) and node.op is Op.ADDRESS_OF):
            stack += reversed(node.children())
        if isinstance(node, Load):
            yield node


def _told(access: Access, place: int) -> RacingAccess:
    """An access at one of its points."""
    points, node = access.points, access.node
    indices = [trial_value(index, points.values) for index in node.indices]
    numbers = [str(int(points.spread(each)[place].min())) for each in indices if each is not None]
    element = node.buffer.name + (f"[{', '.join(numbers)}]" if numbers else "")
    return RacingAccess(element, isinstance(node, Store), int(points.iteration[place]), access.span)
