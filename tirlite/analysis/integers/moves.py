"""Finds relations between the local integers of a loop, from the constants that the paths through its body add.

In `if c: i += 1; t += 1 else: j += 1; t += 1` each path adds as much to t as to i + j, so t - i - j never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

from tirlite.analysis.integers.definitions import Loop
from tirlite.ir.expr import Buffer, Load
from tirlite.ir.stmt import AttrStmt, For, IfThenElse, SeqStmt, Stmt, Store, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import walk, without_number
from tirlite.record import cached_property, record
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends

# The least and the most by which locals change; None if unbounded.
Move: TypeAlias = "tuple[int | None, int | None]"
_Path: TypeAlias = tuple[Move, ...]
# The coefficients of a linear combination of locals.
Weights: TypeAlias = Mapping[Buffer, int]

# More paths are merged into one; more locals than this are not related to each other.
_MOST_PATHS, _MOST_CELLS = 24, 6
# The largest factor between the changes of two locals.
_MOST_TIMES = 4
_ANY: Move = (None, None)
_NONE: Move = (0, 0)


@record(eq=False)
class Equality:
    """A local has changed by a linear combination of the changes of others, plus `step` in each iteration."""

    cell: Buffer
    weights: Weights
    step: int

    def value(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """Its value after `ticks` iterations, from those before the loop and the others' now; None if unknown."""
        if (self.step and ticks is None) or not all(base in now for base in self.weights):
            return None
        moved = (factor * (now[base] - before[base]) for base, factor in self.weights.items())
        return sum(moved, start=before[self.cell] + self.step * (ticks or 0))


@record(eq=False)
class Bound:
    """A local has moved up (`way` 1) or down (-1) by at most `factor` times the change of `other`.

    `other` None: at most `factor` in each iteration.
    """

    cell: Buffer
    way: int
    other: Buffer | None
    factor: int

    @property
    def is_up(self) -> bool:
        """Whether this bounds the local from above."""
        return self.way > 0

    def fact(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """An expression that is 0 or more, from the values before the loop and after `ticks` iterations."""
        moved = self._moved(before, now, ticks)
        return None if moved is None else moved - self.way * (now[self.cell] - before[self.cell])

    def end(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """The local's bound, from the other's value now; None if unknown."""
        if self.other is not None and (self.other not in now or None in ends(now[self.other])):
            return None
        moved = self._moved(before, now, ticks)
        return None if moved is None else ends(before[self.cell] + self.way * moved)[self.is_up]

    def _moved(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        if self.other is not None:
            return self.factor * (now[self.other] - before[self.other])
        return None if ticks is None else self.factor * ticks


class Moves:
    """How the paths through the body of a loop change some locals."""

    def __init__(self, loop: Loop, cells: Iterable[Buffer]) -> None:
        asked = (
            {node.buffer for node in walk(loop.condition) if isinstance(node, Load)} if isinstance(loop, While) else ()
        )
        # Locals in the condition come first: their values bound the others.
        self.cells = sorted(cells, key=lambda cell: cell not in asked)
        self._counts = isinstance(loop, For)
        self._asked = len([cell for cell in self.cells if cell in asked])
        self._paths = (
            run(_paths(loop.body, self.cells)) if len(self.cells) <= _MOST_CELLS else {(_ANY,) * len(self.cells)}
        )

    def of(self, weights: Weights) -> Move:
        """The least and the most by which a linear combination of locals changes in one iteration, on any path."""
        factors = [(place, factor) for place, cell in enumerate(self.cells) if (factor := weights.get(cell, 0))]
        moves = [_added(_times(path[place], factor) for place, factor in factors) for path in self._paths]
        return _hull(moves)

    @cached_property
    def equalities(self) -> tuple[Equality, ...]:
        """The locals whose changes are determined by those of locals before them, and by the number of iterations."""
        found: list[Equality] = []
        bases = self.cells[: self._asked]
        for cell in self.cells[self._asked :]:
            for weights in _few(bases):
                low, high = self.of({cell: 1, **{base: -factor for base, factor in weights.items()}})
                if low is not None and low == high and (self._counts or low == 0):
                    found.append(Equality(cell, weights, low))
                    break
            else:
                bases.append(cell)
        return tuple(found)

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds of each local by multiples of others, and by the number of iterations."""
        found: list[Bound] = []
        for cell, way in product(self.cells, (1, -1)):
            most = self.of({cell: way})[1]
            if most is None or most <= 0:
                continue
            found += [Bound(cell, way, None, most)] if self._counts else []
            times = [sign * times for times in range(1, _MOST_TIMES + 1) for sign in (1, -1)]
            for other in self.cells:
                gaps = ((factor, self.of({other: factor, cell: -way})[0]) for factor in times if other is not cell)
                factor = next((factor for factor, least in gaps if least is not None and least >= 0), None)
                found += [] if factor is None else [Bound(cell, way, other, factor)]
        return tuple(found)


def step_of(stmt: Store) -> int | None:
    """The constant that a store adds to its local; None if it stores anything else."""
    base, number = without_number(stmt.value)
    is_own = base is not stmt.value and isinstance(base, Load) and base.buffer is stmt.buffer
    return number if is_own else None


def _few(bases: Sequence[Buffer]) -> Iterator[dict[Buffer, int]]:
    """The sums and differences of at most two locals."""
    for number in range(3):
        for chosen in combinations(bases, number):
            for signs in product((1, -1), repeat=number):
                yield dict(zip(chosen, signs, strict=True))


def _paths(stmt: Stmt, cells: Sequence[Buffer]) -> Steps[set[_Path]]:
    """How each path through a statement changes the locals."""
    found: set[_Path] = {(_NONE,) * len(cells)}
    if isinstance(stmt, SeqStmt):
        for each in stmt.stmts:
            after = yield _paths(each, cells)
            found = _bounded({tuple(map(_both, a, b)) for a in found for b in after})
    elif isinstance(stmt, IfThenElse):
        yes = yield _paths(stmt.then_body, cells)
        no = yield _paths(stmt.else_body, cells)
        found = _bounded(yes | no)
    elif isinstance(stmt, AttrStmt):
        found = yield _paths(stmt.body, cells)
    elif isinstance(stmt, For | While):
        once = yield _paths(stmt.body, cells)
        found = {tuple(_again(_hull(moves)) for moves in zip(*once, strict=True))}
    elif isinstance(stmt, Store) and stmt.buffer in cells:
        step = step_of(stmt)
        found = {tuple((step, step) if cell is stmt.buffer else _NONE for cell in cells)}
    return found


def _bounded(paths: set[_Path]) -> set[_Path]:
    """The paths, or one that covers them all if they are too many."""
    return paths if len(paths) <= _MOST_PATHS else {tuple(map(_hull, zip(*paths, strict=True)))}


def _both(a: Move, b: Move) -> Move:
    return _added((a, b))


def _added(moves: Iterable[Move]) -> Move:
    low: int | None = 0
    high: int | None = 0
    for least, most in moves:
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def _times(move: Move, factor: int) -> Move:
    low, high = (None if end is None else factor * end for end in (move if factor > 0 else move[::-1]))
    return low, high


def _hull(moves: Iterable[Move]) -> Move:
    lows, highs = zip(*moves, strict=True)
    return (None if None in lows else min(lows)), (None if None in highs else max(highs))


def _again(move: Move) -> Move:
    """The change by any number of such moves, or none."""
    low, high = move
    return (0 if low is not None and low >= 0 else None), (0 if high is not None and high <= 0 else None)
