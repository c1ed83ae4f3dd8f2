"""Integers that the program computes as sums: a constant part, and multiples of what is unknown on entry, in bounds.

A Linear is exact: its value is that of the expression in the integers, not modulo 2**64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from tirlite.ir import For, While
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_le

Ends: TypeAlias = "tuple[Size | None, Size | None]"


@record(eq=False)
class Unknown:
    """An integer from `low` to `high`, both included, that is not known on entry; None where no bound is known.

    With `counts` it is the number of iterations of `loop` (a For) that lie behind. Else, with `depends`, it is a
    function of these alone; else it keeps its value during one iteration of `loop`, or, where that is None, during one
    run of the function; or, where it is not `steady`, from one evaluation to the next at best.
    """

    name: str
    low: Size | None = None
    high: Size | None = None
    loop: For | While | None = None
    counts: bool = False
    depends: tuple[Unknown, ...] = ()
    steady: bool = True

    def basis(self) -> Iterator[Unknown]:
        """What it is a function of in the end: itself, where it depends on no other."""
        todo, seen = [self], {self}
        while todo:
            each = todo.pop()
            if each.depends:
                todo += [u for u in each.depends if u not in seen]
                seen.update(each.depends)
            else:
                yield each


@record(eq=False)
class Linear:
    """`constant` + the sum of `terms[u] * u`. No coefficient is 0."""

    constant: Size
    terms: Mapping[Unknown, Size] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def plus(self, other: Linear, scale: Size = 1) -> Linear:
        """`self + scale * other`."""
        terms = dict(self.terms)
        for unknown, coefficient in other.terms.items():
            total = terms.get(unknown, 0) + coefficient * scale
            if total == 0:
                terms.pop(unknown, None)  # with a scale of 0 it may not stand there
            else:
                terms[unknown] = total
        return Linear(self.constant + other.constant * scale, terms)

    def times(self, factor: Size) -> Linear:
        """`factor * self`."""
        if factor == 0:
            return Linear(0)
        return Linear(self.constant * factor, {unknown: c * factor for unknown, c in self.terms.items()})

    def ends(self) -> Ends:
        """A number or size that the value never falls below, and one that it never exceeds; None where none is known.

        Each unknown is taken to stand anywhere in its bounds.
        """
        low: Size | None = self.constant
        high: Size | None = self.constant
        for unknown, coefficient in self.terms.items():
            least, most = multiple((unknown.low, unknown.high), coefficient)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
        return low, high

    def same_as(self, other: Linear) -> bool:
        """Whether both are the same sum."""
        return self.constant == other.constant and self.terms == other.terms


def multiple(ends: Ends, factor: Size) -> Ends:
    """The ends of `factor` times what lies between `ends`."""
    low, high = ends
    if not is_nonnegative(factor):
        if not is_nonnegative(-factor):
            return None, None
        low, high = high, low
    return (None if low is None else low * factor), (None if high is None else high * factor)


def is_nonnegative(size: Size) -> bool:
    """Whether `size` is proved to be 0 or more."""
    return size >= 0 if isinstance(size, int) else prove_le(0, size) is Proof.YES


def is_positive(size: Size) -> bool:
    """Whether `size` is proved to be 1 or more."""
    return size > 0 if isinstance(size, int) else prove_le(1, size) is Proof.YES
