"""A function in, two iterations of a parallel loop that touch the same element out, at least one of them writing it.

Found by trying: at some sizes that the facts of the dims allow, and in some iterations of the loops, what is accessed
is computed, and compared. So what is reported does happen. What depends on memory, or on a condition that does, is left
out, and what happens only at other sizes is not seen: the interpreter looks at all iterations of the call that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tirlite.analysis.meeting import Access, access_at, meeting
from tirlite.analysis.trial_points import Points, one_point
from tirlite.analysis.trial_values import constant, trial_value
from tirlite.diag import Span
from tirlite.ir import (
    Allocate,
    And,
    Assert,
    AttrStmt,
    Buffer,
    Call,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Load,
    Node,
    Op,
    Or,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    Var,
    View,
    statements,
)
from tirlite.record import record
from tirlite.sizes import Dim

# How many iterations are tried: of the loop that is looked at, of each loop inside it, and of those around it.
_ITERATIONS = 130
_INSIDE = 16
_AROUND = 2
_POINTS = 8192
_ACCESSES = 400
_STATEMENTS = 20_000
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


def find_race(func: PrimFunc) -> Race | None:
    """The first race that is found; `func` is in normal form (see `Normalize`)."""
    if not any(isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL for stmt in statements(func.body)):
        return None
    sources = {stmt.buffer: stmt.source for stmt in statements(func.body) if isinstance(stmt, View)}
    with np.errstate(all="ignore"):
        for least in _SIZES:
            values = _values_for(func, least)
            sizes = tuple((var.name, value) for var, value in values.items())
            start = one_point(values)
            if not all(_is_possible(param, start) for param in func.params if isinstance(param, Buffer)):
                continue
            for loop, points in _Search(sources).loops(func.body, start):
                if (race := _Trial(loop, sources).race(points)) is not None:
                    return Race(loop, *race, sizes)
    return None


def _values_for(func: PrimFunc, least: int) -> dict[Var, int]:
    values = {}
    for number, var in enumerate(func.dims):
        dim = var.dim or Dim(var.name, min=0)
        values[var] = dim.nth(max(0, -(-(least + number - dim.low) // dim.multiple_of)))
    for param in func.params:
        if isinstance(param, Var) and param.dtype.is_integer:
            values[param] = 2
    return values


def _is_possible(param: Buffer, start: Points) -> bool:
    """Whether no extent is known to be negative."""
    found = [trial_value(extent, start.values) for extent in param.shape]
    return all(extent is None or extent[0, 0] >= 0 for extent in found)


class _Search:
    """Runs the statements of a body at some points. `sources` are those of the function's views."""

    def __init__(self, sources: Mapping[Buffer, Buffer]) -> None:
        self.sources = sources
        self.left = _STATEMENTS

    def loops(self, body: SeqStmt, start: Points) -> Iterator[tuple[For, Points]]:
        """The parallel loops, and iterations of each."""
        for stmt, points in self.steps(body, start, _AROUND):
            if isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL:
                inside = points.as_contexts().iterations(stmt, _ITERATIONS)
                if inside is not None and inside.count:
                    yield stmt, inside.as_iteration(stmt.var)

    def steps(self, body: SeqStmt, start: Points, most: int) -> Iterator[tuple[Stmt, Points]]:
        """Each statement that is run for sure, with the points that run it, before what it declares."""
        stack: list[tuple[tuple[Stmt, ...], int, Points]] = [(body.stmts, 0, start)]
        while stack and self.left:
            stmts, at, points = stack.pop()
            if at == len(stmts):
                continue
            self.left -= 1
            stmt = stmts[at]
            yield stmt, points
            stack.append((stmts, at + 1, self.behind(stmt, points)))
            stack += [(inner.stmts, 0, those) for inner, those in self.inside(stmt, points, most) if those.count]

    def behind(self, stmt: Stmt, points: Points) -> Points:
        """The points that run what follows."""
        if isinstance(stmt, Let):
            points.declare(stmt.var, stmt.value)
        elif isinstance(stmt, View):
            self.place(stmt, points)
        elif isinstance(stmt, Assert) and (holds := trial_value(stmt.condition, points.values)) is not None:
            return points.where(holds)
        return points

    def place(self, view: View, points: Points) -> None:
        """Notes where a view begins in its allocation, if that is known."""
        offset = trial_value(view.byte_offset, points.values)
        base = points.values.get(view.source) if view.source in self.sources else constant(0)
        if offset is not None and base is not None:
            points.values[view.buffer] = base + offset

    def inside(self, stmt: Stmt, points: Points, most: int) -> Iterator[tuple[SeqStmt, Points]]:
        if isinstance(stmt, AttrStmt):
            yield stmt.body, points
        elif isinstance(stmt, For):
            inner = points.iterations(stmt, max(1, min(most, _POINTS // max(1, points.count))))
            if inner is not None:
                yield stmt.body, inner
        elif isinstance(stmt, IfThenElse) and (holds := trial_value(stmt.condition, points.values)) is not None:
            yield stmt.else_body, points.where(~holds)
            yield stmt.then_body, points.where(holds)


class _Trial:
    """The body of one parallel loop, run at some points."""

    def __init__(self, loop: For, sources: Mapping[Buffer, Buffer]) -> None:
        self.loop = loop
        self.sources = sources
        self.private = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Allocate)}
        self.touched: dict[Buffer, list[Access]] = {}
        self.count = 0

    def race(self, start: Points) -> tuple[RacingAccess, RacingAccess] | None:
        for stmt, points in _Search(self.sources).steps(self.loop.body, start, _INSIDE):
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
        root = node.buffer
        while root in self.sources:
            root = self.sources[root]
        if root in self.private:
            return
        self.count += 1
        is_placed = node.buffer not in self.sources or node.buffer in points.values
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
    element = f"{node.buffer.name}[{', '.join(numbers) or '()'}]"
    return RacingAccess(element, isinstance(node, Store), int(points.iteration[place]), access.span)
