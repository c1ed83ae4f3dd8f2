"""Makes dims: symbols with a name and facts that stand for integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import NoReturn

from tirlite.diag import Message
from tirlite.record import record
from tirlite.show import shown
from tirlite.sizes.bounds import Bounds
from tirlite.sizes.poly import Atom, Size
from tirlite.sizes.terms import Origin, ident_of

# Bits of numbers that have less than 4300 decimal digits, surely.
_LONG = 14_000


class DimFactsDiffer(Message):
    """Two dims of one name have different facts, and meet in one kernel, graph or storage problem.

    Example: `tl.dim("n")` in one module, `tl.dim("n", max=64)` in another, and an array with an extent of each.
    """

    title = "two dims are called `{name}`: {first}, and {second}"
    help = "a dim is its name: declare both with the same facts, or give them two names"


class BadFacts(Message):
    """A dim was declared with facts that no integer obeys.

    Example: `tl.dim("n", min=9, max=8)`.
    Fix: Declare facts that some integer obeys.
    """

    code = "bad-dim-facts"
    title = "no integer is a value of dim `{name}`: {why}"
    help = "`min` and `max` are inclusive; `multiple_of` is at least 1"


@record(eq=False)
class Dim(Atom):
    """A symbolic extent: any integer from `min` to `max` that is a multiple of `multiple_of`.

    A dim is its name and its facts: two with the same are equal, wherever they were made. Arithmetic on dims gives
    sizes. Raises KernelError where no integer obeys the facts.
    """

    name: str
    min: int = 1
    max: int | None = None
    multiple_of: int = 1
    ident: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
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
        self._be(self._ident())
        object.__setattr__(self, "divisor", self.multiple_of)
        object.__setattr__(self, "bounds", Bounds(low, high))

    def _ident(self) -> int:
        # Below zero, where no other atom's is: its text, read as a number.
        most = "" if self.max is None else f"{self.max:x}"
        text = f"{self.name}\0{self.min:x}\0{most}\0{self.multiple_of:x}"
        return ident_of(-int.from_bytes(text.encode(errors="surrogatepass")))

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

    @property
    def told(self) -> str:
        """The facts beyond that it is positive, as keywords: `min=0, max=8`."""
        facts = (("min", self.min, 1), ("max", self.max, None), ("multiple_of", self.multiple_of, 1))
        return ", ".join(f"{fact}={_spelled(value)}" for fact, value, default in facts if value != default)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(filter(None, (repr(self.name), self.told)))})"

    def __str__(self) -> str:
        return self.name

    def spell(self, operands: Sequence[str]) -> str:
        return self.name

    def definition(self) -> Size | None:
        return self.low if self.low == self.high else None


@record(eq=False, repr=False)
class Scalar(Dim):
    """A number that is given by itself, as a scalar parameter is: it equals itself alone, whatever its name.

    Those that may meet in one size are of one origin.
    """

    origin: Origin = field(default_factory=Origin)

    def _ident(self) -> int:
        return self.origin.ident()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"`{self}` is not a dim but a number of one function, which alone can tell it from others")


def _spelled(value: int | None) -> str:
    """The number as Python source: in hexadecimal where it has more digits than Python writes out."""
    return str(value) if value is None or value.bit_length() < _LONG else hex(value)


def contradiction(dims: Iterable[Dim]) -> DimFactsDiffer | None:
    """What is wrong where two of these dims have one name and different facts; None where no two have."""
    known: dict[str, Dim] = {}
    for dim in dims:
        first = known.setdefault(dim.name, dim)
        if first != dim and not isinstance(dim, Scalar) and not isinstance(first, Scalar):
            return DimFactsDiffer(dim.name, *(each.told or "no facts" for each in (first, dim)))
    return None
