"""Forms the maximum or minimum of sizes, without those that are proved not to matter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from math import gcd
from operator import ge, le
from typing import ClassVar

from tirlite.diag import KernelError
from tirlite.record import record
from tirlite.sizes.bounds import Bounds, of_maximum, of_minimum
from tirlite.sizes.division import divisor_of
from tirlite.sizes.evaluate import dims_of, evaluate, sample_bindings
from tirlite.sizes.poly import (
    Atom,
    Composite,
    Product,
    Quotient,
    Relaxation,
    Size,
    SizeLike,
    as_size,
    bounds_of,
    of_terms,
    terms_of,
)
from tirlite.sizes.prove import is_at_most
from tirlite.sizes.terms import function_ident, level_above, written

# Below this many sizes, proving is cheaper than sampling first.
_SAMPLED_FROM = 4
# A sum of several maxima is not multiplied out beyond this.
_ALTERNATIVES = 32
# This many extrema are kept: proofs form the same few again and again.
_KEPT = 4096
# An extremum in a sum is told apart into this many sums.
_MOST_OF_ONE = 8


def maximum(first: SizeLike, *rest: SizeLike) -> Size:
    """The greatest of the sizes at each binding. Sizes that are proved to be at most another one are left out."""
    return _extremum(Maximum, (first, *rest))


def maximum_of_all(sizes: Sequence[Size]) -> Size:
    """The greatest of several sizes, none of which is a maximum itself, and all of which are known to matter."""
    return _of_all(Maximum, sizes)


def minimum(first: SizeLike, *rest: SizeLike) -> Size:
    """The least of the sizes at each binding. Sizes that are proved to be at least another one are left out."""
    return _extremum(Minimum, (first, *rest))


def alternatives(size: SizeLike) -> tuple[Size, ...]:
    """Sizes whose maximum `size` is: `a + k*b` and `a + k*c` for `a + k*max(b, c)`; a few dozen at most.

    `max(b, c) // d` is taken apart likewise, as division by a positive number keeps the order.
    """
    found = [as_size(size)]
    while len(found) < _ALTERNATIVES:
        split = next(((i, parts) for i, each in enumerate(found) if (parts := _split(each))), None)
        if split is None:
            break
        found[split[0] : split[0] + 1] = split[1]
    return tuple(dict.fromkeys(found))


def _split(size: Size) -> list[Size]:
    for atom, factor in _rising_atoms(size):
        parts: Sequence[Size] = ()
        if isinstance(atom, Maximum):
            parts = atom.sizes
        elif isinstance(atom, Quotient) and isinstance(atom.by, int) and atom.by > 0:
            parts = [part // atom.by for part in _split_maximum(atom.dividend)]
        if parts:
            rest = size - factor * atom
            return [rest + factor * part for part in parts]
    return []


def _split_maximum(size: Size) -> list[Size]:
    for atom, factor in _rising_atoms(size):
        if isinstance(atom, Maximum):
            rest = size - factor * atom
            return [rest + factor * part for part in atom.sizes]
    return []


def _rising_atoms(size: Size) -> Iterator[tuple[Atom, int]]:
    """The atoms that are terms by themselves, with their positive factors."""
    for product, factor in terms_of(size).items():
        if factor > 0 and len(product) == 1:
            yield product[0], factor


@record(eq=False)
class _Candidate:
    """A size that may matter, the argument that it came with, and its values at a few bindings."""

    size: Size
    group: int
    samples: tuple[int, ...]


@record(eq=False)
class _Extremum(Composite):
    """What maxima and minima have in common: several sizes, none of which is proved to be beyond another."""

    name: ClassVar[str]
    sizes: tuple[Size, ...]
    divisor: int = field(init=False)
    bounds: Bounds = field(init=False)
    written: int = field(init=False)
    ident: int = field(init=False)
    _hash: int = field(init=False)
    level: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", written(map(terms_of, self.sizes)))
        object.__setattr__(self, "level", level_above(map(terms_of, self.sizes)))
        object.__setattr__(self, "bounds", self.bound([bounds_of(size) for size in self.sizes]))
        object.__setattr__(self, "divisor", gcd(*(divisor_of(terms_of(size)) for size in self.sizes)))
        # Sorted by their idents, so that the order of the arguments does not matter.
        self._be(function_ident(type(self).__name__, map(terms_of, self.sizes), ordered=False))

    def __reduce__(self) -> tuple[type[_Extremum], tuple[tuple[Size, ...]]]:
        return type(self), (self.sizes,)  # the ident is that of what is read

    @property
    def operands(self) -> tuple[Size, ...]:
        return self.sizes

    def choices(self) -> tuple[Size, ...]:
        return self.sizes

    def spell(self, operands: Sequence[str]) -> str:
        ordered = sorted(operands, key=lambda text: (text.lstrip("-").isdecimal(), text))
        return f"{self.name}({', '.join(ordered)})"

    def value(self, operands: Sequence[int]) -> int:
        return self.pick(operands)

    def mean(self) -> Relaxation:
        """Between the least and the greatest of the sizes lies their mean."""
        total: Size = 0
        for size in self.sizes:
            total = total + size
        return Relaxation(total, len(self.sizes))

    @staticmethod
    @abstractmethod
    def pick(values: Iterable[int]) -> int:
        """The extremum of numbers."""

    @staticmethod
    @abstractmethod
    def bound(operands: Sequence[Bounds]) -> Bounds:
        """The bounds of the extremum, given those of the sizes."""

    @staticmethod
    @abstractmethod
    def beyond(a: _Candidate, b: _Candidate) -> bool:
        """Whether `a` is proved to leave `b` without effect. What their samples refute needs no proof."""


class Maximum(_Extremum):
    """The greatest of several sizes."""

    __slots__ = ()
    name = "max"

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return maximum(*operands)

    @staticmethod
    def bound(operands: Sequence[Bounds]) -> Bounds:
        return of_maximum(operands)

    def below(self) -> tuple[Relaxation, ...]:
        return (*(Relaxation(size) for size in self.sizes), self.mean())

    @staticmethod
    def pick(values: Iterable[int]) -> int:
        return max(values)

    @staticmethod
    def beyond(a: _Candidate, b: _Candidate) -> bool:
        return all(map(ge, a.samples, b.samples)) and is_at_most(b.size, a.size)


class Minimum(_Extremum):
    """The least of several sizes."""

    __slots__ = ()
    name = "min"

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return minimum(*operands)

    @staticmethod
    def bound(operands: Sequence[Bounds]) -> Bounds:
        return of_minimum(operands)

    def above(self) -> tuple[Relaxation, ...]:
        return (*(Relaxation(size) for size in self.sizes), self.mean())

    @staticmethod
    def pick(values: Iterable[int]) -> int:
        return min(values)

    @staticmethod
    def beyond(a: _Candidate, b: _Candidate) -> bool:
        return all(map(le, a.samples, b.samples)) and is_at_most(a.size, b.size)


def _extremum(kind: type[Maximum] | type[Minimum], arguments: Sequence[SizeLike]) -> Size:
    numbers = [argument for argument in arguments if isinstance(argument, int)]
    if len(numbers) == len(arguments):
        return kind.pick(numbers)
    sums = [tuple(terms_of(argument).items()) for argument in arguments if not isinstance(argument, int)]
    return _formed(tuple(sums), kind.pick(numbers) if numbers else None, greatest=kind is Maximum)


@lru_cache(_KEPT)
def _formed(sums: tuple[tuple[tuple[Product, int], ...], ...], number: int | None, *, greatest: bool) -> Size:
    """The extremum of sums, each given by its terms in order, and of a number."""
    kind = Maximum if greatest else Minimum
    groups: list[tuple[Size, ...]] = [] if number is None else [(number,)]
    groups += [_operands_of(kind, of_terms(dict(items))) for items in sums]
    return _of_all(kind, _undominated(kind, groups))


def _of_all(kind: type[Maximum] | type[Minimum], kept: Sequence[Size]) -> Size:
    if len(kept) == 1:
        return kept[0]
    # A common factor stands outside, so that `max(4*m, 4*n) // 4` is `max(m, n)`.
    factor = gcd(*(coefficient for size in kept for coefficient in terms_of(size).values()))
    return factor * as_size(kind(tuple(size // factor for size in kept)))


def _operands_of(kind: type[_Extremum], size: Size) -> tuple[Size, ...]:
    """What `size` is an extremum of, a positive factor multiplied in: several sizes, or itself alone."""
    terms = terms_of(size)
    if len(terms) == 1:
        ((product, factor),) = terms.items()
        if factor > 0 and len(product) == 1 and isinstance(product[0], kind):
            return tuple(factor * each for each in product[0].sizes)
    return (size,)


def _undominated(kind: type[_Extremum], groups: Sequence[tuple[Size, ...]]) -> list[Size]:
    """The sizes that matter. Those of one group are known not to be beyond one another."""
    group_of: dict[Size, int] = {}
    for number, group in enumerate(groups):
        for size in group:
            group_of.setdefault(size, number)
    samples = _samples(list(group_of)) if len(group_of) >= _SAMPLED_FROM else {}
    kept: list[_Candidate] = []
    for size, number in group_of.items():
        new = _Candidate(size, number, samples.get(size, ()))
        if not any(old.group != number and kind.beyond(old, new) for old in kept):
            kept = [old for old in kept if old.group == number or not kind.beyond(new, old)]
            kept.append(new)
    return [candidate.size for candidate in kept]


def _samples(sizes: Sequence[Size]) -> dict[Size, tuple[int, ...]]:
    """The values of each size at the same few bindings."""
    bindings = sample_bindings(dim for size in sizes for dim in dims_of(size))
    try:
        return {size: tuple(evaluate(size, binding) for binding in bindings) for size in sizes}
    except KernelError:  # a division by zero: these bindings tell nothing
        return {}


def each_of(size: Size) -> list[Size]:
    """Sizes that are all at least 0 exactly where a sum is: the sum with each operand in place of an extremum.

    Only the sum itself if it has no such extremum, or too many operands.
    """
    todo, found = [size], []
    while todo:
        each = todo.pop()
        picked = next((term for term in terms_of(each).items() if _is_extremum(*term, least=True)), None)
        if picked is None:
            found.append(each)
        else:
            ((atom,), factor) = picked
            todo += [each + factor * (operand - atom) for operand in reversed(atom.operands)]
        if len(todo) + len(found) > _MOST_OF_ONE:
            return [size]
    return found


def halves_of(size: Size) -> Iterator[Size]:
    """Sizes that imply, if at least 0, that a sum is: the greater of two sizes is no less than their mean."""
    for product, factor in terms_of(size).items():
        if _is_extremum(product, factor, least=False) and abs(factor) == 1 and len(product[0].operands) == 2:
            yield 2 * (size - factor * product[0]) + factor * (product[0].operands[0] + product[0].operands[1]) + 1


def _is_extremum(product: Product, factor: int, *, least: bool) -> bool:
    """Whether a term is the least, or the greatest, of several."""
    return len(product) == 1 and isinstance(product[0], Minimum if (factor > 0) is least else Maximum)
