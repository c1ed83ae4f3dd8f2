"""Finds two iterations of a parallel or vectorized loop that touch the same element, at least one of them writing it.

Where dependences do not rule it out it is found by trying: at some sizes that the facts of the dims allow, and in some
iterations of the loops, what is accessed is computed, and compared, in functions that are called too. So what is
reported does happen. What depends on memory other than local counters (integers alone in their buffer, touched by
nothing but loads and stores), or on a condition that does, is left out, and what happens only at other sizes is not
seen: the interpreter looks at all iterations of the call that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tirlite.analysis.facts import INDEPENDENT, Facts, of_facts
from tirlite.analysis.trials.points import (
    Array,
    Cell,
    Points,
    TrialAccess,
    access_at,
    constant,
    meeting,
    one_point,
    sizes_from,
    trial_value,
)
from tirlite.diag import Span
from tirlite.ir.expr import And, Buffer, Call, Load, Or, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall
from tirlite.ir.op import Op
from tirlite.ir.shapes import has_one_element
from tirlite.ir.stmt import Allocate, Assert, AttrStmt, For, IfThenElse, Let, SeqStmt, Stmt, Store, View, While
from tirlite.ir.walk import aliased_in, allocated_in, own_exprs, statements, statements_of
from tirlite.record import record
from tirlite.sizes import Dim

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

    buffer: Buffer
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
    sources = {stmt.buffer: stmt.source for stmt in statements_of(func.body, View)}
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
    if not all(_is_possible(param, start) for param in func.arrays):
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
        self.private = allocated_in(loop.body)
        self.touched: dict[Buffer, list[TrialAccess]] = {}
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
    stack = [*own_exprs(stmt)]
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


def _told(access: TrialAccess, place: int) -> RacingAccess:
    """An access at one of its points."""
    points, node = access.points, access.node
    indices = [trial_value(index, points.values) for index in node.indices]
    numbers = [str(int(points.spread(each)[place].min())) for each in indices if each is not None]
    element = node.buffer.name + (f"[{', '.join(numbers)}]" if numbers else "")
    return RacingAccess(node.buffer, element, isinstance(node, Store), int(points.iteration[place]), access.span)


_POINTS = 8192
_STATEMENTS = 20_000


@record(frozen=False, eq=False)
class _Cursor:
    """How far a run has got in a body; at its end, `loop` may run it `rounds` times more."""

    stmts: tuple[Stmt, ...]
    points: Points
    at: int = 0
    loop: While | None = None
    rounds: int = 0


class TrialRun:
    """Runs the statements of a body at some points. `sources` are those of the views around and inside of it.

    `allocated` grows by what functions that are called allocate.
    """

    def __init__(self, sources: dict[Buffer, Buffer]) -> None:
        self.sources = sources
        self.allocated: set[Buffer] = set()
        self.left = _STATEMENTS
        self._cells: set[Buffer] = set()
        self._stored: dict[Stmt, set[Buffer]] = {}

    def follow_counters(self, body: SeqStmt) -> None:
        """Take note of the local counters in a body."""
        found = {each.buffer for each in statements_of(body, Allocate) if _is_counter(each.buffer)}
        self._cells |= found and found - aliased_in(body)

    def steps(self, body: SeqStmt, start: Points, most: int, *, calls: bool = False) -> Iterator[tuple[Stmt, Points]]:
        """Each statement that is run for sure, with the points that run it, before what it declares.

        Of each loop `most` iterations are taken. With `calls` those of functions that are called are among them.
        """
        stack = [_Cursor(body.stmts, start)]
        while stack and self.left:
            cursor = stack[-1]
            if cursor.at == len(cursor.stmts):
                stack.pop()
                if cursor.loop is not None and cursor.rounds:
                    yield cursor.loop, cursor.points
                    stack += self._round(cursor.loop, cursor.points, cursor.rounds - 1)
                continue
            self.left -= 1
            stmt, points = cursor.stmts[cursor.at], cursor.points
            cursor.at += 1
            yield stmt, points
            inner = self._inside(stmt, points, most, calls=calls)
            cursor.points = self._behind(stmt, points)
            stack += inner

    def root(self, buffer: Buffer) -> Buffer:
        """The buffer whose storage this one lies in, as far as it is known here."""
        while buffer in self.sources:
            buffer = self.sources[buffer]
        return buffer

    def _behind(self, stmt: Stmt, points: Points) -> Points:
        """The points that run what follows."""
        if isinstance(stmt, Let):
            points.declare(stmt.var, stmt.value)
        elif isinstance(stmt, View):
            self._place(stmt, points)
        elif isinstance(stmt, Assert) and (holds := trial_value(stmt.condition, points.values)) is not None:
            return points.where(holds)
        elif isinstance(stmt, Store) and stmt.buffer in self._cells:
            # What was run before is told with the values that it saw.
            points = self._apart(points)
            points.declare(Cell(stmt.buffer), stmt.value)
        elif isinstance(stmt, Allocate) and stmt.buffer in self._cells:
            points.values.pop(Cell(stmt.buffer), None)
        elif isinstance(stmt, For | While | IfThenElse | AttrStmt) and self._cells:
            self._forget(stmt, points)
        return points

    def _place(self, view: View, points: Points) -> None:
        """Notes where a view begins in its allocation, if that is known."""
        offset, base = trial_value(view.byte_offset, points.values), self._start(view.source, points)
        if offset is not None and base is not None:
            points.values[view.buffer] = base + offset
        else:
            points.values.pop(view.buffer, None)

    def _start(self, buffer: Buffer, points: Points) -> Array | None:
        """The byte of its allocation where a buffer begins."""
        return points.values.get(buffer) if buffer in self.sources else constant(0)

    def _forget(self, stmt: Stmt, points: Points) -> None:
        """Drop the values of counters that a statement may store to."""
        if stmt not in self._stored:
            inside = list(statements(stmt))
            self.left = max(0, self.left - len(inside))
            self._stored[stmt] = {each.buffer for each in inside if isinstance(each, Store)} & self._cells
        for buffer in self._stored[stmt]:
            points.values.pop(Cell(buffer), None)

    def _inside(self, stmt: Stmt, points: Points, most: int, *, calls: bool) -> list[_Cursor]:
        """What runs inside of a statement, the last first."""
        found: list[_Cursor] = []
        if isinstance(stmt, AttrStmt):
            found.append(_Cursor(stmt.body.stmts, self._apart(points)))
        elif isinstance(stmt, For):
            inner = points.iterations(stmt, max(1, min(most, _POINTS // max(1, points.count))))
            if inner is not None:
                inner = self._apart(inner)
                if self._cells:
                    self._forget(stmt, inner)
                found.append(_Cursor(stmt.body.stmts, inner))
        elif isinstance(stmt, While):
            found += self._round(stmt, points, most)
        elif isinstance(stmt, IfThenElse):
            holds = trial_value(stmt.condition, points.values)
            if holds is not None:
                found.append(_Cursor(stmt.else_body.stmts, self._apart(points.where(~holds))))
                found.append(_Cursor(stmt.then_body.stmts, self._apart(points.where(holds))))
        elif isinstance(stmt, KernelCall) and calls:
            entered = self._entered(stmt, points)
            if entered is not None:
                found.append(_Cursor(stmt.callee.body.stmts, entered))
        return [each for each in found if each.points.count]

    def _round(self, loop: While, points: Points, rounds: int) -> list[_Cursor]:
        holds = trial_value(loop.condition, points.values)
        if holds is None:
            return []
        # What is declared inside has another value in each round.
        inner = points.where(holds).apart()
        return [_Cursor(loop.body.stmts, inner, 0, loop, rounds)] if inner.count else []

    def _apart(self, points: Points) -> Points:
        """The same points; what a body stores to counters is none of those of others."""
        return points.apart() if self._cells else points

    def _entered(self, call: KernelCall, points: Points) -> Points | None:
        """The points at which the body of a callee runs, as it sees them; None where what it is given is not known."""
        callee, given = call.callee, dict(call.buffers())
        inner = Points(points.count, {}, points.context, points.iteration)
        for var, value in call.scalars():
            if (known := trial_value(value, points.values)) is not None:
                inner.values[var] = known
        for dim, extent in callee.dims_at(given).items():
            found = trial_value(extent, points.values)
            if found is None:
                return None
            inner.values[dim] = found
            if dim.dim is not None:
                inner = inner.where(_allowed(dim.dim, found))
        for param, buffer in given.items():
            for declared, given_extent in zip(param.shape, buffer.shape, strict=True):
                wanted, length = trial_value(declared, inner.values), trial_value(given_extent, points.values)
                if wanted is None or length is None or (len(length) > 1 and inner.count != points.count):
                    return None
                inner = inner.where(wanted == length)
        if inner.count != points.count:
            # The call fails at the others, and with it all that would run beside.
            return None
        self._bind(callee, given, points, inner)
        return inner

    def _bind(self, callee: Function, given: dict[Buffer, Buffer], points: Points, inner: Points) -> None:
        """Let the parameters of a callee be windows on what it is given."""
        roots = {param: self.root(buffer) for param, buffer in given.items()}
        for param, buffer in given.items():
            if (start := self._start(buffer, points)) is not None:
                inner.values[param] = start
        self.sources.update(roots)
        for stmt in statements(callee.body):
            if isinstance(stmt, View):
                self.sources[stmt.buffer] = stmt.source
            elif isinstance(stmt, Allocate):
                self.allocated.add(stmt.buffer)
        self.follow_counters(callee.body)


def _is_counter(buffer: Buffer) -> bool:
    return has_one_element(buffer) and buffer.dtype.is_integer and buffer.dtype.lanes == 1 and not buffer.volatile


def _allowed(facts: Dim, extent: Array) -> Array:
    """Where an extent is one that a dim may have; that it is at least 1 is no more than a guess."""
    fits: Array = (extent % facts.multiple_of == 0) & (extent >= (facts.min if facts.min > 1 else 0))
    if facts.max is not None:
        fits = fits & (extent <= np.int64(facts.max))
    return fits
