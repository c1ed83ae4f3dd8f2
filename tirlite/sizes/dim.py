"""Dims: a name and facts in, a symbol that stands for an integer out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import count

from tirlite.diag import KernelError, Message
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.poly import Atom, Size

_serials = count()


class BadFacts(Message):
    """A dim was declared with facts that no integer obeys.

    Example: `tl.dim("n", min=9, max=8)`.
    Fix: Declare facts that some integer obeys.
    """

    code = "bad-dim-facts"
    raises = KernelError
    title = "no integer is a value of dim `{name}`: {why}"
    help = "`min` and `max` are inclusive; `multiple_of` is at least 1"

    name: str
    why: str


@record(eq=False)
class Dim(Atom):
    """A symbolic extent: any integer from `min` to `max` that is a multiple of `multiple_of`.

    Two dims are never equal, whatever their names. Arithmetic on dims gives sizes. Raises KernelError where no integer
    obeys the facts.
    """

    name: str
    min: int = 1
    max: int | None = None
    multiple_of: int = 1
    ident: int = field(init=False, repr=False, default_factory=lambda: next(_serials))
    divisor: int = field(init=False, repr=False)
    bounds: Bounds = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.multiple_of < 1:
            raise BadFacts(self.name, f"multiple_of={shown(self.multiple_of)} is below 1").error()
        if self.max is not None and self.max < self.min:
            raise BadFacts(self.name, f"max={shown(self.max)} is below min={shown(self.min)}").error()
        low = -(-self.min // self.multiple_of) * self.multiple_of
        high = None if self.max is None else self.max // self.multiple_of * self.multiple_of
        if high is not None and high < low:
            least, most, step = shown(self.min), shown(self.max), shown(self.multiple_of)
            raise BadFacts(self.name, f"no multiple of {step} lies between min={least} and max={most}").error()
        object.__setattr__(self, "divisor", self.multiple_of)
        object.__setattr__(self, "bounds", Bounds(low, high))

    @property
    def low(self) -> int:
        """The least value: `min` rounded up to a multiple."""
        assert self.bounds.low is not None
        return self.bounds.low

    @property
    def high(self) -> int | None:
        """The greatest value: `max` rounded down to a multiple."""
        return self.bounds.high

    def nth(self, step: int) -> int:
        """The value `step` values above the least one, or the greatest value if that comes first."""
        value = self.low + step * self.multiple_of
        return value if self.high is None else min(value, self.high)

    def __str__(self) -> str:
        return self.name

    def spell(self, operands: Sequence[str]) -> str:
        return self.name

    def definition(self) -> Size | None:
        return self.low if self.low == self.high else None
