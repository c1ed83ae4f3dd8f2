"""What locals are taken to be at the start of an iteration of a loop, until one that begins so ends otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from tirlite.ir.expr import Buffer
from tirlite.record import record, replace
from tirlite.sizes import Size, ceildiv, maximum, minimum
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import Ends, Unknown, ends, is_nonnegative, linear

Values: TypeAlias = dict[Buffer, Size]


@record(eq=False)
class Guess:
    """The ends that a local is taken to have at the start of each iteration, and how far it may move in one.

    A `move` is up or down, which `is_up` says.
    """

    low: Size | None
    high: Size | None
    move: Size | None = None
    is_up: bool = True
    tries: int = 0
    is_closed: bool = False  # after it had to be open

    @property
    def is_open(self) -> bool:
        return self.low is None or self.high is None

    def mended(self, entry: Ends, moved: Ends, behind: Ends, *, is_low: bool, is_high: bool) -> Guess:
        """The same guess where the end of an iteration bears it out; else another one, which asks for less.

        `moved` is how far an iteration goes, which ends `behind`; an end that is known otherwise is not asked for.
        """
        (low, high), (least, most) = behind, moved
        if self.move is not None:
            is_so = least is not None and most is not None and is_nonnegative(least)
            return self if is_so and most is not None and is_nonnegative(self.move - most) else Guess(*entry)
        is_low = is_low or self.low is None or (low is not None and is_nonnegative(low - self.low))
        is_high = is_high or self.high is None or (high is not None and is_nonnegative(self.high - high))
        if is_low and is_high:
            return self
        first, last = (low, high) if self.tries == 0 else (None, None)
        if self.tries == 1 and self.low is not None and is_nonnegative(self.low):
            first = 0
        if not is_low:
            first = None if first is None or self.low is None else minimum(first, self.low)
        if not is_high:
            last = None if last is None or self.high is None else maximum(last, self.high)
        return Guess(
            self.low if is_low else first,
            self.high if is_high else last,
            tries=self.tries + 1,
            is_closed=self.is_closed,
        )

    def closed(self, between: Ends) -> Guess:
        """The same with an open end closed by what an iteration ends with: once, as what comes of it is no better."""
        if self.move is not None or not self.is_open or self.is_closed or self.tries == 0:
            return self
        low, high = between
        first, last = low if self.low is None else self.low, high if self.high is None else self.high
        if (first, last) == (self.low, self.high):
            return self
        return Guess(first, last, tries=self.tries, is_closed=True)


@record(eq=False)
class Start:
    """The values at the start of any iteration, the locals that others tell, and the ends that moves tell of some."""

    values: Values
    told: frozenset[Buffer]
    held: frozenset[tuple[Buffer, bool]]


@record(eq=False)
class Turn:
    """Any one iteration of a loop: the guesses that it bears out, the values in its body, and after it."""

    guesses: dict[Buffer, Guess]
    start: Start
    inside: Values
    behind: Values
    holds: list[Size]  # 0 or more after it


@record(eq=False)
class Clock:
    """What tells in an iteration how many lie behind, at most, and what that is at most; of a while it is a local."""

    cell: Buffer | None
    ticks: Size
    last: Size | None


def around(a: Ends, b: Ends) -> Ends:
    """The ends of what lies between either."""
    (low, high), (least, most) = a, b
    return (
        None if low is None or least is None else minimum(low, least),
        None if high is None or most is None else maximum(high, most),
    )


def narrowed_by(fact: Size, known: Collection[Atom]) -> Iterator[tuple[Unknown, Unknown]]:
    """What is known of a sum that is 0 or more, and the same in the ends that it then has: the rest has ends, too."""
    parts = linear(fact)
    for atom, factor in parts.terms.items() if parts is not None else ():
        if not isinstance(atom, Unknown) or atom not in known or not isinstance(factor, int):
            continue
        most = ends(fact - factor * atom)[1]
        if most is None:
            continue
        if factor > 0:
            low = ceildiv(-most, factor)
            yield atom, replace(atom, low=low if atom.low is None else maximum(atom.low, low))
        else:
            high = most // -factor
            yield atom, replace(atom, high=high if atom.high is None else minimum(atom.high, high))
