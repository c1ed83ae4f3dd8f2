"""Follows local integers through a function: the value of each load of one, as a size.

A local that loops count up, halve, or set to their counters is an unknown for each place where its value changes. Ends
of it are guessed from what goes into the loop, and kept if an iteration that begins within them ends within them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from tirlite.analysis.integers.definitions import Loop
from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.integers.guesses import Clock, Guess, Start, Turn, Values, around, narrowed_by
from tirlite.analysis.integers.moves import Bound, Moves, step_of
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Expr, Load
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, View, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import aliased_by, statements, statements_of, walk
from tirlite.record import cached_method, record
from tirlite.sizes import Size, ceildiv, maximum, substitute
from tirlite.sizes.poly import Atom, varies
from tirlite.sizes.unknown import Ends, Unknown, ends, ends_beside, is_positive, unknowns_in

_Side: TypeAlias = tuple[Size, Sequence[Size]]

# Limits the walk: an inner loop is walked again whenever a guess about an outer one was wrong.
_MOST_STEPS = 20_000
# The most facts that are kept about a program point.
_MOST_FACTS = 8
_SERIAL = (ForKind.SERIAL, ForKind.UNROLLED, ForKind.REDUCE)


class Sizes(Protocol):
    """Sizes of expressions."""

    def size(self, expr: Expr) -> Size: ...

    def is_exact(self, value: Size) -> bool: ...


class Space(Sizes, Protocol):
    """Sizes in which loads of locals have the values found so far."""

    extents: Extents

    def implied(self, condition: Expr, *, holds: bool = True) -> Iterable[Size]: ...

    def unknown(self, name: str, low: Size | None, high: Size | None, owner: Loop | None) -> Unknown: ...

    def counter(self, loop: For) -> Unknown: ...

    def mark(self) -> tuple[int, int]: ...

    def forget(self, mark: tuple[int, int]) -> None: ...


@record(eq=False)
class Known:
    """Values of loads of locals; narrower unknowns in branches and loops; expressions that are 0 or more in loops."""

    loaded: dict[Load, Size]
    narrowed: dict[tuple[Stmt, bool], dict[Atom, Size]]
    moved: dict[Loop, list[Size]]


class _TooLong(Exception):
    """The walk exceeded its limit."""


def cells_of(func: PrimFunc) -> frozenset[Buffer]:
    """The locals that can be followed: 64-bit integers without axes, which are loaded and stored alone."""
    allocated = [stmt.buffer for stmt in statements_of(func.body, Allocate)]
    found = [buffer for buffer in allocated if not buffer.shape and buffer.dtype == i64 and not buffer.volatile]
    if not found:
        return frozenset()
    used_otherwise: set[Buffer | None] = set()
    loads: set[Load] = set()
    for node in walk(func.body):
        if isinstance(node, Load) and not node.indices:
            # A load object that occurs twice could have only one of its two values.
            used_otherwise |= {node.buffer} if node in loads else set()
            loads.add(node)
        elif isinstance(node, For) and node.kind is ForKind.THREAD:
            return frozenset()
        else:
            used_otherwise.add(node.buffer if isinstance(node, AttrStmt) else aliased_by(node))
    return frozenset(found) - used_otherwise


def follow(func: PrimFunc, cells: frozenset[Buffer], space: Space, known: Known) -> None:
    """Fills in what is known of `cells`, step by step as `space` needs it for what comes after."""
    mark = space.mark()
    try:
        run(_Walk(cells, space, known).block(func.body, {}))
    except _TooLong:
        space.forget(mark)
        known.loaded.clear()
        known.narrowed.clear()
        known.moved.clear()


def ends_of_variable(loop: For, space: Sizes) -> Ends:
    """The ends of a loop's variable: counted from a start that moves, it stays in front of where the loop stops."""
    first, last = space.size(loop.start), space.size(loop.stop)
    plain = ends(space.size(loop.var))
    if not (varies(first) and space.is_exact(first) and space.is_exact(last)):
        return plain
    low, high = (ends(first)[0], ends(last - 1)[1]) if loop.step > 0 else (ends(last + 1)[0], ends(first)[1])
    return plain[0] if low is None else low, plain[1] if high is None else high


