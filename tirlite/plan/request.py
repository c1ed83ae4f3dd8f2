"""Defines a Request, the bytes that one buffer needs and when, and a Pool, a memory; checked and in a normal form."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Protocol, SupportsIndex, SupportsInt, TypeGuard

from tirlite.diag import PlanMessage
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes import Poly, Size, as_size
from tirlite.sizes.poly import SizeLike, is_of_sympy

Interval = tuple[int, int]


class Symbolic(Protocol):
    """An expression of sympy, as type checkers see it."""

    @property
    def free_symbols(self) -> object:
        """The symbols in it."""


class EmptyLifetime(PlanMessage):
    """An interval of a lifetime ends where it begins, or before.

    Example: `Request("a", 4, (3, 3))`.
    Fix: Intervals are half-open: what lives at step 3 alone has `(3, 4)`.
    """

    title = "request `{id}` lives over [{low}, {high}), which holds no point in time"
    help = "a lifetime is a half-open interval `(first, last + 1)`, or several of them"


class NoLifetime(PlanMessage):
    """A request has no interval in which it is live.

    Example: `Request("a", 4, ())`.
    """

    title = "request `{id}` has no lifetime"
    help = "leave out a request that is never live, or give it one interval `(first, last + 1)`"


class BadLifetime(PlanMessage):
    """A lifetime is neither an interval nor a sequence of intervals.

    Example: `Request("a", 4, 7)`.
    """

    title = "the lifetime of request `{id}` is {live}"
    help = "give one half-open interval `(first, last + 1)` of integers, or a sequence of them"


class NegativeSize(PlanMessage):
    """The size of a request is below zero, or may be.

    Example: `Request("a", -4, (0, 2))`.
    Fix: Give zero or more bytes.
    """

    title = "the size of request `{id}` is {size} bytes"
    help = "a size is zero or more"


class BadSize(PlanMessage):
    """The size of a request is not a number of bytes.

    Example: `Request("a", 2.5, (0, 2))`.
    """

    title = "the size of request `{id}` is {size}, which is not a number of bytes"
    help = "give an integer, an expression over dims, or a sympy expression"


class NotText(PlanMessage):
    """A request is named by something other than text, or wants to live in something else.

    Example: `Request(3, 4, (0, 2))`.
    Fix: Give text for `id`, `scope` and `kind`, and a tuple of texts for `pools`.
    """

    title = "the {what} of {request} is {given}"
    help = "give {wanted}"

    request: str
    what: str
    given: str
    wanted: str = "text"


class BadAlignment(PlanMessage):
    """An alignment is not a power of two.

    Example: `Request("a", 4, (0, 2), align=3)`.
    """

    title = "the alignment of {what} `{id}` is {align}"
    help = "an alignment is a power of two, in bytes"


class BadFixed(PlanMessage):
    """A fixed offset is negative, or not a multiple of the alignment.

    Example: `Request("a", 4, (0, 2), align=8, fixed=4)`.
    Fix: Give a multiple of the alignment, zero or more.
    """

    title = "request `{id}` is fixed at offset {fixed}"
    help = "an offset is zero or more, and a multiple of the alignment, here {align}"


@record
class Request:
    """The bytes that one buffer needs, and when.

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

    if TYPE_CHECKING:
        # What is accepted is more than what the fields hold afterwards.
        def __init__(
            self,
            id: str,  # noqa: A002
            size: SizeLike | SupportsIndex | Symbolic,
            live: Sequence[SupportsIndex] | Sequence[Sequence[SupportsIndex]],
            scope: str = "global",
            align: SupportsIndex = 1,
            fixed: SupportsIndex | None = None,
            pools: Sequence[str] = (),
            kind: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        if not (type(self.id) is type(self.scope) is type(self.kind) is str):
            _demand_texts(self)
        # Most are in normal form as they are given, and setting a field of what is frozen takes its time.
        size, live, align, pools = self.size, self.live, self.align, self.pools
        if not (type(size) is int and size >= 0):
            object.__setattr__(self, "size", _size(self.id, size))
        if not (type(live) is tuple and len(live) == 1 and _is_plain(live[0])):
            object.__setattr__(self, "live", _lifetime(self.id, live))
        if not (type(pools) is tuple and (not pools or (len(pools) == 1 and type(pools[0]) is str))):
            object.__setattr__(self, "pools", _pools(self.id, pools))
        if not (type(align) is int and align > 0 and align & (align - 1) == 0):
            if not is_alignment(align):
                raise BadAlignment("request", self.id, shown(align)).error()
            settle_integers(self, "align")
        if self.fixed is not None:
            if not self._may_be_fixed(self.fixed):
                raise BadFixed(self.id, shown(self.fixed), self.align).error()
            settle_integers(self, "fixed")

    @property
    def memories(self) -> tuple[str, ...]:
        """The names of the memories it may live in, best first."""
        return self.pools or (self.scope,)

    @property
    def spans(self) -> str:
        """The lifetime as text."""
        return " ".join(f"[{low}, {high})" for low, high in self.live)

    def _may_be_fixed(self, offset: object) -> bool:
        return is_integer(offset) and int(offset) >= 0 and int(offset) % self.align == 0


def is_integer(value: object) -> TypeGuard[SupportsInt]:
    """Whether `value` is a whole number, NumPy's included; True and False are none."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_alignment(value: object) -> bool:
    """Whether `value` is a power of two."""
    return is_integer(value) and (whole := int(value)) > 0 and whole & (whole - 1) == 0


def settle_integers(part: object, *names: str) -> None:
    """Make ints of those attributes that are integers of another type, as NumPy's are."""
    for name in names:
        value = getattr(part, name)
        if type(value) is not int and is_integer(value):
            object.__setattr__(part, name, int(value))


def _demand_texts(request: Request) -> None:
    """Raises PlanError where a name of the request is not text; classes derived from `str` are."""
    names: tuple[tuple[str, object], ...] = (("id", request.id), ("scope", request.scope), ("kind", request.kind))
    for what, given in names:
        if not isinstance(given, str):
            name = "a request" if what == "id" else f"request `{request.id}`"
            raise NotText(name, what, shown(given)).error()


def _pools(name: str, given: object) -> tuple[str, ...]:
    if given == ():
        return ()
    if type(given) is tuple and {*map(type, given)} == {str}:
        return given
    pools = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if pools is None or not all(isinstance(pool, str) for pool in pools):
        raise NotText(f"request `{name}`", "pools", shown(given), 'a tuple of names, as in ("fast", "slow")').error()
    return pools


def _size(name: str, size: object) -> Size:
    if isinstance(size, Poly):
        return size
    if is_of_sympy(size):
        return size  # type: ignore[return-value]  # a sympy expression, converted by Problem, which knows the dims
    try:
        made = as_size(size)
    except TypeError:
        raise BadSize(name, shown(size)).error() from None
    if isinstance(made, int) and made < 0:
        raise NegativeSize(name, shown(made)).error()
    return made


def _lifetime(name: str, live: Iterable[object]) -> tuple[Interval, ...]:
    try:
        items = tuple(live)
        if len(items) == 2 and hasattr(items[0], "__index__"):
            items = (items,)
        spans = sorted(_interval(item) for item in items)
    except (TypeError, ValueError):
        raise BadLifetime(name, shown(live)).error() from None
    if not spans:
        raise NoLifetime(name).error()
    for low, high in spans:
        if low >= high:
            raise EmptyLifetime(name, low, high).error()
    return joined(spans)


def _is_plain(span: object) -> bool:
    """Whether this is an interval in normal form."""
    if type(span) is not tuple or len(span) != 2:
        return False
    low, high = span
    return type(low) is type(high) is int and low < high


def _interval(item: object) -> Interval:
    """Raises TypeError or ValueError for anything else than a pair of integers."""
    if not isinstance(item, Iterable):
        raise TypeError(item)
    low, high = item
    return operator.index(low), operator.index(high)


def joined(spans: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sorted intervals, with those merged that overlap or touch."""
    apart: list[Interval] = []
    end = 0
    for low, high in spans:
        if not apart or low > end:
            apart.append((low, high))
            end = high
        elif high > end:
            apart[-1] = (apart[-1][0], high)
            end = high
    return tuple(apart)


def most_live(parts: Iterable[tuple[Iterable[Interval], int]]) -> tuple[int, int]:
    """The largest sum of numbers that are live at one time, and the first such time; (0, 0) of nothing."""
    changes: dict[int, int] = {}
    for live, size in parts:
        for low, high in live:
            changes[low] = changes.get(low, 0) + size
            changes[high] = changes.get(high, 0) - size
    times = sorted(changes)
    totals = list(accumulate(changes[time] for time in times))
    most = max(totals, default=0)
    return (most, times[totals.index(most)]) if times else (0, 0)


class BadPool(PlanMessage):
    """The capacity of a pool is negative or not a number of bytes, or its copies are not a number.

    Example: `Pool("sram", capacity=-1)`, `Pool("scratch", copies=2.5)`.
    """

    title = "pool `{name}` has {given} as its {what}"
    help = "a capacity is an integer, zero or more, or None for no limit; copies may be an expression over dims"


@record
class Pool:
    """A memory of the problem.

    `capacity` is in bytes, None without limit. All that lives there is aligned to `align` bytes at least. `copies`
    says how often it exists at run time, once per thread for example, and multiplies its share of the total.
    """

    name: str
    scope: str = "global"
    capacity: int | None = None
    align: int = 1
    copies: Size = 1

    def __post_init__(self) -> None:
        for what, given in (("name", self.name), ("scope", self.scope)):
            if not isinstance(given, str):
                raise NotText("a pool", what, shown(given)).error()
        if not is_alignment(self.align):
            raise BadAlignment("pool", self.name, shown(self.align)).error()
        if self.capacity is not None and not _is_count(self.capacity):
            raise BadPool(self.name, shown(self.capacity), "capacity").error()
        object.__setattr__(self, "copies", _copies(self.name, self.copies))
        settle_integers(self, "capacity", "align")


def _copies(name: str, given: object) -> Size:
    try:
        copies = as_size(given)
    except TypeError:
        raise BadPool(name, shown(given), "copies").error() from None
    if isinstance(copies, int) and copies < 0:
        raise BadPool(name, shown(given), "copies").error()
    return copies


def _is_count(value: object) -> bool:
    return is_integer(value) and int(value) >= 0
