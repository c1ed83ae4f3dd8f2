"""Sizes in, their maximum or minimum out, with what is proved not to matter left out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd

from tirlite.diag import KernelError
from tirlite.sizes.bounds import Bounds, of_maximum, of_minimum
from tirlite.sizes.division import divisor_of
from tirlite.sizes.evaluate import dims_of, evaluate, sample_bindings
from tirlite.sizes.poly import Atom, Relaxation, Size, SizeLike, as_size, atom_of, bounds_of, composite_ident, terms_of
from tirlite.sizes.prove import at_most

# Below this many sizes, proving is cheaper than sampling first.
_SAMPLED_FROM = 4


def maximum(first: SizeLike, *rest: SizeLike) -> Size:
    """The greatest of the sizes at each binding. Sizes that are proved to be at most another one are left out."""
    return _extremum(Maximum, (first, *rest))


def minimum(first: SizeLike, *rest: SizeLike) -> Size:
    """The least of the sizes at each binding. Sizes that are proved to be at least another one are left out."""
    return _extremum(Minimum, (first, *rest))


@dataclass(frozen=True, slots=True, eq=False)
class _Extremum(Atom):
    """What maxima and minima have in common: several sizes, none of which is proved to be beyond another."""

    sizes: tuple[Size, ...]
    divisor: int = field(init=False)
    bounds: Bounds = field(init=False)
    ident: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", self.bound([bounds_of(size) for size in self.sizes]))
        object.__setattr__(self, "divisor", gcd(*(divisor_of(terms_of(size)) for size in self.sizes)))
        # Sorted by their idents, so that the order of the arguments does not matter.
        object.__setattr__(self, "ident", composite_ident(type(self).__name__, self.sizes, ordered=False))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.ident == other.ident)

    def __hash__(self) -> int:
        return hash(self.ident)

    @property
    def operands(self) -> tuple[Size, ...]:
        return self.sizes

    def choices(self) -> tuple[Size, ...]:
        return self.sizes

    def value(self, operands: Sequence[int]) -> int:
        return self.pick(operands)

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
    def beyond(a: Size, b: Size) -> bool:
        """Whether `a` is proved to leave `b` without effect."""

    @classmethod
    def may_be_beyond(cls, a: Sequence[int], b: Sequence[int]) -> bool:
        """Whether samples of `a` and `b` at the same bindings leave open that `a` is beyond `b`."""
        return all(cls.pick(pair) == pair[0] for pair in zip(a, b, strict=True))


class Maximum(_Extremum):
    """The greatest of several sizes."""

    __slots__ = ()

    def spell(self, operands: Sequence[str]) -> str:
        return _call("max", operands)

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return maximum(*operands)

    @staticmethod
    def bound(operands: Sequence[Bounds]) -> Bounds:
        return of_maximum(operands)

    def below(self) -> tuple[Relaxation, ...]:
        return tuple(Relaxation(size) for size in self.sizes)

    @staticmethod
    def pick(values: Iterable[int]) -> int:
        return max(values)

    @staticmethod
    def beyond(a: Size, b: Size) -> bool:
        return at_most(b, a)


class Minimum(_Extremum):
    """The least of several sizes."""

    __slots__ = ()

    def spell(self, operands: Sequence[str]) -> str:
        return _call("min", operands)

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return minimum(*operands)

    @staticmethod
    def bound(operands: Sequence[Bounds]) -> Bounds:
        return of_minimum(operands)

    def above(self) -> tuple[Relaxation, ...]:
        return tuple(Relaxation(size) for size in self.sizes)

    @staticmethod
    def pick(values: Iterable[int]) -> int:
        return min(values)

    @staticmethod
    def beyond(a: Size, b: Size) -> bool:
        return at_most(a, b)


def _call(name: str, operands: Sequence[str]) -> str:
    return f"{name}({', '.join(sorted(operands, key=lambda text: (text.lstrip('-').isdecimal(), text)))})"


def _extremum(kind: type[Maximum] | type[Minimum], arguments: Sequence[SizeLike]) -> Size:
    numbers = [argument for argument in arguments if isinstance(argument, int)]
    if len(numbers) == len(arguments):
        return kind.pick(numbers)
    groups: list[tuple[Size, ...]] = [(kind.pick(numbers),)] if numbers else []
    groups += [_operands_of(kind, as_size(argument)) for argument in arguments if not isinstance(argument, int)]
    kept = _undominated(kind, groups)
    return kept[0] if len(kept) == 1 else as_size(kind(tuple(kept)))


def _operands_of(kind: type[_Extremum], size: Size) -> tuple[Size, ...]:
    """What `size` is an extremum of: several sizes, or itself alone."""
    return next((extremum.sizes for extremum in atom_of(size, kind)), (size,))


def _undominated(kind: type[_Extremum], groups: Sequence[tuple[Size, ...]]) -> list[Size]:
    """The sizes that matter. Those of one group are known not to be beyond one another."""
    group_of: dict[Size, int] = {}
    for number, group in enumerate(groups):
        for size in group:
            group_of.setdefault(size, number)
    samples = _samples(list(group_of)) if len(group_of) >= _SAMPLED_FROM else {}

    def beyond(a: Size, b: Size) -> bool:
        if group_of[a] == group_of[b] or (samples and not kind.may_be_beyond(samples[a], samples[b])):
            return False
        return kind.beyond(a, b)

    kept: list[Size] = []
    for size in group_of:
        if not any(beyond(other, size) for other in kept):
            kept = [other for other in kept if not beyond(size, other)]
            kept.append(size)
    return kept


def _samples(sizes: Sequence[Size]) -> dict[Size, tuple[int, ...]]:
    """The values of each size at a few bindings; what differs there needs no proof."""
    bindings = sample_bindings(dim for size in sizes for dim in dims_of(size))
    try:
        return {size: tuple(evaluate(size, binding) for binding in bindings) for size in sizes}
    except KernelError:  # a division by zero: these bindings tell nothing
        return {}