class _Walk:
    def __init__(self, cells: frozenset[Buffer], space: Space, known: Known) -> None:
        self.cells = cells
        self.space = space
        self.known = known
        self.loop: Loop | None = None
        self._left = _MOST_STEPS
        self._wider: dict[Atom, Size] = {}  # for each unknown that a test narrowed, the one before
        self._moves: dict[Loop, Moves] = {}
        self._reached: dict[Size, Ends] = {}  # ends of the variables of loops
        self._facts: list[Size] = []  # expressions that are 0 or more here

    def block(self, stmt: Stmt, values: Values) -> Steps[Values]:
        """The values after a statement, given those in front of it."""
        if isinstance(stmt, SeqStmt):
            for each in stmt.stmts:
                values = yield self.block(each, values)
            return values
        self._left -= 1
        if self._left < 0:
            raise _TooLong
        if isinstance(stmt, For | While):
            values = yield self._loop(stmt, values)
        elif isinstance(stmt, IfThenElse):
            values = yield self._branches(stmt, values)
        elif isinstance(stmt, AttrStmt):
            values = yield self.block(stmt.body, values)
        else:
            self._note(stmt, values)
            if isinstance(stmt, Allocate) and stmt.buffer in self.cells:
                values = {**values, stmt.buffer: self._any(stmt.buffer)}
            elif isinstance(stmt, Store) and stmt.buffer in self.cells:
                values = {**values, stmt.buffer: self._stored_value(stmt)}
        return values

    def _note(self, stmt: Stmt, values: Values) -> None:
        """Records the values of the loads in a statement's expressions."""
        shape = stmt.buffer.shape if isinstance(stmt, Allocate | View) else ()
        for expr in (*shape, *stmt.children()):
            if isinstance(expr, Expr):
                self._note_expr(expr, values)

    def _note_expr(self, expr: Expr, values: Values) -> None:
        for node in walk(expr):
            if isinstance(node, Load) and node.buffer in values:
                self.known.loaded[node] = values[node.buffer]

    def _stored_value(self, stmt: Store) -> Size:
        value = self.space.size(stmt.value)
        if not self.space.is_exact(value):
            return self._any(stmt.buffer)
        if any(not unknown.steady for unknown in unknowns_in(value)):
            return self._between(stmt.buffer, *ends(value))
        return value

    def _any(self, cell: Buffer) -> Size:
        return self._between(cell, None, None)

    def _between(self, cell: Buffer, low: Size | None, high: Size | None) -> Size:
        return self.space.unknown(cell.name, low, high, self.loop) + 0

    def _branches(self, stmt: IfThenElse, values: Values) -> Steps[Values]:
        self._note_expr(stmt.condition, values)
        sides: list[tuple[Values, list[Size]]] = []
        wider: dict[Atom, Size] = {}
        outer = self._facts
        for body, holds in ((stmt.then_body, True), (stmt.else_body, False)):
            inside = self._where(stmt, values, holds=holds)
            changes = self.known.narrowed[stmt, holds]
            wider |= {atom: old + 0 for old, new in reversed(changes.items()) for atom in unknowns_in(new)}
            facts = (*outer, *self.space.implied(stmt.condition, holds=holds))
            self._facts = [substitute(each, changes) for each in facts[-_MOST_FACTS:]]
            behind: Values = yield self.block(body, inside)
            sides.append((behind, self._facts))
            self._facts = outer
        (yes, so), (no, otherwise) = sides
        return {cell: self._joined(cell, (yes[cell], so), (no[cell], otherwise), wider) for cell in values}

    def _where(self, stmt: IfThenElse | While, values: Values, *, holds: bool) -> Values:
        """The values under a condition, with ends narrowed by it."""
        changes: dict[Atom, Size] = {}
        met: set[Atom] = {unknown for value in values.values() for unknown in unknowns_in(value)}
        for plain in self.space.implied(stmt.condition, holds=holds):
            fact = substitute(plain, changes) if changes else plain
            for old, new in narrowed_by(fact, met):
                change: dict[Atom, Size] = {old: new + 0}
                changes = {each: substitute(size, change) for each, size in changes.items()} | change
                self._wider[new] = substitute(old + 0, self._wider)
                fact = substitute(fact, change)
                met.add(new)
        self.known.narrowed[stmt, holds] = changes
        return {cell: substitute(value, changes) for cell, value in values.items()} if changes else values

    def _joined(self, cell: Buffer, yes: _Side, no: _Side, wider: Mapping[Atom, Size]) -> Size:
        """The value after a branch: one of two, each with the expressions that are 0 or more on its side.

        `wider`: the unknowns as they are without the condition.
        """
        (a, so), (b, otherwise) = yes, no
        plain, other = sorted((substitute(each, wider) for each in (a, b)), key=_unknowns)
        if plain == other:
            return plain
        low, high = ends(other - plain)
        if isinstance(low, int) and isinstance(high, int):
            either = plain + self._between(cell, min(low, 0), max(high, 0))
            if self.space.is_exact(either):
                return either
        return self._between(cell, *around(ends_beside(self._ends(a), a, so), ends_beside(self._ends(b), b, otherwise)))

    def _loop(self, loop: Loop, values: Values) -> Steps[Values]:
        self._note(loop, values) if isinstance(loop, For) else None
        moves = self._moves[loop] = self._moves.get(loop) or Moves(loop, self._stored_in(loop))
        cells = [cell for cell in moves.cells if cell in values]
        clock = None
        if isinstance(loop, For):
            self._reached[self.space.size(loop.var)] = ends_of_variable(loop, self.space)
            clock = Clock(None, self.space.counter(loop) + 0, self.space.counter(loop).high) if cells else None
        guesses = {cell: self._first_guess(loop, cell, values[cell], clock) for cell in cells}
        mark = self.space.mark()
        turn: Turn = yield self._settled(loop, values, guesses)
        if isinstance(loop, While):
            clock = self._clock(turn, values)
            guesses = {cell: self._first_guess(loop, cell, values[cell], clock) for cell in cells} if clock else {}
            moving = {cell: each for cell, each in guesses.items() if each.move and turn.guesses[cell].is_open}
            if moving:
                self.space.forget(mark)
                again: Turn = yield self._settled(loop, values, {**turn.guesses, **moving})
                clock = self._clock(again, values)
                if clock is None:
                    self.space.forget(mark)
                    again = yield self._settled(loop, values, turn.guesses)
                turn = again
        bounds = self._bounds_in(loop, turn)
        if bounds:
            self.space.forget(mark)
            plain = {cell: Guess(*self._ends(values[cell])) for cell in bounds}
            turn = yield self._settled(loop, values, {**turn.guesses, **plain}, bounds)
            clock = clock if isinstance(loop, For) else self._clock(turn, values)
        if cells:
            self._record_moves(loop, turn, values, clock)
        after = {**values}
        for cell in cells:
            after[cell] = self._value_after(loop, turn, cell, values, after, clock)
        self._record_directions(loop, turn, values, after)
        return after

    def _bounds_in(self, loop: Loop, turn: Turn) -> dict[Buffer, list[Bound]]:
        """The bounds by other locals of the locals that have an open end."""
        found: dict[Buffer, list[Bound]] = {}
        for bound in self._moves[loop].bounds if _is_serial(loop) else ():
            guess = turn.guesses.get(bound.cell)
            if guess is not None and guess.is_open and bound.cell not in turn.start.derived:
                found.setdefault(bound.cell, []).append(bound)
        return found

    def _ends(self, value: Size) -> Ends:
        return self._reached[value] if value in self._reached else ends(value)

    def _hull(self, a: Size, b: Size) -> Ends:
        """Ends that hold for both."""
        return around(self._ends(a), self._ends(b))

    def _settled(
        self,
        loop: Loop,
        values: Values,
        guesses: dict[Buffer, Guess],
        bounds: Mapping[Buffer, list[Bound]] | None = None,
    ) -> Steps[Turn]:
        """An arbitrary iteration, with guesses weakened until it preserves them."""
        outer, facts = self.loop, self._facts
        while True:
            mark = self.space.mark()
            self.loop = loop
            start = self._started(loop, values, guesses, bounds or {})
            inside = start.values
            if isinstance(loop, While):
                self._note_expr(loop.condition, inside)
                inside = self._where(loop, inside, holds=True)
            behind: Values = yield self.block(loop.body, inside)
            holds, self._facts, self.loop = self._facts, facts, outer
            mended = {cell: self._mended(guess, values[cell], start, behind, cell) for cell, guess in guesses.items()}
            if mended == guesses:
                closed = {cell: guess.closed(self._hull(values[cell], behind[cell])) for cell, guess in guesses.items()}
                if closed == guesses or self._left < _MOST_STEPS // 2:
                    return Turn(guesses, start, inside, behind, holds)
                mended = closed
            guesses = mended
            self.space.forget(mark)

    def _started(
        self, loop: Loop, values: Values, guesses: Mapping[Buffer, Guess], bounds: Mapping[Buffer, list[Bound]]
    ) -> Start:
        """The locals at the start of an iteration: derived from others, bounded by others, or as guessed."""
        start: Values = {}
        held: set[tuple[Buffer, bool]] = set()
        equal = {each.cell: each for each in self._moves[loop].equalities} if _is_serial(loop) else {}
        derived: set[Buffer] = set()
        ticks = self.space.counter(loop) + 0 if isinstance(loop, For) else None
        for cell, guess in sorted(guesses.items(), key=lambda each: (each[0] in equal, each[0] in bounds)):
            value = equal[cell].value(values, start, ticks) if cell in equal else None
            if value is not None and self.space.is_exact(value):
                start[cell] = value
                derived.add(cell)
                continue
            known: dict[bool, Size] = {}
            for bound in bounds.get(cell, ()):
                end = bound.end(values, start, ticks)
                if end is not None and self.space.is_exact(end):
                    known.setdefault(bound.is_up, end)
            low, high = known.get(False, guess.low), known.get(True, guess.high)
            if low is None or high is None:
                low, high, known = guess.low, guess.high, {}
            start[cell] = self._between(cell, low, high)
            held |= {(cell, is_up) for is_up in known}
        return Start({**values, **start}, frozenset(derived), frozenset(held))

    def _clock(self, turn: Turn, values: Values) -> Clock | None:
        """A local that each iteration of a `while` moves one way: its distance bounds the number of iterations."""
        for cell in [cell for cell, guess in turn.guesses.items() if guess.move is None]:
            step = substitute(turn.behind[cell], self._wider) - substitute(turn.inside[cell], self._wider)
            low, high = ends_beside(ends(step), step, [substitute(each, self._wider) for each in turn.holds])
            way = turn.inside[cell] - values[cell]
            if low is not None and is_positive(low):
                last = ends(way)[1]
            elif high is not None and is_positive(-high):
                way, last = -way, ends(-way)[1]
            else:
                continue
            if last is not None:
                return Clock(cell, way, last + 1)  # counts the start at which the condition fails
        return None

    @cached_method
    def _stored_in(self, loop: Loop) -> frozenset[Buffer]:
        """The locals declared outside of a loop that it stores to."""
        found = [*statements(loop.body)]
        own = {each.buffer for each in found if isinstance(each, Allocate)}
        stored = frozenset(each.buffer for each in found if isinstance(each, Store))
        return (stored & self.cells) - own

    def _first_guess(self, loop: Loop, cell: Buffer, entry: Size, clock: Clock | None) -> Guess:
        if isinstance(loop, For) and loop.kind not in _SERIAL:
            return Guess(None, None)
        low, high = self._ends(entry)
        last = None if clock is None or clock.cell is cell else clock.last
        up, down = (0, 0) if last is None else self._steps(loop, cell)
        if last is None or low is None or high is None or (up == 0) == (down == 0):
            return Guess(low, high)
        if up != 0:
            return Guess(low, high + up * maximum(last, 0), up)
        return Guess(low - down * maximum(last, 0), high, down, is_up=False)

    def _steps(self, loop: Loop, cell: Buffer) -> tuple[Size, Size]:
        """The most that one iteration adds to a local and takes from it; 0 if it stores anything but such sums."""
        low, high = self._moves[loop].of({cell: 1})
        if low is not None and high is not None:
            return max(high, 0), max(-low, 0)
        up: Size = 0
        down: Size = 0
        todo: list[tuple[Stmt, Size]] = [(loop.body, 1)]
        while todo:
            stmt, times = todo.pop()
            if isinstance(stmt, Store) and stmt.buffer is cell:
                step = step_of(stmt)
                if step is None:
                    return 0, 0
                up, down = up + times * max(step, 0), down + times * max(-step, 0)
            elif isinstance(stmt, For) and cell in self._stored_in(stmt):
                count = self._count(stmt)
                if count is None:
                    return 0, 0
                todo.append((stmt.body, times * count))
            elif not isinstance(stmt, While):
                todo += [(each, times) for each in stmt.children() if isinstance(each, Stmt)]
            elif cell in self._stored_in(stmt):
                return 0, 0
        return up, down

    def _count(self, loop: For) -> Size | None:
        """The number of iterations, if it is known on entry to the function."""
        start, stop = self.space.extents.size(loop.start), self.space.extents.size(loop.stop)
        if start is None or stop is None:
            return None
        return maximum(ceildiv(loop.distance(start, stop), abs(loop.step)), 0)

    def _mended(self, guess: Guess, entry: Size, start: Start, behind: Values, cell: Buffer) -> Guess:
        if cell in start.derived:
            return guess
        moved = 0 if guess.move is None else substitute(behind[cell], self._wider) - start.values[cell]
        is_low, is_high = (cell, False) in start.bounded, (cell, True) in start.bounded
        moves = ends(moved if guess.is_up else -moved)
        return guess.mended(ends(entry), moves, self._ends(behind[cell]), is_low=is_low, is_high=is_high)

    def _record_moves(self, loop: Loop, turn: Turn, values: Values, clock: Clock | None) -> None:
        """Records, for each iteration, how far locals have moved, by others and by the number of iterations."""
        found: list[Size] = []
        start = turn.start
        free = {cell for cell in turn.guesses if cell not in start.derived and None not in ends(start.values[cell])}
        ticks = self.space.counter(loop) + 0 if isinstance(loop, For) else None
        for bound in self._moves[loop].bounds if _is_serial(loop) else ():
            if bound.cell in free and (bound.other is None or bound.other in free or bound.other in start.derived):
                found += [fact for fact in (bound.fact(values, turn.inside, ticks),) if fact is not None]
        found = found[-_MOST_FACTS // 2 :]
        for cell, guess in turn.guesses.items():
            if clock is not None and guess.move is not None and cell not in start.derived:
                moved = turn.inside[cell] - values[cell]
                found.append(guess.move * clock.ticks - (moved if guess.is_up else -moved))
        self.known.moved[loop] = found

    def _record_directions(self, loop: Loop, turn: Turn, values: Values, after: Values) -> None:
        """Records for the statements that follow in which direction the loop moved its locals."""
        for cell in turn.guesses if _is_serial(loop) else ():
            low, high = self._moves[loop].of({cell: 1})
            way = after[cell] - values[cell]
            if None in ends(after[cell]) or ((low is None or low < 0) and (high is None or high > 0)):
                continue
            self._facts = [*self._facts, way if low is not None and low >= 0 else -way]

    def _value_after(
        self, loop: Loop, turn: Turn, cell: Buffer, values: Values, after: Values, clock: Clock | None
    ) -> Size:
        """The value of a local after a loop; `after` has those of the locals before it."""
        guess = turn.guesses[cell]
        if cell in turn.start.derived:
            times = None if clock is None or clock.last is None else maximum(clock.last + 1, 0)
            equality = next(each for each in self._moves[loop].equalities if each.cell is cell)
            value = equality.value(values, after, times if isinstance(loop, For) else None)
            if value is not None and self.space.is_exact(value):
                return value
            return self._between(cell, *self._hull(values[cell], turn.behind[cell]))
        if guess.low is None and guess.high is None:
            return self._any(cell)
        if guess.move is not None and clock is not None and clock.last is not None:
            way = self._between(cell, 0, maximum(guess.move * (clock.last + 1), 0))
            moved = values[cell] + way if guess.is_up else values[cell] - way
            if self.space.is_exact(moved):
                return moved
        return self._between(cell, *self._hull(values[cell], turn.behind[cell]))


def _is_serial(loop: Loop) -> bool:
    return isinstance(loop, While) or loop.kind in _SERIAL


def _unknowns(size: Size) -> int:
    return len([*unknowns_in(size)])
