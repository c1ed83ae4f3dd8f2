"""Two instances of statements in, equations between the unknowns of the one and the unknowns of the other out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tirlite.analysis.definitions import Loop
from tirlite.analysis.equations import Name, System
from tirlite.analysis.extrema import forms_of
from tirlite.analysis.index_space import IndexSpace
from tirlite.analysis.linear import Linear, Unknown
from tirlite.ir import For
from tirlite.sizes import Size


class Instances:
    """Two instances of one or two statements, and the equations that hold between them.

    `levels` numbers the loops around both, the outermost first; the instances are in one iteration of the first `level`
    of these. `inner` are loops around one of them alone. What changes with none of these loops is the same in both. An
    unknown that differs is the value that it has in the second instance, and the distance from there to the first.
    """

    def __init__(self, space: IndexSpace, levels: Mapping[Loop, int], inner: Collection[object], level: int) -> None:
        self.space = space
        self.levels = levels
        self.inner = inner
        self.level = level
        self.system = System()
        self.values: dict[tuple[Unknown, int], Name] = {}
        self.distances: dict[Unknown, Name] = {}
        self.met: dict[Unknown, None] = {}

    def direct(self, loop: Loop, sign: int) -> None:
        """Demand that the first instance is in a later iteration of `loop` for `sign` 1, in an earlier one for -1."""
        if not isinstance(loop, For):
            return
        counter = self.space.counter(loop)
        last = counter.high
        if sign > 0:
            self.distances[counter] = self.system.variable(1, last)
        else:
            self.distances[counter] = self.system.variable(None if last is None else -last, -1)

    def equate(self, a: Linear, b: Linear, slack: tuple[int, int] = (0, 0)) -> None:
        """Demand that `a` of the first instance - `b` of the second lies between the ends of `slack`."""
        for mine in forms_of(a, self.space.forms):
            for other in forms_of(b, self.space.forms):
                self._equate(mine, other, slack)

    def _equate(self, a: Linear, b: Linear, slack: tuple[int, int]) -> None:
        terms: dict[Name, Size] = {}
        for unknown in dict.fromkeys((*a.terms, *b.terms)):
            self.met[unknown] = None
            for name, coefficient in self._terms(unknown, a.terms.get(unknown, 0), b.terms.get(unknown, 0)):
                terms[name] = terms.get(name, 0) + coefficient
        if slack != (0, 0):
            terms[self.system.variable(*slack)] = -1
        self.system.equate(a.constant - b.constant, terms)

    def relate(self) -> None:
        """Add what relates quotients and remainders to what is divided, for each that was met."""
        done: dict[Linear, None] = {}
        while todo := [r for u in self.met if (r := self.space.relations.get(u)) is not None and r not in done]:
            for relation in todo:
                done[relation] = None
                self.equate(relation, relation)

    def distance_in(self, loop: Loop) -> Name | None:
        """The variable for how many iterations of `loop` the first instance comes after the second."""
        return self._distance(self.space.counter(loop)) if isinstance(loop, For) else None

    def _terms(self, unknown: Unknown, mine: Size, other: Size) -> Iterator[tuple[Name, Size]]:
        if self._is_same(unknown):
            yield self._value(unknown, 0), mine - other
        elif other == 0:
            yield self._value(unknown, 1), mine
        else:
            if mine != 0:
                yield self._distance(unknown), mine
            if mine != other:
                yield self._value(unknown, 0), mine - other

    def _value(self, unknown: Unknown, side: int) -> Name:
        """The value of an unknown in the second instance (side 0), or in the first (side 1)."""
        if (unknown, side) not in self.values:
            self.values[unknown, side] = self.system.variable(unknown.low, unknown.high)
            if side and unknown.loop in self.levels:
                link: dict[Name, Size] = {
                    self._value(unknown, 1): 1,
                    self._value(unknown, 0): -1,
                    self._distance(unknown): -1,
                }
                self.system.equate(0, link)
        return self.values[unknown, side]

    def _distance(self, unknown: Unknown) -> Name:
        if unknown not in self.distances:
            known = unknown.low is not None and unknown.high is not None
            width = unknown.high - unknown.low if known else None  # type: ignore[operator]
            self.distances[unknown] = self.system.variable(None if width is None else -width, width)
        return self.distances[unknown]

    def _is_same(self, unknown: Unknown) -> bool:
        """Whether both instances see the same value."""
        return all(
            each.steady
            and each.loop not in self.inner
            and (each.loop is None or self.levels.get(each.loop, -1) < self.level)
            for each in unknown.basis()
        )
