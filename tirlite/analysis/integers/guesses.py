"""Assumptions about locals at the start of any iteration of a loop, weakened until iterations preserve them."""

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
    """The ends that a local is assumed to have at the start of each iteration.

    `move`: if given, also the most that one iteration moves it, up or down by `is_up`, and never the other way.
    `tries`: how often it was weakened. `is_closed`: an open end was closed by what iterations end with.
    """

    low: Size | None
    high: Size | None
    move: Size | None = None
    is_up: bool = True
    tries: int = 0
    is_closed: bool = False

    @property
    def is_open(self) -> bool:
        return self.low is None or self.high is None

    def mended(self, entry: Ends, moved: Ends, behind: Ends, *, is_low: bool, is_high: bool) -> Guess:
        """The guess itself if an iteration preserves it, else a weaker one.

        `entry`, `behind`: the local's ends before the loop and after the iteration. `moved`: how far that moves it.
        `is_low`, `is_high`: that end is proved otherwise.
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
        """The guess with its open ends replaced by those after an iteration; once, as repeating it gains nothing."""
        if self.move is not None or not self.is_open or self.is_closed or self.tries == 0:
            return self
        low, high = between
        first, last = low if self.low is None else self.low, high if self.high is None else self.high
        if (first, last) == (self.low, self.high):
            return self
        return Guess(first, last, tries=self.tries, is_closed=True)


@record(eq=False)
class Start:
    """The values of locals at the start of an arbitrary iteration.

    `derived`: locals whose values follow from others. `bounded`: ends, low or high, that follow from others.
    """

    values: Values
    derived: frozenset[Buffer]
    bounded: frozenset[tuple[Buffer, bool]]


@record(eq=False)
class Turn:
    """An arbitrary iteration: the guesses that it preserves, and the values at its start, in its body and behind it."""

    guesses: dict[Buffer, Guess]
    start: Start
    inside: Values
    behind: Values
    holds: list[Size]  # expressions that are 0 or more behind it


@record(eq=False)
class Clock:
    """A bound on the number of iterations so far, `ticks`, and its largest value, `last`.

    `cell`: the local that it comes from, in a `while`.
    """

    cell: Buffer | None
    ticks: Size
    last: Size | None


def around(a: Ends, b: Ends) -> Ends:
    """The least interval that contains both."""
    (low, high), (least, most) = a, b
    return (
        None if low is None or least is None else minimum(low, least),
        None if high is None or most is None else maximum(high, most),
    )


def narrowed_by(fact: Size, known: Collection[Atom]) -> Iterator[tuple[Unknown, Unknown]]:
    """The known unknowns of `fact`, which is 0 or more, each with its ends narrowed by the ends of the other terms."""
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
