"""Makes symbolic sizes of ints, atoms and sums: sums in normal form.

A size is an int, or a `Poly`: a sum of integer multiples of products of atoms. An atom is a dim, or a form that is not
a polynomial (a quotient, a remainder, a maximum). Equal sums have equal normal forms, so sizes are compared by value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from math import gcd
from operator import index
from typing import Self, SupportsIndex, TypeAlias, TypeVar

from tirlite.diag import Message
from tirlite.record import record
from tirlite.sizes.bounds import Bounds, of_quotient, of_remainder
from tirlite.sizes.division import divisor_of, quotient_by_int, quotient_by_sum, remainder_by_int, remainder_by_sum
from tirlite.sizes.terms import Factor, add, function_ident, level_above, multiply, operand_text, scaled, spell, written

Product: TypeAlias = "tuple[Atom, ...]"
Terms: TypeAlias = "Mapping[Product, int]"
Size: TypeAlias = "int | Poly"
SizeLike: TypeAlias = "int | Atom | Poly"

_Operand: TypeAlias = "SupportsIndex | Atom | Poly"

# The largest number that comes of two: an i64 holds it, and what is added to it.
_LARGEST = 1 << 62


class DivisionByZero(Message):
    """A size was divided by zero, while it was written down or while it was evaluated.

    Example: `n // (m - 4)` where `m` is 4.
    Fix: Correct the divisor.
    """

    code = "size-division-by-zero"
    title = "the size `{dividend}` is divided by zero in `{division}`"


class Arithmetic:
    """The operators `+ - * // %` and unary `-`, between ints, dims and sizes. They floor, as Python's do."""

    __slots__ = ()
    # NumPy integers on the left leave the operation to us.
    __array_ufunc__: None = None

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _sympy_(self) -> object:
        return import_module("tirlite.sizes.exchange").to_sympy(self)

    def __add__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else of_terms(add(terms_of(self), terms))

    def __sub__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else of_terms(add(terms_of(self), terms, -1))

    def __rsub__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else of_terms(add(terms, terms_of(self), -1))

    def __mul__(self, other: _Operand) -> Size:
        if type(other) is int:
            return of_terms(scaled(terms_of(self), other))
        terms = _terms(other, self)
        return NotImplemented if terms is None else of_terms(multiply(terms_of(self), terms))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return of_terms(scaled(terms_of(self), -1))

    def __pos__(self) -> Size:
        return of_terms(terms_of(self))

    def __floordiv__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else quotient(self + 0, of_terms(terms))

    def __rfloordiv__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else quotient(of_terms(terms), self + 0)

    def __mod__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else remainder(self + 0, of_terms(terms))

    def __rmod__(self, other: _Operand) -> Size:
        terms = _terms(other, self)
        return NotImplemented if terms is None else remainder(of_terms(terms), self + 0)


@record
class Relaxation:
    """A bound of an atom by a simpler size: `scale * by * atom` is at least, or at most, `size`; `scale > 0`."""

    size: Size
    scale: int = 1
    by: Product = ()


class Atom(Arithmetic, Factor):
    """What a size is made of, and what is known of it: a dim, or a function of other sizes."""

    __slots__ = ()  # and not an `ABC`: to ask whether a value is an instance of one takes several times as long

    def __eq__(self, other: object) -> bool:
        return self.ident == other.ident if isinstance(other, Atom) else of_terms({(self,): 1}) == other

    def __hash__(self) -> int:
        return self._hash

    @property
    def operands(self) -> tuple[Size, ...]:
        """The sizes that this atom is a function of."""
        return ()

    @property
    def loose(self) -> bool:
        """Whether its text needs parentheses in a product."""
        return False

    @abstractmethod
    def spell(self, operands: Sequence[str]) -> str:
        """Its text, made of the texts of its operands. Operands that are sums are not parenthesised yet."""

    def definition(self) -> Size | None:
        """A size that always equals it and that more can be proved of, or None."""
        return None

    def choices(self) -> tuple[Size, ...]:
        """Sizes of which it always equals one; empty where there are none."""
        return ()

    def below(self) -> tuple[Relaxation, ...]:
        """Simpler sizes that it is at least."""
        return ()

    def above(self) -> tuple[Relaxation, ...]:
        """Simpler sizes that it is at most."""
        return ()


