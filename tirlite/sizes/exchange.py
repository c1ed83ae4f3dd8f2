"""Converts sizes to sympy expressions and back. sympy is loaded by the first call that needs it, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING

from tirlite.diag import KernelError, Message
from tirlite.gate import GATE
from tirlite.needs import needs_first
from tirlite.record import record
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of
from tirlite.sizes.extrema import Maximum, maximum, minimum
from tirlite.sizes.poly import Atom, Quotient, Remainder, Size, SizeLike, Terms, as_size, inside_out, terms_of

if TYPE_CHECKING:
    import sympy


class NotASize(Message):
    """A sympy expression is not an integer sum of products, quotients, remainders, maxima and minima.

    Example: `Request("a", sympy.sqrt(n), (0, 2))`.
    Fix: Use integer sums, products, quotients, remainders, `Max` and `Min`.
    """

    title = "`{expression}` is not a size: {why}"


class BadSymbol(Message):
    """A symbol of sympy has assumptions that its dim does not have: what sympy has simplified by them would not hold.

    Example: `Request("a", sympy.Symbol("n", negative=True) + 4, (0, 2))`.
    """

    title = "the symbol `{name}` {what}"
    help = "declare it without assumptions, or as positive, nonnegative or even where its dim is"


class SharedDimName(Message):
    """Two dims of one name would become one sympy symbol.

    Example: A sum of two dims that are both made by `tl.dim("n")`, on its way to sympy.
    Fix: Use one dim, or give them two names.
    """

    title = "`{size}` has two dims called `{name}`, which sympy could not tell apart"


def to_sympy(size: SizeLike) -> object:
    """`size` as a sympy expression; a dim becomes the integer Symbol of its name, positive where its `min` says so.

    Raises KernelError for two dims of one name.
    """
    for dim, following in pairwise(dims_of(size)):
        if dim.name == following.name:
            raise SharedDimName(str(size), dim.name).error()
    with GATE.inside():
        pass
    images: dict[Atom, sympy.Expr] = {}
    for atom in inside_out(size):
        if isinstance(atom, Dim):
            images[atom] = _symbol(atom)
        else:
            images[atom] = _apply(atom, [_sum(terms_of(operand), images) for operand in atom.operands])
    return _sum(terms_of(size), images)


def sympified(value: object, size: Size | None) -> object:
    """The expression of sympy for a value with a size. Raises sympy's own error where it has none."""
    import sympy

    if size is None:
        raise sympy.SympifyError(value)
    return to_sympy(size)


def _symbol(dim: Dim) -> sympy.Expr:
    import sympy

    if dim.low >= 1:
        return sympy.Symbol(dim.name, integer=True, positive=True)
    return sympy.Symbol(dim.name, integer=True, nonnegative=True if dim.low == 0 else None)


def _apply(atom: Atom, operands: Sequence[sympy.Expr]) -> sympy.Expr:
    import sympy

    if isinstance(atom, Quotient):
        return sympy.floor(operands[0] / operands[1])
    if isinstance(atom, Remainder):
        return sympy.Mod(operands[0], operands[1])
    return (sympy.Max if isinstance(atom, Maximum) else sympy.Min)(*operands)


def _sum(terms: Terms, images: Mapping[Atom, sympy.Expr]) -> sympy.Expr:
    import sympy

    return sympy.Add(*(sympy.Mul(coefficient, *(images[a] for a in product)) for product, coefficient in terms.items()))


@record
class _Ratio:
    """`above / below`: what a sympy subexpression is before it is made whole."""

    above: Size
    below: Size = 1


def from_sympy(expression: object, dims: Mapping[str, Dim]) -> Size:
    """The size that a sympy expression, or an int, stands for.

    Symbols are the `dims` of their names; others become dims: positive, unless they are declared nonnegative, and
    multiples of 2 where they are even. Takes sums, products, powers, fractions that come out whole or stand in floor,
    ceiling or Mod, and Max and Min. Raises KernelError, naming the subexpression, for anything else, and for a symbol
    of which sympy takes more for granted than its dim says, or less: what sympy has simplified would not hold.
    """
    if isinstance(expression, int):
        return int(expression)
    import sympy

    made: dict[str, Dim] = {}
    images: dict[sympy.Basic, _Ratio] = {}
    root: sympy.Basic = sympy.sympify(expression)
    for node in needs_first((root,), lambda node: node.args[::-1]):
        images[node] = _converted(node, [images[argument] for argument in node.args], dims, made)
    return _whole(images[root], str(expression))


def size_of(expression: object, beside: SizeLike) -> Size | None:
    """The size that a sympy expression is, over the dims of the size `beside` it and others; None where it is none."""
    try:
        return from_sympy(expression, {dim.name: dim for dim in dims_of(beside)})
    except KernelError:
        return None


