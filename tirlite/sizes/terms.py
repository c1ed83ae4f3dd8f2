"""Calculates with sums of products as dictionaries {product: coefficient}.

A product is a tuple of factors in the order of their `ident`, repeated for powers; `()` is the constant term.
No coefficient is 0.
"""

from __future__ import annotations

from _blake2 import blake2b  # the module hashlib loads a library
from collections.abc import Iterable, Mapping
from itertools import count
from operator import attrgetter
from typing import TypeVar

from tirlite.diag import Message
from tirlite.sizes.bounds import Bounds

# What a product of two sums may have at most, multiplied out: twenty sums of two terms would make a million, and proofs
# take their time by terms and by factors.
MOST_TERMS, MOST_FACTORS = 1024, 24
# What a size may have in factors, with those in its divisions and maxima counted wherever they occur: `n = n + n//8`,
# said forty times, is a size too long to print.
MOST_WRITTEN = 100_000


class SizeTooLong(Message):
    """A size has very many terms or factors once it is multiplied out, so that no proof of it would come to an end.

    Example: `(n + m + k)**60` as the size of a buffer in a table, or a product of sizes that grows so.
    """

    title = "a size is too long: multiplied out, it has up to {count} {parts}, and {most} are the most"
    help = "give a dim of its own to a part of it"


# The low bits of an ident tell which origin a factor comes from: 0 is that of dims, which are their names and facts.
_ORIGIN_BITS = 64
_ORIGIN_MASK = (1 << _ORIGIN_BITS) - 1
_origins = count(1)


class Origin:
    """What one function makes its own factors from. It numbers them, so the order of factors is the same in every
    process, whatever was compiled before; factors of different origins differ.
    """

    def __init__(self) -> None:
        self._number = next(_origins)
        self._serials = count()

    def ident(self) -> int:
        """A new ident."""
        return ident_of(next(self._serials), self._number)

    def again(self, serial: int) -> int:
        """The ident of what had this number where it was written; new ones are after it."""
        self._serials = count(max(serial + 1, next(self._serials)))
        return ident_of(serial, self._number)

    def __reduce__(self) -> tuple[type[Origin], tuple[()]]:
        return Origin, ()  # one for all factors that are written together


def ident_of(order: int, origin: int = 0) -> int:
    """The ident of a factor that stands at `order` among those of its origin."""
    return (order << _ORIGIN_BITS) + origin


def serial_of(ident: int) -> int:
    """The number of a factor among those of its origin, which is the same in every process."""
    return ident >> _ORIGIN_BITS


class Factor:
    """What products are made of: a variable, and what is known of its values.

    Two factors are equal if and only if their idents are. `divisor` divides every value, and `bounds` hold every value.
    """

    __slots__ = ()
    ident: int
    _hash: int  # that of the ident: products are the keys of sums
    divisor: int
    bounds: Bounds

    def _be(self, ident: int) -> None:
        """Take on what it is told apart by."""
        object.__setattr__(self, "ident", ident)
        object.__setattr__(self, "_hash", hash(ident))

    @property
    def written(self) -> int:
        """How many variables and numbers there are in its text."""
        return 1

    @property
    def level(self) -> int:
        """0 for what has one value at a binding of dims, 1 for an unknown, one more for each function around some."""
        return 0

    @property
    def varies(self) -> bool:
        """Whether it is an unknown or a function of some."""
        return self.level > 0


F = TypeVar("F", bound=Factor)

_by_ident = attrgetter("ident")


def accumulate(into: dict[tuple[F, ...], int], terms: Mapping[tuple[F, ...], int], scale: int = 1) -> None:
    """Add `scale * terms` to `into`, in place."""
    if scale == 0:
        return
    for product, coefficient in terms.items():
        total = into.get(product, 0) + scale * coefficient
        if total:
            into[product] = total
        else:
            del into[product]


def add(a: Mapping[tuple[F, ...], int], b: Mapping[tuple[F, ...], int], scale: int = 1) -> dict[tuple[F, ...], int]:
    """`a + scale * b`."""
    total = dict(a)
    accumulate(total, b, scale)
    return total


def scaled(terms: Mapping[tuple[F, ...], int], scale: int) -> dict[tuple[F, ...], int]:
    """`scale * terms`."""
    return {product: scale * coefficient for product, coefficient in terms.items()} if scale else {}


def is_constant(terms: Mapping[tuple[F, ...], int]) -> bool:
    """Whether the sum is a number."""
    return not terms or (len(terms) == 1 and () in terms)


def multiply(a: Mapping[tuple[F, ...], int], b: Mapping[tuple[F, ...], int]) -> dict[tuple[F, ...], int]:
    """`a * b`, multiplied out. Raises KernelError where that has too many terms or factors."""
    if len(a) > 1 and len(b) > 1 and len(a) * len(b) > MOST_TERMS:
        raise SizeTooLong(len(a) * len(b), "terms", MOST_TERMS).error()
    factors = max(map(len, a), default=0) + max(map(len, b), default=0)
    if factors > MOST_FACTORS:
        raise SizeTooLong(factors, "factors in one term", MOST_FACTORS).error()
    result: dict[tuple[F, ...], int] = {}
    for left, coefficient in a.items():
        if left:
            accumulate(result, {join(left, right): c for right, c in b.items()}, coefficient)
        else:
            accumulate(result, b, coefficient)
    return result


