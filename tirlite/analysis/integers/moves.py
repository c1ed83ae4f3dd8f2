"""Tells how far one iteration of a loop moves local integers together, by sums with constants on each path."""

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

# By how much a number of locals move, at least and at most; None where there is no end.
Move: TypeAlias = "tuple[int | None, int | None]"
_Path: TypeAlias = tuple[Move, ...]
# How often each of some locals is taken in a sum of them.
Weights: TypeAlias = Mapping[Buffer, int]

# More paths through a body are taken together, and more locals are not compared with each other.
_MOST_PATHS, _MOST_CELLS = 24, 6
# A local that moves by more than this many times what another one does is not compared with it.
_MOST_TIMES = 4
_ANY: Move = (None, None)
_NONE: Move = (0, 0)


@record(eq=False)
class Told:
    """That a local has moved as a sum of others has, and by a constant in each iteration."""

    cell: Buffer
    weights: Weights
    step: int

    def value(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """What it is, where all are known as they were before the loop, and the others as they are after `ticks`.

        None where one of them is not known.
        """
        if (self.step and ticks is None) or not all(base in now for base in self.weights):
            return None
        moved = (factor * (now[base] - before[base]) for base, factor in self.weights.items())
        return sum(moved, start=before[self.cell] + self.step * (ticks or 0))


@record(eq=False)
class Bound:
    """That a local has moved one way no further than `factor` times another one, or None: what counts iterations."""

    cell: Buffer
    way: int
    other: Buffer | None
    factor: int

    @property
    def is_up(self) -> bool:
        """Whether it is an upper end of the local that this tells."""
        return self.way > 0

    def fact(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """What is 0 or more, where the locals are as they were before the loop and as they are after `ticks`."""
        moved = self._moved(before, now, ticks)
        return None if moved is None else moved - self.way * (now[self.cell] - before[self.cell])

    def end(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        """The end of the local that way, as the other one is now; None where it is not known."""
        if self.other is not None and (self.other not in now or None in ends(now[self.other])):
            return None
        moved = self._moved(before, now, ticks)
        return None if moved is None else ends(before[self.cell] + self.way * moved)[self.is_up]

    def _moved(self, before: Mapping[Buffer, Size], now: Mapping[Buffer, Size], ticks: Size | None) -> Size | None:
        if self.other is not None:
            return self.factor * (now[self.other] - before[self.other])
        return None if ticks is None else self.factor * ticks


class Moves:
    """How the paths through the body of a loop move some locals."""

    def __init__(self, loop: Loop, cells: Iterable[Buffer]) -> None:
        asked = (
            {node.buffer for node in walk(loop.condition) if isinstance(node, Load)} if isinstance(loop, While) else ()
        )
        # What decides whether a loop goes on comes first: others are told from it.
        self.cells = sorted(cells, key=lambda cell: cell not in asked)
        self._counts = isinstance(loop, For)
        self._asked = len([cell for cell in self.cells if cell in asked])
        self._paths = (
            run(_paths(loop.body, self.cells)) if len(self.cells) <= _MOST_CELLS else {(_ANY,) * len(self.cells)}
        )

    def of(self, weights: Weights) -> Move:
        """How far a sum of locals moves in one iteration, whichever path it takes."""
        factors = [(place, factor) for place, cell in enumerate(self.cells) if (factor := weights.get(cell, 0))]
        moves = [_added(_times(path[place], factor) for place, factor in factors) for path in self._paths]
        return _hull(moves)

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """The locals that are sums of ones before them, of what counts iterations, and of what they were at first."""
        found: list[Told] = []
        bases = self.cells[: self._asked]
        for cell in self.cells[self._asked :]:
            for weights in _few(bases):
                low, high = self.of({cell: 1, **{base: -factor for base, factor in weights.items()}})
                if low is not None and low == high and (self._counts or low == 0):
                    found.append(Told(cell, weights, low))
                    break
            else:
                bases.append(cell)
        return tuple(found)

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The locals that go no further one way than multiples of others, or of what counts iterations."""
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
    """What a store adds to its local, if it does nothing else."""
    base, number = without_number(stmt.value)
    is_own = base is not stmt.value and isinstance(base, Load) and base.buffer is stmt.buffer
    return number if is_own else None


def _few(bases: Sequence[Buffer]) -> Iterator[dict[Buffer, int]]:
    """Sums of two locals at most, each taken once or taken away."""
    for number in range(3):
        for chosen in combinations(bases, number):
            for signs in product((1, -1), repeat=number):
                yield dict(zip(chosen, signs, strict=True))


def _paths(stmt: Stmt, cells: Sequence[Buffer]) -> Steps[set[_Path]]:
    """How far each path through a statement moves each of some locals."""
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
    """The same paths, or one that takes the place of too many."""
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
    """How far any number of such moves goes, none included."""
    low, high = move
    return (0 if low is not None and low >= 0 else None), (0 if high is not None and high <= 0 else None)