def _converted(node: sympy.Basic, operands: Sequence[_Ratio], dims: Mapping[str, Dim], made: dict[str, Dim]) -> _Ratio:
    import sympy

    text = str(node)
    if isinstance(node, sympy.Rational):
        return _Ratio(int(node.p), int(node.q))
    if isinstance(node, sympy.Symbol):
        return _Ratio(as_size(_dim_of(node, dims, made)))
    if isinstance(node, sympy.Add):
        return _added(operands)
    if isinstance(node, sympy.Mul):
        return _multiplied(operands)
    if isinstance(node, sympy.Pow) and isinstance(node.exp, sympy.Integer):
        power = _multiplied([operands[0]] * abs(int(node.exp)))
        return power if node.exp > 0 else _reduced(power.below, power.above)
    if isinstance(node, sympy.floor):
        return _Ratio(operands[0].above // operands[0].below)
    if isinstance(node, sympy.ceiling):
        return _Ratio(-(-operands[0].above // operands[0].below))
    if isinstance(node, sympy.Mod):
        x, y = operands
        return _Ratio((x.above * y.below) % (y.above * x.below), x.below * y.below)
    if isinstance(node, sympy.Max | sympy.Min):
        return _extremum(operands, text, greatest=isinstance(node, sympy.Max))
    raise NotASize(text, f"there is no {type(node).__name__} in sizes").error()


def _dim_of(symbol: sympy.Symbol, given: Mapping[str, Dim], made: dict[str, Dim]) -> Dim:
    """The dim that a symbol stands for: a given one, or one of those that are made."""
    name = symbol.name
    for word in ("prime", "composite", "odd", "nonpositive"):
        if getattr(symbol, f"is_{word}"):
            raise BadSymbol(name, f"is {word}, which no dim is known to be").error()
    if symbol.is_integer is False:
        raise BadSymbol(name, "is not an integer").error()
    is_told = symbol.is_negative is False
    own = Dim(name, min=0 if is_told and not symbol.is_positive else 1, multiple_of=2 if symbol.is_even else 1)
    if name in given:
        dim = given[name]
        if (is_told and dim.low < own.min) or dim.multiple_of % own.multiple_of:
            raise BadSymbol(name, f"is {_assumed(symbol)}, and {dim!r} need not be").error()
        return dim
    dim = made.setdefault(name, own)
    if dim != own and (is_told or symbol.is_even):
        raise BadSymbol(name, f"is {_assumed(symbol)}, and another one of that name is not").error()
    return dim


def _assumed(symbol: sympy.Symbol) -> str:
    words = [word for word in ("positive", "nonnegative", "even") if getattr(symbol, f"is_{word}")]
    return " and ".join(words[:1] + words[1:][-1:] if "even" in words else words[:1])


def _added(ratios: Sequence[_Ratio]) -> _Ratio:
    above, below = _over_one(ratios)
    return _reduced(sum(above, start=0), below)


def _multiplied(ratios: Sequence[_Ratio]) -> _Ratio:
    above: Size = 1
    below: Size = 1
    for ratio in ratios:
        above, below = above * ratio.above, below * ratio.below
    return _reduced(above, below)


def _extremum(ratios: Sequence[_Ratio], text: str, *, greatest: bool) -> _Ratio:
    above, below = _over_one(ratios)
    if not isinstance(below, int):
        raise NotASize(text, f"the sign of `{below}`, which it divides by, is not known").error()
    return _reduced(maximum(*above) if greatest else minimum(*above), below)


def _over_one(ratios: Sequence[_Ratio]) -> tuple[list[Size], Size]:
    """What stands above, and the common denominator."""
    below: Size = lcm(*(ratio.below for ratio in ratios if isinstance(ratio.below, int)))
    for symbolic in dict.fromkeys(ratio.below for ratio in ratios if not isinstance(ratio.below, int)):
        below = below * symbolic
    return [ratio.above * (below // ratio.below) for ratio in ratios], below


def _reduced(above: Size, below: Size) -> _Ratio:
    """The ratio in lower terms; a denominator that is a number is positive."""
    if isinstance(below, int):
        common = gcd(below, *terms_of(above).values()) * (-1 if below < 0 else 1)
        return _Ratio(above // common, below // common)
    return _Ratio(above // below) if above % below == 0 else _Ratio(above, below)


def _whole(ratio: _Ratio, text: str) -> Size:
    if ratio.above % ratio.below != 0:
        raise NotASize(
            text, f"it is not known to be whole; write floor or ceiling around the division by `{ratio.below}`"
        ).error()
    return ratio.above // ratio.below