class Composite(Atom):
    """An atom that is a function of its operands. Two are equal if they are the same function of equal operands."""

    __slots__ = ()

    @abstractmethod
    def value(self, operands: Sequence[int]) -> int:
        """Its value at these values of its operands."""

    @abstractmethod
    def rebuild(self, operands: Sequence[Size]) -> Size:
        """The same function of other operands."""


@record(eq=False, repr=False)
class Poly(Arithmetic):
    """A size that is not constant, in normal form. Made by arithmetic on dims, never directly.

    `==` and `hash` go by value, and a Poly of one dim equals that dim. It equals an expression of the IR that stands
    for the same size, which is hashed by identity all the same. There is no order: see `prove_le`.
    """

    terms: Terms
    # Sizes are keys of many tables, and the same one is evaluated at many bindings.
    _hash: int = field(default=0, init=False)
    _atoms: tuple[Atom, ...] = field(default=(), init=False)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Poly):
            return self is other or self.terms == other.terms
        terms = {(other,): 1} if isinstance(other, Atom) else _terms_of_expression(other, self)
        return NotImplemented if terms is None else self.terms == terms

    def __hash__(self) -> int:
        if not self._hash:
            atom = bare(self)
            object.__setattr__(self, "_hash", hash(frozenset(self.terms.items())) if atom is None else hash(atom))
        return self._hash

    def __reduce__(self) -> tuple[type[Poly], tuple[Terms]]:
        return Poly, (self.terms,)  # written alike, whatever was asked of it before

    def __str__(self) -> str:
        names: dict[Atom, str] = {}
        loose = {atom: atom.loose for atom in inside_out(self)}
        for atom in loose:
            names[atom] = atom.spell([spell(terms_of(operand), names, loose) for operand in atom.operands])
        return spell(self.terms, names, loose)

    __repr__ = __str__


@record(eq=False)
class _Division(Composite):
    """What quotients and remainders have in common."""

    dividend: Size
    by: Size
    divisor: int
    bounds: Bounds
    written: int = field(init=False)
    ident: int = field(init=False)
    _hash: int = field(init=False)
    level: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", written(map(terms_of, self.operands)))
        self._be(function_ident(type(self).__name__, map(terms_of, self.operands)))
        object.__setattr__(self, "level", level_above(map(terms_of, self.operands)))

    def __reduce__(self) -> tuple[type[_Division], tuple[Size, Size, int, Bounds]]:
        return type(self), (self.dividend, self.by, self.divisor, self.bounds)  # the ident is that of what is read

    @property
    def operands(self) -> tuple[Size, ...]:
        return (self.dividend, self.by)

    @property
    def loose(self) -> bool:
        return True

    def _granule(self) -> int:
        """What divides the dividend's values, as far as that matters to a division by a number."""
        return gcd(divisor_of(terms_of(self.dividend)), divisor_of(terms_of(self.by)))

    def _divisor_product(self) -> tuple[Product, ...]:
        """The divisor as a product, where it is one."""
        ((product, coefficient), *more) = terms_of(self.by).items()
        return (product,) if coefficient == 1 and not more else ()


