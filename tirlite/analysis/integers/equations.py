"""Finds what all solutions of linear equations over integers in bounds have in common, or that there are none.

Each equation is reduced by what its variables' bounds leave: a variable whose multiples are farther apart than all the
rest can reach has one possible value. That settles indices that are digits of a number in mixed radix, such as
`i * m + j` with j below m, with constant and with symbolic m. It is not a complete decision procedure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from math import gcd

from tirlite.record import record
from tirlite.sizes import Dim, Proof, Size, prove_divides, substitute
from tirlite.sizes.unknown import Ends, is_positive, multiple

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


def solve(system: System) -> dict[Name, Size] | None:
    """The variables that have one value in all solutions, with that value; None where there is no solution."""
    solver = _Solver(system)
    return solver.known if solver.run() else None


class _Solver:
    def __init__(self, system: System) -> None:
        self.bounds = list(system.bounds)
        self.equations = list(system.equations)
        self.known = {name: low for name, (low, high) in enumerate(self.bounds) if low is not None and low == high}

    def run(self) -> bool:
        """Whether the system may have a solution."""
        for low, high in self.bounds:
            if low is not None and high is not None and is_positive(low - high):
                return False
        before = -1
        while len(self.known) > before:
            before = len(self.known)
            self.equations = [self._reduced(equation) for equation in self.equations]
            if not all(self._step(equation) for equation in self.equations):
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
        """Learn from one equation; False where it has no solution."""
        equation = self._reduced(equation)
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
        unbound = [name for name, (least, most) in parts.items() if least is None or most is None]
        pinned = terms if not unbound else unbound if len(unbound) == 1 else ()
        return all(self._pin(name, equation, parts) for name in pinned if name not in self.known)

    def _pin(self, name: Name, equation: Equation, parts: dict[Name, Ends]) -> bool:
        """Give the variable its value where the bounds of the rest leave it one."""
        step = equation.terms[name]
        if not is_positive(step):
            step = -step
            if not is_positive(step):
                return True
        sign = 1 if step == equation.terms[name] else -1
        least, most = _total(0, [part for other, part in parts.items() if other != name])
        if least is None or most is None:
            return True
        for whole in _multiples(equation.constant, step):
            left = equation.constant - whole * step
            # step * (sign * x + whole) = -rest: with the rest below one step, both sides are 0.
            if is_positive(step + least + left) and is_positive(step - most - left):
                return self._learn(name, -sign * whole)
        return True

    def _learn(self, name: Name, value: Size) -> bool:
        low, high = self.bounds[name]
        if (low is not None and is_positive(low - value)) or (high is not None and is_positive(value - high)):
            return False
        self.known[name] = value
        return True


def _total(constant: Size, parts: Iterable[Ends]) -> Ends:
    low: Size | None = constant
    high: Size | None = constant
    for least, most in parts:
        low = None if low is None or least is None else low + least
        high = None if high is None or most is None else high + most
    return low, high


def _may_divide(terms: dict[Name, Size], constant: Size) -> bool:
    """Whether the common divisor of the coefficients may divide the constant."""
    common = 0
    for coefficient in terms.values():
        if not isinstance(coefficient, int):
            return True
        common = gcd(common, coefficient)
    return prove_divides(common, constant) is not Proof.NO


def _multiples(constant: Size, step: Size) -> tuple[Size, ...]:
    """How many times `step` the constant may be taken for: rounded down, and up."""
    if constant == 0:
        return (0,)
    if isinstance(step, int):
        whole = constant // step
        return (whole,) if whole * step == constant else (whole, whole + 1)
    return (next((k for k in (1, -1, 2, -2) if constant == step * k), 0),)


def _is_nonzero(size: Size) -> bool:
    return is_positive(size) or is_positive(-size)
