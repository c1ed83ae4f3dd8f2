"""Makes equations between the unknowns of one instance of a statement and the unknowns of another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tirlite.analysis.integers.equations import Equation, Name, System
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.sizes import Size
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import Linear, Unknown, ends_of, linear, relation_of


class Instances:
    """Two instances of one or two statements, and the equations that hold between them.

    `levels` numbers the loops around both, the outermost first; the instances are in one iteration of the first `level`
    of these. `inner` are loops around one of them alone. What changes with none of these loops is the same in both. An
    unknown that differs is the value that it has in the second instance, and the distance from there to the first.
    """

    def __init__(self, space: IndexSpace, levels: Mapping[Any, int], inner: Collection[object], level: int) -> None:
        self.space = space
        self.levels = levels
        self.inner = inner
        self.level = level
        self.system = System()
        self.values: dict[tuple[Atom, int], Name] = {}
        self.distances: dict[Atom, Name] = {}
        self.directed: list[Unknown] = []
        self.met: dict[Atom, None] = {}
        self._same: dict[Atom, bool] = {}

    def direct(self, counter: Unknown, sign: int) -> None:
        """Demand that the first instance is in a later iteration of a loop for `sign` 1, in an earlier one for -1."""
        low: Size | None
        high: Size | None
        low, high = _directed(sign)
        width = None if counter.low is None or counter.high is None else counter.high - counter.low
        if width is not None and sign:
            low, high = (1, width) if sign > 0 else (-width, -1)
        self.distances[counter] = self.system.variable(low, high)
        self.directed.append(counter)

    def equate(self, a: Size, b: Size, slack: tuple[int, int] = (0, 0)) -> None:
        """Demand that `a` of the first instance - `b` of the second lies between the ends of `slack`."""
        for mine in self.space.forms(a):
            for other in self.space.forms(b):
                self._equate(mine, other, slack)

    def _equate(self, a: Linear, b: Linear, slack: tuple[int, int]) -> None:
        terms: dict[Name, Size] = {}
        for atom in dict.fromkeys((*a.terms, *b.terms)):
            self.met[atom] = None
            for name, coefficient in self._terms(atom, a.terms.get(atom, 0), b.terms.get(atom, 0)):
                terms[name] = terms.get(name, 0) + coefficient
        if slack != (0, 0):
            terms[self.system.variable(*slack)] = -1
        self.system.equate(a.constant - b.constant, terms)

    def relate(self) -> None:
        """Add what relates quotients and remainders to what is divided, for each that was met."""
        done: dict[Atom, None] = {}
        while todo := [atom for atom in self.met if atom not in done]:
            for atom in todo:
                done[atom] = None
                relation = relation_of(atom)
                if relation is not None:
                    self.equate(relation, relation)
        for counter in self.directed:
            if (counter, 0) in self.values:
                self._value(counter, 1)  # which is in bounds too

    def difference(self, size: Size, sign: int | None) -> Name:
        """A variable for what a size is in the first instance less what it is in the second, of a sign if one is given.

        What the other equations say of the same unknowns is put together with it.
        """
        name = self.system.variable(*_directed(sign))
        parts = linear(size)
        if parts is not None:
            others = tuple(self.system.equations)
            terms: dict[Name, Size] = {name: -1}
            for atom, coefficient in parts.terms.items():
                for each, factor in self._terms(atom, coefficient, coefficient):
                    terms[each] = terms.get(each, 0) + factor
            self.system.equate(0, terms)
            known = self.system.equations[-1]
            for other in others:
                self._eliminate(known, other)
        return name

    def _eliminate(self, one: Equation, other: Equation) -> None:
        """Add what two equations say together, without the first variable that both are about."""
        for name, factor in one.terms.items():
            by = other.terms.get(name)
            if isinstance(factor, int) and isinstance(by, int):
                names = dict.fromkeys((*one.terms, *other.terms))
                terms = {each: one.terms.get(each, 0) * by - other.terms.get(each, 0) * factor for each in names}
                self.system.equate(one.constant * by - other.constant * factor, terms)
                return

    def _terms(self, atom: Atom, mine: Size, other: Size) -> Iterator[tuple[Name, Size]]:
        if self._is_same(atom):
            yield self._value(atom, 0), mine - other
        elif other == 0:
            yield self._value(atom, 1), mine
        elif mine == -other:  # a sum of both: bounds tell more of it than of a distance and twice one of them
            yield self._value(atom, 1), mine
            yield self._value(atom, 0), mine
        else:
            if mine != 0:
                yield self.distance(atom), mine
            if mine != other:
                yield self._value(atom, 0), mine - other

    def _value(self, atom: Atom, side: int) -> Name:
        """The value of an atom in the second instance (side 0), or in the first (side 1)."""
        if (atom, side) not in self.values:
            self.values[atom, side] = self.system.variable(*ends_of(atom))
            if side and isinstance(atom, Unknown) and atom.owner in self.levels:
                link: dict[Name, Size] = {
                    self._value(atom, 1): 1,
                    self._value(atom, 0): -1,
                    self.distance(atom): -1,
                }
                self.system.equate(0, link)
        return self.values[atom, side]

    def distance(self, atom: Atom) -> Name:
        """A variable for what an atom is in the first instance less what it is in the second."""
        if atom not in self.distances:
            low, high = ends_of(atom)
            width = None if low is None or high is None else high - low
            self.distances[atom] = self.system.variable(None if width is None else -width, width)
        return self.distances[atom]

    def _is_same(self, atom: Atom) -> bool:
        """Whether both instances see the same value."""
        if atom not in self._same:
            self._same[atom] = all(
                each.steady
                and each.owner not in self.inner
                and (each.owner is None or self.levels.get(each.owner, -1) < self.level)
                for each in self.space.unknowns_of(atom)
            )
        return self._same[atom]


def _directed(sign: int | None) -> tuple[int | None, int | None]:
    """The ends of a number of this sign."""
    return (None, None) if sign is None else (0, 0) if sign == 0 else (1, None) if sign > 0 else (None, -1)
