"""Evaluates sizes at values for their dims, to numbers or to other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add, mul
from typing import TypeVar

from tirlite.diag import Message
from tirlite.sizes.dim import Dim
from tirlite.sizes.poly import Atom, Composite, Poly, Size, SizeLike, Terms, bare, inside_out, of_terms, terms_of
from tirlite.sizes.terms import replace

A = TypeVar("A", bound=Atom)


def as_number(size: Size) -> int:
    """A size without dims as the number that it is."""
    assert isinstance(size, int)
    return size


class DimWithoutValue(Message):
    """A size was evaluated without a value for one of its dims.

    Example: `plan.at({n: 4})` of a plan whose sizes mention `m` too.
    Fix: Give a value for each dim.
    """

    title = "no value is given for the dim `{name}` of the size `{size}`"


def dims_of(size: SizeLike) -> tuple[Dim, ...]:
    """The dims that a size depends on, by name."""
    if isinstance(size, int):
        return ()
    dims = [atom for atom in inside_out(size) if isinstance(atom, Dim)]
    return tuple(sorted(dims, key=lambda dim: (dim.name, dim.ident)))


def evaluate(size: SizeLike, binding: Mapping[Dim, int]) -> int:
    """The value of a size, exact, with each dim standing for its value in `binding`, which must obey the dim's facts.

    Raises KernelError for a dim without a value and for a division by zero.
    """
    if isinstance(size, int):
        return size
    if isinstance(size, Poly) and isinstance(dim := bare(size), Dim) and dim in binding:
        return int(binding[dim])
    values: dict[Atom, int] = {}
    for atom in inside_out(size):
        if isinstance(atom, Dim):
            if atom not in binding:
                raise DimWithoutValue(atom.name, str(size)).error()
            values[atom] = int(binding[atom])
        elif isinstance(atom, Composite):
            values[atom] = atom.value([_value(terms_of(operand), values) for operand in atom.operands])
        else:
            raise DimWithoutValue(str(atom), str(size)).error()
    return _value(terms_of(size), values)


class Evaluated:
    """Evaluates sizes at several bindings, as `evaluate` does at each, with each atom evaluated once."""

    def __init__(self, bindings: Sequence[Mapping[Dim, int]]) -> None:
        self._bindings = bindings
        self._atoms: dict[Atom, list[int]] = {}

    def values(self, size: SizeLike) -> tuple[int, ...]:
        """The value at each binding. Raises KernelError as `evaluate` does."""
        if isinstance(size, int):
            return (size,) * len(self._bindings)
        for atom in inside_out(size):
            if atom not in self._atoms:
                self._atoms[atom] = self._column(atom)
        return tuple(self._sums(terms_of(size)))

    def _column(self, atom: Atom) -> list[int]:
        if isinstance(atom, Dim) and all(atom in binding for binding in self._bindings):
            return [int(binding[atom]) for binding in self._bindings]
        if not isinstance(atom, Composite):
            return [evaluate(atom, binding) for binding in self._bindings]
        operands = [self._sums(terms_of(operand)) for operand in atom.operands]
        return [atom.value(row) for row in zip(*operands, strict=True)]

    def _sums(self, terms: Terms) -> list[int]:
        sums = [0] * len(self._bindings)
        for product, coefficient in terms.items():
            column = [coefficient] * len(sums)
            for atom in product:
                column = list(map(mul, column, self._atoms[atom]))
            sums = list(map(add, sums, column))
        return sums


def sample_bindings(dims: Iterable[Dim]) -> tuple[dict[Dim, int], ...]:
    """A few bindings that obey the facts and tell unrelated sizes apart: of two dims, each is once the lesser."""
    order = list(dict.fromkeys(dims))
    count = len(order)
    rising = range(1, count + 1)
    shuffled = [[place * prime % (2 * count + 1) for place in rising] for prime in (7, 19, 43, 101)]
    steps = [[0] * count, [1000 + 7 * place for place in rising], list(rising), list(reversed(rising)), *shuffled]
    return tuple({dim: dim.nth(step) for dim, step in zip(order, row, strict=True)} for row in steps)


def _value(terms: Terms, values: Mapping[Atom, int]) -> int:
    total = 0
    for product, coefficient in terms.items():
        for atom in product:
            coefficient *= values[atom]
        total += coefficient
    return total


def substitute(size: SizeLike, values: Mapping[A, SizeLike]) -> Size:
    """`size` with the atoms in `values` replaced by sizes, all at once, and simplified.

    An atom that is replaced takes its operands with it.

    Raises KernelError where that makes a division by zero.
    """
    if isinstance(size, int):
        return size
    wanted = dict[Atom, SizeLike](values.items())
    atoms = inside_out(size)
    if isinstance(size, Poly) and wanted.keys().isdisjoint(atoms):
        return size
    images: dict[Atom, Terms] = {}
    for atom in atoms:
        if isinstance(atom, Composite) and atom not in wanted:
            operands = [of_terms(replace(terms_of(operand), images)) for operand in atom.operands]
            images[atom] = terms_of(atom.rebuild(operands))
        else:
            images[atom] = terms_of(wanted.get(atom, atom))
    return of_terms(replace(terms_of(size), images))
