"""Defines a Pool, a memory that requests may live in, and checks its values."""

from __future__ import annotations

from numbers import Integral

from tirlite.diag import Message, PlanError
from tirlite.plan.request import BadAlignment, NotText, is_alignment, settle_integers
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes import Size, as_size


class BadCapacity(Message):
    """The capacity of a pool is negative, or no number of bytes.

    Example: `Pool("sram", capacity=-1)`.
    Fix: Give zero or more bytes, or None for no limit.
    """

    code = "bad-capacity"
    raises = PlanError
    title = "the capacity of pool `{name}` is {capacity} bytes"
    help = "a capacity is an integer, zero or more, or None for no limit"

    name: str
    capacity: str


class BadCopies(Message):
    """The copies of a pool are not a number.

    Example: `Pool("scratch", copies=2.5)`.
    Fix: Give an integer, zero or more, or an expression over dims.
    """

    code = "bad-copies"
    raises = PlanError
    title = "the copies of pool `{name}` are {copies}"
    help = "give an integer, zero or more, or an expression over dims"

    name: str
    copies: str


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
            raise BadCapacity(self.name, shown(self.capacity)).error()
        object.__setattr__(self, "copies", _copies(self.name, self.copies))
        settle_integers(self, "capacity", "align")


def _copies(name: str, given: object) -> Size:
    try:
        copies = as_size(given)
    except TypeError:
        raise BadCopies(name, shown(given)).error() from None
    if isinstance(copies, int) and copies < 0:
        raise BadCopies(name, shown(given)).error()
    return copies


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and int(value) >= 0
