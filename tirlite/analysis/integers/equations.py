"""Solves linear equations over bounded integers: finds what all solutions have in common, or that there are none.

Each equation is reduced by what its variables' bounds leave: a variable whose multiples are farther apart than all the
rest can reach has one possible value. That settles indices that are digits of a number in mixed radix, such as
`i * m + j` with j below m, with constant and with symbolic m. It is not a complete decision procedure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import gcd
from typing import Any

from tirlite.analysis.integers.array_bounds import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.ir.stmt import For
from tirlite.record import cached_method, record, replace
from tirlite.sizes import Dim, Proof, Size, prove_divides, substitute
from tirlite.sizes.poly import Atom, varies
from tirlite.sizes.unknown import Ends, Linear, Unknown, ends_of, is_positive, linear, multiple, relation_of, sum_of

Name = int


@record
class Equation:
    """`constant` + the sum of `coefficient * variable` = 0. No coefficient is 0."""

    constant: Size
    terms: dict[Name, Size]


@record(frozen=False)
class System:
    """Equations, and the bounds of their variables, which are numbered."""

    bounds: list[Ends] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)

    def variable(self, low: Size | None, high: Size | None) -> Name:
        self.bounds.append((low, high))
        return len(self.bounds) - 1

    def equate(self, constant: Size, terms: dict[Name, Size]) -> None:
        """Demand that `constant` + the sum of `terms` is 0."""
        self.equations.append(Equation(constant, {name: c for name, c in terms.items() if c != 0}))

    def with_dims(self, dims: dict[Dim, Size]) -> System:
        """The same system with other sizes in the place of some dims."""
        bounds = [tuple(None if end is None else substitute(end, dims) for end in ends) for ends in self.bounds]
        result = System([(low, high) for low, high in bounds])
        for equation in self.equations:
            terms = {name: substitute(c, dims) for name, c in equation.terms.items()}
            result.equate(substitute(equation.constant, dims), terms)
        return result


def solve(system: System) -> Mapping[Name, Size] | None:
    """The variables that have one value in all solutions, with that value; None where there is no solution."""
    equations = [(each.constant, tuple(each.terms.items())) for each in system.equations]
    return _solved(tuple(system.bounds), tuple(equations))


# Half of a function's systems are those of other accesses that lie to each other in the same way.
@lru_cache(128)
def _solved(
    bounds: tuple[Ends, ...], equations: tuple[tuple[Size, tuple[tuple[Name, Size], ...]], ...]
) -> Mapping[Name, Size] | None:
    solver = _Solver(bounds, [Equation(constant, dict(terms)) for constant, terms in equations])
    return solver.known if solver.run() else None


class _Solver:
    def __init__(self, bounds: Sequence[Ends], equations: list[Equation]) -> None:
        self.bounds = bounds
        self.equations = equations
        self.known = {name: low for name, (low, high) in enumerate(self.bounds) if low is not None and low == high}

    def run(self) -> bool:
        """Whether the system may have a solution."""
        for low, high in self.bounds:
            if low is not None and high is not None and is_positive(low - high):
                return False
        before = -1
        while len(self.known) > before:
            is_first, before = before < 0, len(self.known)
            for place, equation in enumerate(self.equations):
                reduced = self.equations[place] = self._reduced(equation)
                # What nothing new is known of says what it said before.
                if (is_first or reduced is not equation) and not self._step(reduced):
                    return False
        return True

    def _reduced(self, equation: Equation) -> Equation:
        """The equation with the values of known variables put in."""
        if not any(name in self.known for name in equation.terms):
            return equation
        constant, terms = equation.constant, {}
        for name, coefficient in equation.terms.items():
            if name in self.known:
                constant = constant + coefficient * self.known[name]
            else:
                terms[name] = coefficient
        return replace(equation, constant=constant, terms=terms)

    def _step(self, equation: Equation) -> bool:
        """Tighten values by one equation; False where it has no solution."""
        terms, constant = equation.terms, equation.constant
        if not terms:
            return not (is_positive(constant) or is_positive(-constant))
        if len(terms) == 1 and constant == 0:
            ((name, coefficient),) = terms.items()
            return self._learn(name, 0) if isinstance(coefficient, int) or _is_nonzero(coefficient) else True
        if not _may_divide(terms, constant):
            return False
        parts = {name: multiple(self.bounds[name], c) for name, c in terms.items()}
        low, high = _total(constant, parts.values())
        if (low is not None and is_positive(low)) or (high is not None and is_positive(-high)):
            return False
        # A variable is pinned by the bounds of all others.
        bounded = {
            name: (least, most) for name, (least, most) in parts.items() if least is not None and most is not None
        }
        unbound = [name for name in terms if name not in bounded]
        if len(unbound) > 1:
            return True
        if unbound:
            low, high = _total(constant, bounded.values())
        assert low is not None
        assert high is not None
        for name in unbound or terms:
            least, most = (0, 0) if unbound else bounded[name]
            if not self._pin(name, equation, (low - least, high - most)):
                return False
        return True

    def _pin(self, name: Name, equation: Equation, rest: tuple[Size, Size]) -> bool:
        """Fix a variable if the ends of `rest`, the other terms, leave it one value."""
        step = equation.terms[name]
        if not is_positive(step):
            step = -step
            if not is_positive(step):
                return True
        sign = 1 if step == equation.terms[name] else -1
        low, high = rest
        for whole in _multiples(equation.constant, step):
            # step * (sign * x + whole) = -rest: with the rest below one step, both sides are 0.
            by = whole * step
            if is_positive(step + low - by) and is_positive(step - high + by):
                return self._learn(name, -sign * whole)
        return True

    def _learn(self, name: Name, value: Size) -> bool:
        low, high = self.bounds[name]
        if (low is not None and is_positive(low - value)) or (high is not None and is_positive(value - high)):
            return False
        self.known[name] = value
        return True


def _total(constant: Size, parts: Iterable[Ends]) -> Ends:
    lows, highs = zip((constant, constant), *parts, strict=True)
    return _sum(lows), _sum(highs)


def _sum(sizes: Sequence[Size | None]) -> Size | None:
    known = [each for each in sizes if each is not None]
    return sum_of(known) if len(known) == len(sizes) else None


def _may_divide(terms: dict[Name, Size], constant: Size) -> bool:
    """Whether the common divisor of the coefficients may divide the constant."""
    common = 0
    for coefficient in terms.values():
        if not isinstance(coefficient, int):
            return True
        common = gcd(common, coefficient)
    return prove_divides(common, constant) is not Proof.NO


def _multiples(constant: Size, step: Size) -> tuple[Size, ...]:
    """The constant divided by `step`: rounded down, and up."""
    if constant == 0:
        return (0,)
    if isinstance(step, int):
        whole = constant // step
        return (whole,) if whole * step == constant else (whole, whole + 1)
    return (next((k for k in (1, -1, 2, -2) if constant == step * k), 0),)


def _is_nonzero(size: Size) -> bool:
    return is_positive(size) or is_positive(-size)


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

    def equate(self, a: Size, b: Size, slack: tuple[int | None, int | None] | None = (0, 0)) -> None:
        """Demand that `a` of the first instance - `b` of the second lies between the ends of `slack`.

        With None that it is 0 modulo 2**64: it is 0 where it does not become as large.
        """
        for mine in self.space.forms(a):
            for other in self.space.forms(b):
                self._equate(mine, other, slack)

    def _equate(self, a: Linear, b: Linear, slack: tuple[int | None, int | None] | None) -> None:
        terms: dict[Name, Size] = {}
        for atom in dict.fromkeys((*a.terms, *b.terms)):
            self.met[atom] = None
            for name, coefficient in self._terms(atom, a.terms.get(atom, 0), b.terms.get(atom, 0)):
                terms[name] = terms.get(name, 0) + coefficient
        constant = a.constant - b.constant
        if slack is None:
            parts = [multiple(self.system.bounds[name], factor) for name, factor in terms.items() if factor != 0]
            if not stays_exact(*_total(constant, parts)):
                return
        elif slack != (0, 0):
            terms[self.system.variable(*slack)] = -1
        self.system.equate(constant, terms)

    def relate(self) -> None:
        """Add the equations between quotients, remainders and dividends, for each that occurs."""
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
        for loop in self.levels:
            if isinstance(loop, For) and self.space.counter(loop) in self.met:
                self._bound(loop)

    def _bound(self, loop: For) -> None:
        """Demand that the variable of a loop around both lies in front of where it stops, if that moves: `range(i)`."""
        stop = self.space.size(loop.stop)
        if not varies(stop) or not self.space.is_exact(stop):
            return
        room = (stop - self.space.size(loop.var)) * loop.step
        for mine, other, slack in ((room, 0, (1, None)), (0, room, (None, -1))):
            others = tuple(self.system.equations)
            self.equate(mine, other, slack)
            known = self.system.equations[-1]
            for each in others:
                self._eliminate(known, each)

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
        """Add a combination of two equations that eliminates the first variable in both."""
        for name, factor in one.terms.items():
            by = other.terms.get(name)
            if isinstance(factor, int) and isinstance(by, int):
                terms = {each: of_it * by for each, of_it in one.terms.items()}
                for each, of_it in other.terms.items():
                    terms[each] = terms.get(each, 0) - of_it * factor
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

    @cached_method
    def _is_same(self, atom: Atom) -> bool:
        """Whether both instances see the same value."""
        return all(
            each.steady
            and each.owner not in self.inner
            and (each.owner is None or self.levels.get(each.owner, -1) < self.level)
            for each in self.space.unknowns_of(atom)
        )


def _directed(sign: int | None) -> tuple[int | None, int | None]:
    """The ends of a number of this sign."""
    return (None, None) if sign is None else (0, 0) if sign == 0 else (1, None) if sign > 0 else (None, -1)
