"""A Pool: a memory that requests may live in. Values in, a checked form out."""

from __future__ import annotations

from tirlite.diag import Message, PlanError
from tirlite.plan.request import BadAlignment, is_alignment
from tirlite.record import record
from tirlite.sizes import Size


class BadCapacity(Message):
    """The capacity of a pool is negative.

    Example: `Pool("sram", capacity=-1)`.
    Fix: Give zero or more bytes, or None for no limit.
    """

    code = "bad-capacity"
    raises = PlanError
    title = "the capacity of pool `{name}` is {capacity} bytes"
    help = "a capacity is zero or more, or None for no limit"

    name: str
    capacity: str


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
        if not is_alignment(self.align):
            raise BadAlignment("pool", self.name, repr(self.align)).error()
        if self.capacity is not None and self.capacity < 0:
            raise BadCapacity(self.name, str(self.capacity)).error()
