"""A Request: the bytes that one buffer needs, and when it needs them. Values in, a checked and normal form out."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from tirlite.diag import Message, PlanError
from tirlite.record import record
from tirlite.sizes import Dim, Poly, Size

Interval = tuple[int, int]


class EmptyLifetime(Message):
    """An interval of a lifetime ends where it begins, or before.

    Example: `Request("a", 4, (3, 3))`.
    Fix: Intervals are half-open: what lives at step 3 alone has `(3, 4)`.
    """

    code = "empty-lifetime"
    raises = PlanError
    title = "request `{id}` lives over [{low}, {high}), which holds no point in time"
    help = "a lifetime is a half-open interval `(first, last + 1)`, or several of them"

    id: str
    low: int
    high: int


class NoLifetime(Message):
    """A request has no interval in which it is live.

    Example: `Request("a", 4, ())`.
    Fix: Leave it out of the problem, or give it an interval.
    """

    code = "no-lifetime"
    raises = PlanError
    title = "request `{id}` has no lifetime"
    help = "leave out a request that is never live, or give it one interval `(first, last + 1)`"

    id: str


class BadLifetime(Message):
    """A lifetime is neither an interval nor a sequence of intervals.

    Example: `Request("a", 4, 7)`.
    Fix: Give `(first, last + 1)`, or several of them.
    """

    code = "bad-lifetime"
    raises = PlanError
    title = "the lifetime of request `{id}` is {live}"
    help = "give one half-open interval `(first, last + 1)` of integers, or a sequence of them"

    id: str
    live: str


class NegativeSize(Message):
    """The size of a request is below zero, or may be.

    Example: `Request("a", -4, (0, 2))`.
    Fix: Give zero or more bytes.
    """

    code = "negative-size"
    raises = PlanError
    title = "the size of request `{id}` is {size} bytes"
    help = "a size is zero or more"

    id: str
    size: str


class BadSize(Message):
    """The size of a request is no number of bytes.

    Example: `Request("a", 2.5, (0, 2))`.
    Fix: Give an integer, an expression over dims, or a sympy expression.
    """

    code = "bad-size"
    raises = PlanError
    title = "the size of request `{id}` is {size}, which is no number of bytes"
    help = "give an integer, an expression over dims, or a sympy expression"

    id: str
    size: str


class BadAlignment(Message):
    """An alignment is no power of two.

    Example: `Request("a", 4, (0, 2), align=3)`.
    Fix: Give a power of two, in bytes.
    """

    code = "bad-alignment"
    raises = PlanError
    title = "the alignment of {what} `{id}` is {align}"
    help = "an alignment is a power of two, in bytes"

    what: str
    id: str
    align: str


class BadFixed(Message):
    """A fixed offset is negative, or no multiple of the alignment.

    Example: `Request("a", 4, (0, 2), align=8, fixed=4)`.
    Fix: Give a multiple of the alignment, zero or more.
    """

    code = "bad-fixed"
    raises = PlanError
    title = "request `{id}` is fixed at offset {fixed}"
    help = "an offset is zero or more, and a multiple of the alignment, here {align}"

    id: str
    fixed: str
    align: int


@record
class Request:
    """A wish for storage.

    `size` is in bytes: an int, a Size over dims, or a sympy expression, which Problem turns into a Size. `live` holds
    half-open intervals of time; one bare interval is accepted. They are kept sorted, disjoint and apart. `align` is
    in bytes. `fixed` demands an offset. `pools` names the memories it may live in, best first; empty means the one
    that is named as its `scope`. `kind` is its element type, which some strategies look at.
    """

    id: str
    size: Size
    live: tuple[Interval, ...]
    scope: str = "global"
    align: int = 1
    fixed: int | None = None
    pools: tuple[str, ...] = ()
    kind: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "size", _size(self.id, self.size))
        put(self, "live", _lifetime(self.id, self.live))
        put(self, "pools", tuple(self.pools))
        if not is_alignment(self.align):
            raise BadAlignment("request", self.id, repr(self.align)).error()
        if self.fixed is not None and (self.fixed < 0 or self.fixed % self.align):
            raise BadFixed(self.id, str(self.fixed), self.align).error()

    @property
    def memories(self) -> tuple[str, ...]:
        """The names of the memories it may live in, best first."""
        return self.pools or (self.scope,)

    @property
    def spans(self) -> str:
        """The lifetime as text."""
        return " ".join(f"[{low}, {high})" for low, high in self.live)


def is_alignment(value: int) -> bool:
    """Whether `value` is a power of two."""
    return isinstance(value, int) and value > 0 and value & (value - 1) == 0


def _size(name: str, size: object) -> Size:
    if isinstance(size, Poly):
        return size
    if isinstance(size, Dim):
        return size + 0
    if hasattr(size, "free_symbols"):
        return size  # type: ignore[return-value]  # a sympy expression, converted by Problem, which knows the dims
    try:
        number = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        raise BadSize(name, repr(size)).error() from None
    if number < 0:
        raise NegativeSize(name, str(number)).error()
    return number


def _lifetime(name: str, live: Iterable[object]) -> tuple[Interval, ...]:
    try:
        items = tuple(live)
        if len(items) == 2 and hasattr(items[0], "__index__"):
            items = (items,)
        spans = sorted(_interval(item) for item in items)
    except (TypeError, ValueError):
        raise BadLifetime(name, repr(live)).error() from None
    if not spans:
        raise NoLifetime(name).error()
    for low, high in spans:
        if low >= high:
            raise EmptyLifetime(name, low, high).error()
    return joined(spans)


def _interval(item: object) -> Interval:
    """Raises TypeError or ValueError for anything else than a pair of integers."""
    if not isinstance(item, Iterable):
        raise TypeError(item)
    low, high = item
    return operator.index(low), operator.index(high)


def joined(spans: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sorted intervals with those that overlap or touch made one."""
    apart: list[Interval] = []
    for low, high in spans:
        if apart and low <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(apart[-1][1], high))
        else:
            apart.append((low, high))
    return tuple(apart)