class Quotient(_Division):
    """`dividend // by`, floored."""

    __slots__ = ()

    def spell(self, operands: Sequence[str]) -> str:
        return f"{operand_text(operands[0])}//{operand_text(operands[1])}"

    def value(self, operands: Sequence[int]) -> int:
        x, y = operands
        if y == 0:
            raise DivisionByZero(str(self.dividend), str(self + 0)).error()
        return x // y

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return quotient(*operands)

    def definition(self) -> Size | None:
        """The quotient of an extremum, and a number added to it, is the extremum of the quotients."""
        terms = terms_of(self.dividend)
        constant = terms.get((), 0)
        products = [(product, coefficient) for product, coefficient in terms.items() if product]
        if not isinstance(self.by, int) or len(products) != 1:
            return None
        ((product, coefficient),) = products
        inner = product[0]
        if coefficient < 0 or len(product) != 1 or not isinstance(inner, Composite) or not inner.choices():
            return None
        return inner.rebuild([quotient(coefficient * each + constant, self.by) for each in inner.operands])

    def below(self) -> tuple[Relaxation, ...]:
        if isinstance(self.by, int):
            # The dividend is a multiple of the granule, so the remainder leaves the top of its range unused.
            return (Relaxation(self.dividend - (self.by - self._granule()), self.by),)
        y = bounds_of(self.by)
        if not y.positive:
            return ()
        found = [Relaxation(self.dividend - self.by + 1, by=product) for product in self._divisor_product()]
        if y.high is not None and bounds_of(self.dividend).nonnegative:
            found.append(Relaxation(self.dividend - (y.high - 1), y.high))
        return tuple(found)

    def above(self) -> tuple[Relaxation, ...]:
        if isinstance(self.by, int):
            # A quotient that is rounded up of what is not negative is no more than that, at 0 too.
            whole = self.dividend - (self.by - 1)
            is_at_most = self.by > 1 and bounds_of(whole).nonnegative
            return (Relaxation(self.dividend, self.by), *[Relaxation(whole)] * is_at_most)
        y = bounds_of(self.by)
        if y.low is None or not y.positive:
            return ()
        found = [Relaxation(self.dividend, by=product) for product in self._divisor_product()]
        if bounds_of(self.dividend).nonnegative:
            found.append(Relaxation(self.dividend, y.low))
            found += [Relaxation(quotient(self.dividend, less)) for less in self._smaller_divisors()]
        return tuple(found)

    def _smaller_divisors(self) -> Iterator[Size]:
        """Positive sizes that the divisor is at least: without its constant, without one of its factors."""
        terms = terms_of(self.by)
        constant = terms.get((), 0)
        if constant > 0 and bounds_of(self.by - constant).positive:
            yield self.by - constant
        for product in self._divisor_product():
            if len(product) > 1 and all(factor.bounds.positive for factor in product):
                yield from (of_terms({product[:place] + product[place + 1 :]: 1}) for place in range(len(product)))


class Remainder(_Division):
    """`dividend % by`, with the sign of `by`."""

    __slots__ = ()

    def spell(self, operands: Sequence[str]) -> str:
        return f"{operand_text(operands[0])} % {operand_text(operands[1])}"

    def value(self, operands: Sequence[int]) -> int:
        x, y = operands
        if y == 0:
            raise DivisionByZero(str(self.dividend), str(self + 0)).error()
        return x % y

    def rebuild(self, operands: Sequence[Size]) -> Size:
        return remainder(*operands)

    def definition(self) -> Size | None:
        if isinstance(self.by, int) or (self._divisor_product() and bounds_of(self.by).positive):
            return self.dividend - self.by * quotient(self.dividend, self.by)
        return None

    def above(self) -> tuple[Relaxation, ...]:
        if not bounds_of(self.by).positive:
            return ()
        is_at_most = bounds_of(self.dividend).nonnegative
        return (Relaxation(self.by - self._granule()), *[Relaxation(self.dividend)] * is_at_most)


def of_terms(terms: Terms) -> Size:
    """The size that is this sum."""
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Poly(terms)


def _terms(value: object, beside: object = 0) -> Terms | None:
    if type(value) is int:  # the usual case, and SupportsIndex is slow to ask for
        return {(): value} if value else {}
    if isinstance(value, Poly):
        return value.terms
    if isinstance(value, Atom):
        return {(value,): 1}
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return _terms(index(value))
    return _terms_of_expression(value, beside)


def _terms_of_expression(value: object, beside: object = 0) -> Terms | None:
    """The sum that an expression of the IR, by its `__size__`, or one of sympy stands for `beside` another one."""
    size: Size | None = None
    if is_of_sympy(value):
        size = import_module("tirlite.sizes.exchange").size_of(value, beside)
    elif (method := getattr(type(value), "__size__", None)) is not None:
        size = method(value)
    return None if size is None else terms_of(size)


def is_of_sympy(value: object) -> bool:
    # Asked of the class: `tl` is a module that looks for what a name that it does not have may have meant.
    return hasattr(type(value), "free_symbols")


def terms_of(size: object) -> Terms:
    """The sum that a size is. Raises TypeError for what is not a size."""
    terms = _terms(size)
    if terms is None:
        raise TypeError(f"a size is an int, a dim or a sum of them, not {type(size).__name__}: {size!r}")
    return terms


def as_size(value: object) -> Size:
    """`value` as an int where it is constant, as a Poly where it is not."""
    return value if type(value) is int else of_terms(terms_of(value))