def join(a: tuple[F, ...], b: tuple[F, ...]) -> tuple[F, ...]:
    """The product of two products."""
    if not a:
        return b
    if not b:
        return a
    return tuple(sorted(a + b, key=_by_ident))


def without(product: tuple[F, ...], divisor: tuple[F, ...]) -> tuple[F, ...] | None:
    """`product / divisor`, or None where it is not a product."""
    rest = list(product)
    for factor in divisor:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def replace(
    terms: Mapping[tuple[F, ...], int], images: Mapping[F, Mapping[tuple[F, ...], int]]
) -> dict[tuple[F, ...], int]:
    """`terms` with the sums that `images` names in the place of factors, in all their powers; all at once."""
    result: dict[tuple[F, ...], int] = {}
    known: dict[tuple[F, ...], Mapping[tuple[F, ...], int]] = {(): {(): 1}}
    for product, coefficient in terms.items():
        kept = tuple(factor for factor in product if factor not in images)
        gone = tuple(factor for factor in product if factor in images) if len(kept) < len(product) else ()
        for end in range(1, len(gone) + 1):
            if gone[:end] not in known:
                known[gone[:end]] = multiply(known[gone[: end - 1]], images[gone[end - 1]])
        accumulate(result, multiply({kept: coefficient}, known[gone]))
    return result


def written(sums: Iterable[Mapping[tuple[F, ...], int]]) -> int:
    """How many variables and numbers there are in the text of some sums. Raises KernelError where they are too many."""
    count = sum(1 + sum(factor.written for factor in product) for terms in sums for product in terms)
    if count > MOST_WRITTEN:
        raise SizeTooLong(count, "parts", MOST_WRITTEN).error()
    return count


def level_above(sums: Iterable[Mapping[tuple[F, ...], int]]) -> int:
    """The level of a function of some sums."""
    highest = max((factor.level for terms in sums for product in terms for factor in product), default=0)
    return highest + 1 if highest else 0


def _fingerprint(terms: Mapping[tuple[F, ...], int], origins: set[int]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Equal for equal sums, different for different ones of the same origins, which are added to `origins`."""
    found = []
    for product, coefficient in terms.items():
        idents = [factor.ident for factor in product]
        origins.update(ident & _ORIGIN_MASK for ident in idents)
        found.append((tuple(ident >> _ORIGIN_BITS for ident in idents), coefficient))
    return tuple(sorted(found))


def function_ident(kind: str, operands: Iterable[Mapping[tuple[F, ...], int]], *, ordered: bool = True) -> int:
    """The ident of a factor that is a function of `operands`: a digest, so comparing never walks into deep sums.

    All that `operands` are made of is of one origin, but for dims.
    """
    origins = {0}
    prints = [repr(_fingerprint(operand, origins)) for operand in operands]
    assert len(origins) <= 2, "a size is made of sizes of two functions"
    if not ordered:
        prints.sort()
    digest = blake2b("\n".join([kind, *prints]).encode(), digest_size=16).digest()
    # Dims stand below zero, what an origin numbers is small: the top bit keeps functions of these apart.
    return ident_of(int.from_bytes(digest) | 1 << 128, max(origins))


def operand_text(text: str) -> str:
    """`text`, in parentheses unless it is a name, a number or a call."""
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def spell(terms: Mapping[tuple[F, ...], int], names: Mapping[F, str], loose: Mapping[F, bool]) -> str:
    """The sum as Python source over the `names` of its factors, as in `4*m*n - k + 8`.

    A factor that is `loose` is parenthesised in products. The order depends on the names and coefficients alone: the
    constant last (but `8 - n`), before it what is added before what is subtracted, higher degrees first.
    """

    parts = sorted(
        (not product, coefficient < 0, -len(product), *_spell_product(product, abs(coefficient), names, loose))
        for product, coefficient in terms.items()
    )
    if parts and parts[0][1] and parts[-1][:2] == (True, False):
        parts.insert(0, parts.pop())
    text = ""
    for place, (_, negative, _, part, open_ended) in enumerate(parts):
        if place == 0:
            # `-n//8` would negate before it divides.
            text = (f"-({part})" if open_ended else f"-{part}") if negative else part
        else:
            text += f" - {part}" if negative else f" + {part}"
    return text or "0"


def _spell_product(
    product: tuple[F, ...], coefficient: int, names: Mapping[F, str], loose: Mapping[F, bool]
) -> tuple[str, bool]:
    """The text of one product, and whether it is loose itself."""
    if coefficient == 1 and len(product) == 1:
        return names[product[0]], loose[product[0]]
    factors = sorted(f"({names[f]})" if loose[f] else names[f] for f in product)
    number = [str(coefficient)] if coefficient != 1 or not product else []
    return "*".join(number + factors), False