def varies(size: Size) -> bool:
    """Whether a size is made of unknowns."""
    return not isinstance(size, int) and any(atom.level for product in size.terms for atom in product)


def bounds_of(size: Size) -> Bounds:
    """The bounds of `size`, with its atoms taken as independent."""
    if isinstance(size, int):
        return Bounds(size, size)
    from tirlite.sizes.box import bounds_in_box

    return bounds_in_box(size.terms)


def quotient(x: Size, y: Size) -> Size:
    """`x // y`, floored, simplified where that holds for every value of the dims (and of `y`, but 0)."""
    if isinstance(y, int):
        if y == 0:
            raise DivisionByZero(str(x), f"{operand_text(str(x))}//0").error()
        if isinstance(x, int):
            return x // y
        parts = quotient_by_int(scaled(x.terms, 1 if y > 0 else -1), abs(y))
    elif x == 0:
        return 0
    else:
        parts = quotient_by_sum(terms_of(x), y.terms)
    rest = _quotient_atom(of_terms(parts.rest), of_terms(parts.by)) if parts.rest else 0
    return of_terms(parts.whole) + parts.sign * rest


def _quotient_atom(x: Size, y: Size) -> Size:
    """`x // y` once nothing more comes out of it."""
    if isinstance(y, int):
        # A quotient, and maybe a number added to it, divided again: one division does, by what code can still write.
        constant = terms_of(x).get((), 0)
        for inner in atom_of(x - constant, Quotient):
            if isinstance(inner.by, int) and abs(inner.by * y) <= _LARGEST:
                return quotient(inner.dividend + inner.by * constant, inner.by * y)
    bounds = of_quotient(bounds_of(x), bounds_of(y))
    if bounds.low is not None and bounds.low == bounds.high:
        return bounds.low
    whole, left = divmod(divisor_of(terms_of(x)), y) if isinstance(y, int) else (1, 1)
    return as_size(Quotient(x, y, 1 if left else whole, bounds))


def remainder(x: Size, y: Size) -> Size:
    """`x % y`, with the sign of `y`, simplified where that holds for every value of the dims (and of `y`, but 0)."""
    if isinstance(y, int):
        if y == 0:
            raise DivisionByZero(str(x), f"{operand_text(str(x))} % 0").error()
        if isinstance(x, int):
            return x % y
        if y < 0:
            return -remainder(-x, -y)
        parts = remainder_by_int(x.terms, y)
    elif x == 0:
        return 0
    else:
        parts = remainder_by_sum(terms_of(x), y.terms)
    rest = _remainder_atom(of_terms(parts.rest), of_terms(parts.by)) if parts.rest else 0
    return of_terms(parts.whole) + parts.sign * rest


def _remainder_atom(x: Size, y: Size) -> Size:
    """`x % y` once nothing more comes out of it."""
    whole = of_quotient(bounds_of(x), bounds_of(y))
    if whole.low is not None and whole.low == whole.high:
        return x - whole.low * y
    granule = gcd(divisor_of(terms_of(x)), divisor_of(terms_of(y)))
    return as_size(Remainder(x, y, granule, of_remainder(bounds_of(x), bounds_of(y), granule)))


A = TypeVar("A", bound=Atom)


def bare(size: Size) -> Atom | None:
    """The atom that `size` is, if it is one."""
    if isinstance(size, Poly) and len(size.terms) == 1:
        ((product, coefficient),) = size.terms.items()
        if coefficient == 1 and len(product) == 1:
            return product[0]
    return None


def atom_of(size: Size, kind: type[A]) -> tuple[A, ...]:
    """The atom of this kind that `size` is, if it is one."""
    return (atom,) if isinstance(atom := bare(size), kind) else ()


def inside_out(size: SizeLike) -> tuple[Atom, ...]:
    """Every atom in a size once, each after the atoms in its operands."""
    if isinstance(size, Poly) and size._atoms:
        return size._atoms
    done: dict[Atom, None] = {}
    stack = [atom for product in terms_of(size) for atom in product]
    while stack:
        atom = stack[-1]
        inner = [a for operand in atom.operands for product in terms_of(operand) for a in product if a not in done]
        if inner:
            stack += inner
        else:
            done[atom] = None
            stack.pop()
    if isinstance(size, Poly):
        object.__setattr__(size, "_atoms", tuple(done))
    return tuple(done)
